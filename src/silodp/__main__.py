"""`python -m silodp` is `silodp`."""

from silodp.cli import main

raise SystemExit(main())
