"""Compare a bound of the papers with runs; seed and bounds.scale come from the run file."""

from pathlib import Path

from silodp.experiments.validation import load
from silodp.files import write_csv
from silodp.streams import Streams
from silodp.verdicts.checks import run_check
from silodp.verdicts.checks.base import Context


def check(run_file: Path, name: str, output: Path) -> None:
    run = load(run_file).run
    write_csv(run_check(name, Context(Streams(run.seed).child("bounds", name), run.bounds.scale)), output)
