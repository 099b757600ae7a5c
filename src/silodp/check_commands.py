"""Subcommands of the bounds: one check, and its figure."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from silodp.checks import CHECKS
from silodp.config import ConfigError, load
from silodp.results import BOUNDS_COLUMNS, write_csv

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("check", check, "hold a bound of the papers against runs")
    sub.add_argument("name", help=f"one of {', '.join(CHECKS)}")
    sub.add_argument("run_file", type=Path, help="run file; its seed and bounds.scale are used")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")

    sub = add("bounds-figure", figure, "draw the figure of a check")
    sub.add_argument("name", help="a check that has a figure")
    sub.add_argument("--table", type=Path, required=True, help="CSV file that the check wrote")
    sub.add_argument("--output", type=Path, required=True, help="PNG file; the PDF stands beside it")


def _known(name: str, allowed: list[str]) -> str:
    if name not in allowed:
        raise ConfigError(f"command line: name: {name!r}: must be one of {', '.join(allowed)}")
    return name


def check(options: argparse.Namespace) -> None:
    """Run one check of the papers' bounds and write its table."""
    _known(options.name, list(CHECKS))
    run = load(options.run_file).run
    from silodp.checks import run_check
    from silodp.checks.base import Context
    from silodp.rng import Streams

    table = run_check(options.name, Context(Streams(run.seed).child("bounds", options.name), run.bounds.scale))
    write_csv(table, options.output)
    counts = table["verdict"].replace("", "no verdict").value_counts()
    log.info("%s: %s", options.name, ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def figure(options: argparse.Namespace) -> None:
    """Draw the figure of a check from its table, as PDF and PNG."""
    import pandas as pd

    from silodp.figures import BOUNDS_FIGURES, save

    draw = BOUNDS_FIGURES[_known(options.name, list(BOUNDS_FIGURES))]
    rows = pd.read_csv(options.table, float_precision="round_trip")
    missing = [name for name in BOUNDS_COLUMNS if name not in rows.columns]
    if missing:
        raise ConfigError(f"{options.table}: lacks the columns {', '.join(missing)}")
    rows["verdict"] = rows["verdict"].fillna("")
    save(draw(rows, title=CHECKS[options.name]), options.output.with_suffix(""))
