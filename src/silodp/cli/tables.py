"""Subcommands that make tables: privacy, table, merge-privacy, formulas, merge."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from silodp.cli.options import experiment_command, resolved_with
from silodp.cli.train import CHOSEN, read_trials
from silodp.experiments.table import reported
from silodp.experiments.table import table as aggregate
from silodp.federation.data_of import held_by_one
from silodp.federation.partition import read_partition
from silodp.files import PRIVACY_COLUMNS, PRIVACY_EXTRA, read_csv, read_parquet, write_csv

log = logging.getLogger("silodp")


def register(add: Callable[[str, Callable, str], argparse.ArgumentParser]) -> None:
    """Add these subcommands with `add(name, function, help)`."""
    sub = experiment_command(add, "privacy", privacy, "delivered epsilon of every chosen private point")
    sub.add_argument("--chosen", type=Path, required=True, help="parquet file that `silodp select` wrote")
    sub.add_argument("--silos", type=Path, required=True, help="folder that `silodp partition` wrote")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")
    sub.add_argument(
        "--by-round", type=Path, help="CSV file of epsilon so far, round by round; `silodp redraw` draws it"
    )

    sub = experiment_command(add, "table", table, "aggregate trials into the experiment's table")
    sub.add_argument("--grid", type=Path, nargs="+", required=True, help="parquet files of the grid runs")
    sub.add_argument("--fresh", type=Path, nargs="*", default=[], help="parquet files of the fresh runs")
    sub.add_argument("--chosen", type=Path, required=True, help="parquet file that `silodp select` wrote")
    sub.add_argument("--privacy", type=Path, required=True, help="CSV file that `silodp privacy` wrote")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")
    sub.add_argument("--reported", type=Path, help="CSV file of the trials behind the default rows")

    sub = add("merge-privacy", merge_privacy, "one privacy.csv from the experiments' privacy tables")
    sub.add_argument("files", type=Path, nargs="+", help="CSV files that `silodp privacy` wrote")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")

    sub = add("formulas", formulas, "what each noise formula of the papers delivers")
    sub.add_argument("--output", type=Path, required=True, help="CSV file; `silodp redraw` draws its figures")

    sub = add("merge", merge, "put CSV files with the same columns together")
    sub.add_argument("files", type=Path, nargs="+", help="CSV files")
    sub.add_argument("--output", type=Path, required=True, help="CSV file")


def formulas(options: argparse.Namespace) -> None:
    """Delivered against claimed epsilon of every noise formula of the papers, and of what released programs do."""
    from silodp.experiments.formulas import formula_rows

    write_csv(formula_rows(), options.output)


def merge(options: argparse.Namespace) -> None:
    """Put CSV files with the same columns together, in the given order."""
    write_csv(pd.concat([read_csv(path, dtype=str, keep_default_na=False) for path in options.files]), options.output)


def privacy(options: argparse.Namespace) -> None:
    """Delivered epsilon of every private point that was chosen, beside the claimed one."""
    from silodp.experiments.delivered import privacy_rows
    from silodp.experiments.other_epsilons import by_round_rows, with_other_epsilons

    resolved = resolved_with(options)
    experiment = resolved.experiments[options.experiment]
    partition = read_partition(options.silos, 0)
    sizes, held = [len(records) for records in partition.train], held_by_one(experiment, partition)
    rows = privacy_rows(options.experiment, experiment, read_parquet(options.chosen, CHOSEN), sizes)
    write_csv(with_other_epsilons(rows, options.experiment, experiment, sizes, held), options.output)
    if options.by_round:
        write_csv(by_round_rows(options.experiment, experiment, sizes), options.by_round)


def merge_privacy(options: argparse.Namespace) -> None:
    """Put the experiments' privacy tables together: one row for each private algorithm, setting and epsilon."""
    wanted = (*PRIVACY_COLUMNS, *PRIVACY_EXTRA, "reported")
    rows = pd.concat([read_csv(path, wanted, keep_default_na=False) for path in options.files], ignore_index=True)
    rows = rows[rows["reported"].astype(str) == "True"]
    write_csv(rows[[*PRIVACY_COLUMNS, *PRIVACY_EXTRA]], options.output)


def table(options: argparse.Namespace) -> None:
    """Aggregate trials into the experiment's table, SPIDER's best-of-two included."""
    from silodp.experiments.delivered import delivered_lookup

    resolved = resolved_with(options)
    fresh = read_trials(options.fresh) if options.fresh else None
    delivered = delivered_lookup(read_csv(options.privacy, PRIVACY_COLUMNS, keep_default_na=False))
    experiment = resolved.experiments[options.experiment]
    grid, chosen = read_trials(options.grid), read_parquet(options.chosen, CHOSEN)
    write_csv(aggregate(grid, fresh, chosen, experiment, delivered), options.output)
    if options.reported:
        write_csv(reported(grid, fresh, chosen, experiment), options.reported)
