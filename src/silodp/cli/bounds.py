"""The command `silodp check`."""

import logging
from pathlib import Path

import click

from silodp.cli.options import among, job_command, output, run_file
from silodp.experiments.validation import load
from silodp.files import write_csv
from silodp.streams import Streams
from silodp.verdicts.checks import CHECKS, run_check
from silodp.verdicts.checks.base import Context

log = logging.getLogger("silodp")


@job_command()
@click.argument("name")
@run_file
@output
def check(name: str, run_file: Path, output: Path) -> None:
    """Compare the bound NAME of the papers with runs; seed and bounds.scale come from RUN_FILE."""
    among("name", name, CHECKS)
    run = load(run_file).run
    table = run_check(name, Context(Streams(run.seed).child("bounds", name), run.bounds.scale))
    write_csv(table, output)
    counts = table["verdict"].replace("", "no verdict").value_counts()
    log.info("%s: %s", name, ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
