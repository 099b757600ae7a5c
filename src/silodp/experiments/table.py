"""The table of an experiment: what every chosen point comes to over its trials."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from silodp.algorithms import families
from silodp.config.experiment import Experiment
from silodp.experiments.selection import RUN, complete, scores
from silodp.experiments.task import POINT
from silodp.files import REPORTED_COLUMNS, TABLE_COLUMNS, TABLE_EXTRA


def _better(rows: pd.DataFrame, losses: pd.DataFrame, selection: str) -> Iterator[pd.DataFrame]:
    """Rows of the better of each of the `families` for each run without its algorithm, under the family's name.

    Args:
        rows: evaluated rows of the chosen points.
        losses: training losses of the runs that chose them, same points.
        selection: whether one of them is chosen for all trials, or in each.
    """
    by = ["experiment", "reading", "M", "R", "epsilon"] + (["trial"] if selection == "per_trial" else [])
    for family, names in families(losses["algorithm"].unique()).items():
        members = losses[losses["algorithm"].isin(names)]
        scored = members.assign(score=scores(members)).groupby([*by, "algorithm"], dropna=False, as_index=False)
        means = scored["score"].mean()
        means["order"] = means["algorithm"].map(names.index)
        winners = means.sort_values(["score", "order"], kind="stable").drop_duplicates(by)[[*by, "algorithm"]]
        yield rows.merge(winners, on=[*by, "algorithm"]).assign(algorithm=family)


def report_rows(
    grid: pd.DataFrame, fresh: pd.DataFrame | None, chosen: pd.DataFrame, selection: str, evaluation: str
) -> pd.DataFrame:
    """One row a trial for every chosen point under one kind of report, families included; `source` is who trained it.

    Args:
        grid: rows of the grid runs.
        fresh: rows of the fresh runs at the chosen points, or None where no report asks for them.
        chosen: what `select` gives.
        selection: which selection to report.
        evaluation: "same", the runs that chose the point; "fresh", new ones.
    """
    points = chosen[chosen["selection"] == selection][[*RUN, "trial", *POINT]]
    losses = grid.merge(points, on=[*RUN, "trial", *POINT])
    if evaluation == "same":
        rows = losses
    elif fresh is None:
        raise ValueError("evaluation = 'fresh': no fresh runs were given")
    else:
        rows = fresh.merge(points, on=[*RUN, "trial", *POINT])
    rows = rows.assign(source=rows["algorithm"])
    return pd.concat([rows, *_better(rows, losses, selection)], ignore_index=True)


def at_edge(chosen: pd.DataFrame, tried: pd.DataFrame) -> str:
    """`lowest stepsize`, `highest clip`, …: parameters whose chosen value is an end of those tried, in most trials.

    A better point may lie beyond such an end. No clipping at all, ∞, is not an end, and neither is one of a phase
    length, whose grid is all that the paper has.

    Args:
        chosen: rows with the columns stepsize and clip, one a trial.
        tried: the points of their grid, same columns.
    """
    found = []
    for name in ("stepsize", "clip"):
        values = tried[name].dropna().unique()
        if len(values) < 2:
            continue
        for word, end in (("lowest", values.min()), ("highest", values.max())):
            if math.isfinite(end) and (chosen[name] == end).mean() > 0.5:
                found.append(f"{word} {name}")
    return "; ".join(found)


def _edges(rows: pd.DataFrame, grid: pd.DataFrame) -> list[str]:
    """`at_edge` of every run and ε of `rows`, in the order of `summarise`."""
    setting = ["experiment", "reading", "M", "R", "epsilon"]
    tried = dict(list(grid.fillna({"epsilon": -1.0}).groupby([*setting, "algorithm"], dropna=False)))
    found = []
    for _, group in rows.groupby([*RUN, "epsilon"], dropna=False, sort=False):
        parts = [
            tried.get((*own.fillna({"epsilon": -1.0})[setting].iloc[0], source), grid.iloc[:0])
            for source, own in group.groupby("source")
        ]
        found.append(at_edge(group, pd.concat(parts)))
    return found


def summarise(rows: pd.DataFrame, delivered: Callable[[pd.Series], float]) -> pd.DataFrame:
    """One table row for each run and ε: means and percentiles over trials.

    Args:
        rows: one row a trial, as `report_rows` gives them.
        delivered: delivered ε of a row of `rows`, by its `source`, setting, ε and phase length.
    """
    summary = []
    for key, group in rows.groupby([*RUN, "epsilon"], dropna=False, sort=False):
        first = group.iloc[0]
        private = not math.isnan(first["epsilon"])
        errors = group["test_error"].to_numpy()
        point = {
            name: group[name].iloc[0] if group[name].nunique() == 1 else math.nan
            for name in ("stepsize", "clip", "phase_length", "K")
        }
        # Trials may have chosen different shapes; the largest delivered ε is the one that holds for the row.
        values = (
            [delivered(row) for _, row in group.drop_duplicates(["phase_length", "source"]).iterrows()]
            if private
            else []
        )
        summary.append(
            dict(zip([*RUN, "epsilon"], key, strict=True))
            | point
            | {
                "private": private,
                "N": int(first["N"]),
                "n": int(first["n"]),
                "delta": first["delta"],
                "delivered_epsilon": max(values) if values else math.nan,
                "proven": max(values) <= first["epsilon"] if values else math.nan,
                "trials": len(group),
                "diverged": int(group["diverged"].sum()),
                "train_loss_mean": _mean(group["train_loss"].to_numpy()),
                "test_error_mean": _mean(errors),
                "test_error_p05": _percentile(errors, 5),
                "test_error_p95": _percentile(errors, 95),
                "seconds": group["seconds"].mean(),
            }
        )
    return pd.DataFrame(summary)


def _mean(values: np.ndarray) -> float:
    """Mean over all trials: one that is not finite makes the mean infinite and is not left out."""
    return float(np.mean(values)) if np.isfinite(values).all() else math.inf


def _percentile(values: np.ndarray, q: float) -> float:
    """Percentile that allows infinities (a diverged regression)."""
    return float(np.percentile(values, q, method="linear" if np.isfinite(values).all() else "nearest"))


def reported(grid: pd.DataFrame, fresh: pd.DataFrame | None, chosen: pd.DataFrame, config: Experiment) -> pd.DataFrame:
    """One row a trial behind every row of the default report (the experiment's first): what pairs are compared by."""
    default = config.reports[0]
    grid, fresh = complete(grid, config), None if fresh is None else complete(fresh, config)
    rows = report_rows(grid, fresh, chosen, default.selection, default.evaluation)
    order = {name: position for position, name in enumerate([*config.algorithms, *families(config.algorithms)])}
    rows = rows.assign(position=rows["algorithm"].map(order))
    rows = rows.sort_values(["reading", "M", "R", "position", "epsilon", "trial"], kind="stable")
    return rows[REPORTED_COLUMNS].reset_index(drop=True)


def table(
    grid: pd.DataFrame,
    fresh: pd.DataFrame | None,
    chosen: pd.DataFrame,
    config: Experiment,
    delivered: Callable[[pd.Series], float],
) -> pd.DataFrame:
    """The experiment's table: a row for each algorithm, M, R, ε and reading.

    The first of the experiment's reports is the default; another one's rows carry how they differ in `reading`.
    """
    grid, fresh = complete(grid, config), None if fresh is None else complete(fresh, config)
    default = config.reports[0]
    parts = []
    for report in config.reports:
        rows = report_rows(grid, fresh, chosen, report.selection, report.evaluation)
        part = summarise(rows, delivered).assign(edge=_edges(rows, grid))
        part["selection"], part["evaluation"] = report.selection, report.evaluation
        extra = [
            f"{name}={getattr(report, name)}"
            for name in ("selection", "evaluation")
            if getattr(report, name) != getattr(default, name)
        ]
        part["reading"] = [";".join([label, *extra] if label else extra) for label in part["reading"]]
        parts.append(part)
    # Whole numbers that are empty where trials chose differently.
    result = pd.concat(parts, ignore_index=True).astype({"K": "Int64", "phase_length": "Int64"})
    order = {name: position for position, name in enumerate([*config.algorithms, *families(config.algorithms)])}
    result = result.assign(position=result["algorithm"].map(order)).sort_values(
        ["reading", "M", "R", "position", "epsilon"], kind="stable"
    )
    return result[[*TABLE_COLUMNS, *TABLE_EXTRA]].reset_index(drop=True)
