"""Subcommands of the bounds: one check, and the figures of tables that no experiment's grid stands behind."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from silodp.config.errors import ConfigError
from silodp.experiments.validation import load
from silodp.federation.rng import Streams
from silodp.files import write_csv
from silodp.verdicts.checks import CHECKS, run_check

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = add("check", check, "hold a bound of the papers against runs")
    sub.add_argument("name", help=f"one of {', '.join(CHECKS)}")
    sub.add_argument("run_file", type=Path, help="run file; its seed and bounds.scale are used")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")


def _known(name: str, allowed: list[str]) -> str:
    if name not in allowed:
        raise ConfigError(f"command line: name: {name!r}: must be one of {', '.join(allowed)}")
    return name


def check(options: argparse.Namespace) -> None:
    """Run one check of the papers' bounds and write its table."""
    _known(options.name, list(CHECKS))
    run = load(options.run_file).run
    from silodp.verdicts.checks.base import Context

    table = run_check(options.name, Context(Streams(run.seed).child("bounds", options.name), run.bounds.scale))
    write_csv(table, options.output)
    counts = table["verdict"].replace("", "no verdict").value_counts()
    log.info("%s: %s", options.name, ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
