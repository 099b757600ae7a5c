"""The commands that make tables: table, merge."""

from collections.abc import Sequence
from pathlib import Path

import click
import pandas as pd

from silodp.cli.options import PATH, chosen, experiment, job_command, option_of_values, output, run_file
from silodp.cli.select import CHOSEN, read_planned
from silodp.experiments.columns import PRIVACY_COLUMNS, PRIVACY_EXTRA
from silodp.experiments.made_for import read_trained
from silodp.experiments.selection import losses as losses_of
from silodp.experiments.selection import select as choose
from silodp.experiments.table import ENDS, KEY, delivered_lookup
from silodp.experiments.table import reported as reported_trials
from silodp.experiments.table import table as aggregate
from silodp.experiments.validation import experiment_of
from silodp.files import read_csv, write_csv, write_parquet


@job_command()
@click.argument("folder", type=PATH)
@click.argument("experiments", nargs=-1, required=True)
def merge(folder: Path, experiments: Sequence[str]) -> None:
    """Merge the tables that EXPERIMENTS have in FOLDER/privacy, by_round and audit into a table of the run each.

    privacy.csv has one row for each private algorithm, setting and epsilon.
    """
    paths = {kind: [folder / kind / f"{name}.csv" for name in experiments] for kind in ("privacy", "by_round", "audit")}
    for kind in ("by_round", "audit"):
        rows = pd.concat([read_csv(path, dtype=str, keep_default_na=False) for path in paths[kind]])
        write_csv(rows, folder / f"{kind}.csv")
    columns = (*PRIVACY_COLUMNS, *PRIVACY_EXTRA, "reported")
    rows = pd.concat([read_csv(path, columns, keep_default_na=False) for path in paths["privacy"]], ignore_index=True)
    rows = rows[rows["reported"].astype(str) == "True"]
    write_csv(rows[[*PRIVACY_COLUMNS, *PRIVACY_EXTRA]], folder / "privacy.csv")


@job_command()
@run_file
@experiment
@option_of_values("--grid", type=PATH, required=True, help="Parquet files of the grid runs.")
@option_of_values("--fresh", type=PATH, help="Parquet files of the fresh runs.")
@chosen
@click.option("--privacy", type=PATH, required=True, help="CSV file that `silodp privacy` wrote.")
@output
@click.option("--reported", type=PATH, help="CSV file for the trials behind the default rows.")
@click.option("--losses", type=PATH, help="Parquet file for the training losses that points are chosen by.")
def table(
    run_file: Path,
    experiment: str,
    grid: Sequence[Path],
    fresh: Sequence[Path],
    chosen: Path,
    privacy: Path,
    output: Path,
    reported: Path | None,
    losses: Path | None,
) -> None:
    """Aggregate trials into the experiment's table, SPIDER's best-of-two included."""
    run, config = experiment_of(run_file, experiment)
    fresh_trials = read_planned(fresh, experiment, config, run, grid=False) if fresh else None
    delivered = delivered_lookup(read_csv(privacy, (*KEY, *ENDS), keep_default_na=False))
    grid_trials = read_planned(grid, experiment, config, run)
    points = read_trained(chosen, CHOSEN, experiment, config, run)
    if not points.equals(choose(grid_trials, config)):
        raise ValueError(f"{chosen}: must hold what `silodp select` chooses from these trials, row by row")
    write_csv(aggregate(grid_trials, fresh_trials, points, config, delivered), output)
    if reported:
        write_csv(reported_trials(grid_trials, fresh_trials, points, config), reported)
    if losses:
        write_parquet(losses_of(trained_rows(grid_trials)), losses)


def trained_rows(trials: pd.DataFrame) -> pd.DataFrame:
    """Rows that were trained; of several files those of a whole grid have no column that says so."""
    return trials[~trials["trained"].eq(False)].drop(columns="trained") if "trained" in trials else trials
