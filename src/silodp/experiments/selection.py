"""Choosing points by training loss, and the table that reports them."""

import math
from collections.abc import Iterable

import pandas as pd

from silodp.config.experiment import Experiment
from silodp.experiments.race import finalists
from silodp.experiments.task import POINT, RUN
from silodp.experiments.variants import trained_as

# Columns of trials that are neither whole numbers nor truth values beside rows without results.
WHOLE = {"K": "int64", "left_after": "int64", "diverged": "bool"}


def scores(frame: pd.DataFrame) -> pd.Series:
    """Training losses to be minimised; a loss that is not a number is worse than any."""
    return frame["train_loss"].fillna(math.inf)


def complete(trials: pd.DataFrame, config: Experiment) -> pd.DataFrame:
    """`trials` with the default reading's rows standing for what other readings do not train themselves.

    That is every reading that does not apply to their algorithm, and points that are `trained` by the default alone.
    ValueError: where such a point has no run of the default reading.
    """
    trials = _filled(trials) if "trained" in trials else trials
    default = trials[trials["reading"] == ""]
    copies = [
        default[default["algorithm"] == algorithm].assign(reading=label)
        for label in config.variants()
        for algorithm in config.algorithms
        if label and trained_as(config, algorithm, label) == ""
    ]
    return pd.concat([trials, *copies], ignore_index=True) if copies else trials


def _filled(trials: pd.DataFrame) -> pd.DataFrame:
    """`trials` with the default results in the rows of other readings that were not trained, in the same order."""
    lacking, default = trials["trained"].eq(False), trials[trials["reading"] == ""]
    by = [column for column in (*RUN, "trial", *POINT) if column != "reading"]
    wanted = trials.loc[lacking, [*by, "reading"]]
    filled = wanted.merge(default.drop(columns="reading"), how="left", on=by, indicator="there", validate="m:1")
    if missing := int((filled["there"] == "left_only").sum()):
        raise ValueError(f"{missing} points of other readings: must have a run of the default reading, which has none")
    whole = pd.concat([trials[~lacking], filled.drop(columns="there").set_axis(wanted.index)]).sort_index()
    return whole[trials.columns].drop(columns="trained").astype(WHOLE)


def choose(trials: pd.DataFrame, selection: str, numbers: Iterable[int] | None = None) -> pd.DataFrame:
    """The point of smallest training loss for each run and ε.

    Args:
        trials: rows of grid runs: `RUN`, trial, `POINT` and train_loss.
        selection: "pooled", one point by its mean over trials; "per_trial", one in each trial.
        numbers: the trials that a pooled point stands for; default: those of `trials`.

    Returns one row for each run, ε and trial: `RUN`, trial, `POINT`. Ties go to the first point of the grid.
    """
    frame = trials.assign(score=scores(trials), order=trials.groupby([*RUN, "trial"]).cumcount())
    by = [*RUN, "epsilon"]
    if selection == "per_trial":
        ranked = frame.sort_values([*by, "trial", "score", "order"], kind="stable")
        return ranked.groupby([*by, "trial"], dropna=False).head(1)[[*RUN, "trial", *POINT]].reset_index(drop=True)
    means = frame.groupby([*by, "stepsize", "clip", "phase_length"], dropna=False, as_index=False).agg(
        score=("score", "mean"), order=("order", "first")
    )
    best = means.sort_values([*by, "score", "order"], kind="stable").groupby(by, dropna=False).head(1)
    each = trials[[*RUN, "trial"]].drop_duplicates()
    if numbers is not None:
        each = each[RUN].drop_duplicates().merge(pd.DataFrame({"trial": list(numbers)}), how="cross")
    return each.merge(best[[*RUN, *POINT]], on=RUN)


def losses(trials: pd.DataFrame) -> pd.DataFrame:
    """What points were chosen by: `RUN`, `POINT`, trials, mean and standard error of the training loss of each point.

    A reader can choose again by it. The standard error of a single trial is NaN.
    """
    trials = trials[trials["trained"]] if "trained" in trials else trials
    grouped = trials.assign(train_loss=scores(trials)).groupby([*RUN, *POINT], dropna=False, sort=False)["train_loss"]
    return grouped.agg(trials="size", train_loss_mean="mean", train_loss_error="sem").reset_index()


def select(trials: pd.DataFrame, config: Experiment) -> pd.DataFrame:
    """What every selection of the experiment chooses; a column `selection` says which."""
    trials, numbers = complete(trials, config), range(config.trials)
    if config.tuning == "race":
        return choose(finalists(trials), "pooled", numbers).assign(selection="pooled")
    kinds = list(dict.fromkeys(report.selection for report in config.reports))
    return pd.concat([choose(trials, kind).assign(selection=kind) for kind in kinds], ignore_index=True)
