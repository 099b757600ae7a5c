"""Aggregate trials into the experiment's table."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from silodp.experiments.made_for import read_trained
from silodp.experiments.planned_rows import CHOSEN, read_planned
from silodp.experiments.selection import losses as losses_of
from silodp.experiments.selection import select as choose
from silodp.experiments.table import ENDS, KEY, delivered_lookup
from silodp.experiments.table import reported as reported_trials
from silodp.experiments.table import table as aggregate
from silodp.experiments.validation import experiment_of
from silodp.files import read_csv, write_csv, write_parquet


def table(
    run_file: Path,
    experiment: str,
    grid: Sequence[Path],
    fresh: Sequence[Path],
    chosen: Path,
    privacy: Path,
    output: Path,
    reported: Path,
    losses: Path,
) -> None:
    """Aggregate trials, SPIDER's best-of-two included; also the trials `reported` and the `losses` of the choice."""
    run, config = experiment_of(run_file, experiment)
    fresh_trials = read_planned(fresh, experiment, config, run, grid=False) if fresh else None
    delivered = delivered_lookup(read_csv(privacy, (*KEY, *ENDS), keep_default_na=False))
    grid_trials = read_planned(grid, experiment, config, run)
    points = read_trained(chosen, CHOSEN, experiment, config, run)
    if not points.equals(choose(grid_trials, config)):
        raise ValueError(f"{chosen}: must hold what is chosen from these trials, row by row")
    write_csv(aggregate(grid_trials, fresh_trials, points, config, delivered), output)
    write_csv(reported_trials(grid_trials, fresh_trials, points, config), reported)
    write_parquet(losses_of(trained_rows(grid_trials)), losses)


def trained_rows(trials: pd.DataFrame) -> pd.DataFrame:
    """Rows that were trained; of several files those of a whole grid have no column that says so."""
    return trials[~trials["trained"].eq(False)].drop(columns="trained") if "trained" in trials else trials
