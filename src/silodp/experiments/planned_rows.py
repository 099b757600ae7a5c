"""Trained rows and chosen points, as read by the jobs after training: refused where they are not those of the plan."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.experiments.made_for import read_trained
from silodp.experiments.variants import readings_of, trained_tasks

# Columns that chosen points and trained runs must have; a file without them is damaged.
CHOSEN = ("experiment", "algorithm", "reading", "M", "R", "epsilon", "stepsize", "clip", "phase_length")
TRIALS = (*CHOSEN, "trial", "train_loss", "test_error", "diverged")


def read_trials(paths: Iterable[Path], experiment: str, config: Experiment, run: Run) -> pd.DataFrame:
    """The rows of all files; ValueError where one was made for another experiment, run file or seed."""
    return pd.concat([read_trained(path, TRIALS, experiment, config, run) for path in paths], ignore_index=True)


def read_planned(
    paths: Iterable[Path], experiment: str, config: Experiment, run: Run, grid: bool = True
) -> pd.DataFrame:
    """The rows of all files; ValueError where they are not those of the experiment's tasks, each once.

    In a whole `grid` every trial of a task has as many rows.
    """
    rows, task_of = read_trials(paths, experiment, config, run), ["algorithm", "M", "R", "reading"]
    settings, labels = {setting.name: setting for setting in config.settings}, readings_of(config)
    tasks = {(a, settings[s].M, settings[s].R, labels[reading]) for a, s, reading in trained_tasks(config)}
    found = set(rows[task_of].itertuples(index=False, name=None))
    wrong: list[tuple[Any, str]] = [(t, "missing" if t in tasks else "is no task of it") for t in sorted(found ^ tasks)]
    twice = rows[rows.duplicated([*CHOSEN, "trial"])]
    wrong += [(task, "has rows twice") for task in twice[task_of].itertuples(index=False, name=None)]
    other = rows[~rows["epsilon"].isin([*config.epsilons, float("nan")])]
    wrong += [(task, "has another epsilon") for task in other[task_of].itertuples(index=False, name=None)]
    if grid and config.tuning == "full":
        counts = rows.groupby(task_of)["trial"].value_counts().unstack(fill_value=0)
        counts = counts.reindex(columns=range(config.trials))
        wrong += [(task, "lacks rows of a trial") for task in counts.index[counts.nunique(axis=1, dropna=False) > 1]]
    for what, problem in wrong:
        raise ValueError(f"rows of {experiment}: {what}: {problem}: must be as the run file asks")
    return rows
