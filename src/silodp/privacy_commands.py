"""Subcommands about what an ε is worth: audit, formulas."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from silodp.commands import experiment_command, planned
from silodp.config import ConfigError
from silodp.results import write_csv

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = experiment_command(add, "audit", audit, "lower bounds on epsilon from runs with a canary")
    sub.add_argument("--silos", type=Path, required=True, help="folder that `silodp partition` wrote")
    sub.add_argument("--runs", type=int, help="runs with the canary, and as many without (default: audit_runs)")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")

    sub = add("formulas", formulas, "what each noise formula of the papers delivers")
    sub.add_argument("--output", type=Path, required=True, help="CSV file; `silodp redraw` draws its figures")

    sub = add("merge", merge, "put CSV files with the same columns together")
    sub.add_argument("files", type=Path, nargs="+", help="CSV files")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")


def audit(options: argparse.Namespace) -> None:
    """Audited lower bound on epsilon of every private algorithm at a few points, beside the delivered epsilon."""
    from silodp.audit_table import audit_rows
    from silodp.silos import read_partition

    if options.runs is not None and options.runs < 4:
        raise ConfigError(f"command line: --runs: {options.runs}: must be at least 4")
    _, plan = planned(options)
    sizes = [len(records) for records in read_partition(options.silos, 0).train]
    rows = audit_rows(plan, options.experiment, sizes, options.runs)
    for row in rows[~rows["holds"]].to_dict("records"):
        log.warning(
            "%s %s at epsilon = %g: audited lower bound %g exceeds the delivered %g",
            *(row[name] for name in ("experiment", "algorithm", "claimed_epsilon")),
            *(row[name] for name in ("audited_lower", "delivered_epsilon")),
        )
    write_csv(rows, options.output)


def formulas(options: argparse.Namespace) -> None:
    """Delivered against claimed epsilon of every noise formula of the papers, and of what released programs do."""
    from silodp.formulas import formula_rows

    write_csv(formula_rows(), options.output)


def merge(options: argparse.Namespace) -> None:
    """Put CSV files with the same columns together, in the given order."""
    write_csv(
        pd.concat([pd.read_csv(path, dtype=str, keep_default_na=False) for path in options.files]), options.output
    )
