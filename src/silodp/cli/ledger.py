"""The command `silodp ledger`: show what was released of a folder's records, and mend what keeps their ledger."""

import math
from pathlib import Path

import click

from silodp.cli.options import PATH, POSITIVE, command
from silodp.cli.practitioner import rounded
from silodp.config.errors import ConfigError
from silodp.silos.ledger import opened


@command(epilog="Example: silodp ledger show ledger")
@click.argument("action", type=click.Choice(("show", "repair")))
@click.argument("folder", type=PATH, default=".")
@click.option("--epsilon", type=POSITIVE, help="Of `repair`: bound of what is lost.")
@click.option("--delta", type=click.FloatRange(0, 1, max_open=True), help="Of `repair`: delta of what is lost.")
def ledger(action: str, folder: Path, epsilon: float | None, delta: float | None) -> None:
    """Show the ledger of FOLDER, or count what is lost by a bound."""
    for option, value in (("--epsilon", epsilon), ("--delta", delta)):
        if (value is not None) != (action == "repair"):
            allowed = "must be given" if action == "repair" else "must be left out"
            raise ConfigError(f"command line: {option}: {allowed} with {action}")
    with opened(folder) as book:
        if action == "repair":
            book.repair(epsilon or math.nan, delta or 0.0)
        for line in book.lines:
            about = ", ".join(f"{key} {value}" for key, value in line.get("about", line).items() if value != "")
            print(f"{line['number']}. {line['kind']}, {line['time']}: {about}")
        total = book.total()
    limit = "no budget" if book.budget is None else f"budget {book.budget:g}"
    print(f"{book.path}: all together: epsilon = {rounded(total[0], 'up')} at delta = {total[1]:.3g}; {limit}")
    for newest in book.charges[-1:]:
        later = sum(line["epsilon"] for line in book.lines[newest["number"] :] if line["kind"] == "repair")
        if total[0] - later > float(newest["total_epsilon"]) * (1 + 1e-6):
            was = rounded(float(newest["total_epsilon"]), "up")
            print(f"line {newest['number']} said {was}: noisy local steps count one by one now, as in a silo's promise")
    book.stop_in_trouble()
