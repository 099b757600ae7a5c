"""Subcommands of the bounds: one check, and the figures of tables that no experiment's grid stands behind."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from silodp.checks import CHECKS
from silodp.config import ConfigError, load
from silodp.results import write_csv

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("check", check, "hold a bound of the papers against runs")
    sub.add_argument("name", help=f"one of {', '.join(CHECKS)}")
    sub.add_argument("run_file", type=Path, help="run file; its seed and bounds.scale are used")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")

    sub = add("redraw", redraw, "draw the figures of a table about bounds, check-ins or noise formulas")
    sub.add_argument("table", type=Path, help="CSV file, as in results/default/bounds/rates_convex.csv")
    sub.add_argument("--folder", type=Path, required=True, help="each figure is written there, as PDF and PNG")


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


def redraw(options: argparse.Namespace) -> None:
    """Draw the figures of a table, each as PDF and PNG."""
    from silodp.figures import save
    from silodp.table_figures import figures_of

    for name, figure in figures_of(options.table).items():
        save(figure, options.folder / name)
