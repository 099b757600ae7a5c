"""The command `silodp select`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from silodp.cli.options import PATH, experiment, job_command, option_of_values, output, run_file
from silodp.experiments.selection import select as choose
from silodp.experiments.validation import experiment_of
from silodp.files import read_parquet, write_parquet

# Columns that chosen points and trained runs must have; a file without them is damaged.
CHOSEN = ("experiment", "algorithm", "reading", "M", "R", "epsilon", "stepsize", "clip", "phase_length")
TRIALS = (*CHOSEN, "trial", "train_loss", "test_error", "diverged")


@job_command()
@run_file
@experiment
@option_of_values("--trials", type=PATH, required=True, help="Parquet files of the grid runs.")
@output
def select(run_file: Path, experiment: str, trials: Sequence[Path], output: Path) -> None:
    """Choose the grid point of smallest training loss, for every algorithm, setting and epsilon."""
    _, config = experiment_of(run_file, experiment)
    write_parquet(choose(read_trials(trials), config), output)


def read_trials(paths: Iterable[Path]) -> pd.DataFrame:
    """The rows of all files."""
    return pd.concat([read_parquet(path, TRIALS) for path in paths], ignore_index=True)
