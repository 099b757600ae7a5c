"""Compare a bound of the papers with runs."""

import logging
from pathlib import Path

from silodp.config.errors import among
from silodp.experiments.validation import load
from silodp.federation.streams import Streams
from silodp.files import write_csv
from silodp.verdicts.checks import CHECKS, run_check
from silodp.verdicts.checks.base import Context

log = logging.getLogger("silodp")


def check(run_file: Path, name: str, output: Path) -> None:
    """Compare the bound `name` with runs; seed and bounds.scale come from the run file."""
    among("name", name, CHECKS)
    run = load(run_file).run
    table = run_check(name, Context(Streams(run.seed).child("bounds", name), run.bounds.scale))
    write_csv(table, output)
    counts = table["verdict"].replace("", "no verdict").value_counts()
    log.info("%s: %s", name, ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
