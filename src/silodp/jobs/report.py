"""Build the report page of a run."""

import os
from pathlib import Path

from silodp.config.errors import ConfigError
from silodp.report.page.build import build


def report(folder: Path, output: Path) -> None:
    """Build the self-contained page of the run in `folder`."""
    if not folder.is_dir():
        raise ConfigError(f"command line: folder: {os.fspath(folder)!r}: must be a run's results folder")
    build(folder, output)
