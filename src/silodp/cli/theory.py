"""The command `silodp theory`."""

import click

from silodp.cli.options import command
from silodp.config.errors import ConfigError, among, suggest_name
from silodp.theory import THEOREMS, describe, list_theorems
from silodp.theory.theorem import PAPERS


@command(epilog="Example: silodp theory show convex-2.1")
@click.argument("action", type=click.Choice(("list", "show")))
@click.argument("key", required=False)
def theory(action: str, key: str | None) -> None:
    """List the papers' theorems, all or those of the paper KEY, or describe the theorem KEY with a worked example.

    In Python, `silodp.theory.THEOREMS["convex-2.1"](n=1000, …)` evaluates a theorem at other numbers.
    """
    if action == "show":
        if key is None or key not in THEOREMS:
            allowed = f"must be a theorem's key, as `silodp theory list` prints{suggest_name(key, THEOREMS)}"
            raise ConfigError(f"command line: key: {key!r}: {allowed}")
        print(describe(key))
        return
    from silodp.verdicts.claims.claim_files import coverage  # `show` needs none of it

    paper = None if key is None else among("key", key, PAPERS)
    decided = coverage()
    for theorem in list_theorems(paper):
        options = (name if name in theorem.required else f"[{name}]" for name in theorem.parameters)
        print(f"{theorem.key:<30} {PAPERS[theorem.paper]}, {theorem.place}\n    {theorem.statement}")
        print(f"    {' '.join(options)}\n    {decided[theorem.key]}")
