"""The table of an experiment: what every chosen point comes to over its trials."""

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from silodp.algorithms import families
from silodp.config.experiment import Experiment
from silodp.experiments.columns import REPORTED_COLUMNS, TABLE_COLUMNS, TABLE_EXTRA
from silodp.experiments.selection import RUN, complete, scores
from silodp.experiments.task import POINT

# What a row of the privacy table is about.
KEY = ["algorithm", "reading", "M", "R", "epsilon", "phase_length"]
ENDS = ["delivered_epsilon", "delivered_lower"]


def _better(rows: pd.DataFrame, losses: pd.DataFrame, selection: str) -> Iterator[pd.DataFrame]:
    """Rows of the better of each of the `families` for each run without its algorithm, under the family's name."""
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
        fresh: rows of the fresh runs at the chosen points, or None where no report asks for them.
        chosen: what `select` gives.
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
    length, whose grid is all that the paper has. `chosen` has a row a trial, `tried` the points of the grid.
    """
    edges = []
    for name in ("stepsize", "clip"):
        values = tried[name].dropna()
        for word, end in (("lowest", values.min()), ("highest", values.max())):
            if values.nunique() > 1 and math.isfinite(end) and (chosen[name] == end).mean() > 0.5:
                edges.append(f"{word} {name}")
    return "; ".join(edges)


def _edges(rows: pd.DataFrame, grid: pd.DataFrame) -> list[str]:
    """`at_edge` of every run and ε of `rows`, in the order of `summarise`."""
    by = ["experiment", "source", "reading", "M", "R", "epsilon"]
    tried = grid.rename(columns={"algorithm": "source"})[[*by, "stepsize", "clip"]].drop_duplicates()
    groups = rows.groupby([*RUN, "epsilon"], dropna=False, sort=False)
    return [at_edge(group, tried.merge(group[by].drop_duplicates())) for _, group in groups]


def summarise(rows: pd.DataFrame, delivered: Callable[[pd.Series], tuple[float, float]]) -> pd.DataFrame:
    """One table row for each run and ε: means and percentiles over trials.

    `rows` are those of `report_rows`; `delivered` is what `delivered_lookup` gives.
    """
    by = [*RUN, "epsilon"]
    summary = (
        rows.groupby(by, dropna=False, sort=False)
        .agg(
            **{name: (name, _common) for name in ("stepsize", "clip", "phase_length", "K")},
            **{name: (name, "first") for name in ("N", "n", "delta")},
            trials=("trial", "size"),
            diverged=("diverged", "sum"),
            train_loss_mean=("train_loss", _mean),
            test_error_mean=("test_error", _mean),
            test_error_p05=("test_error", functools.partial(_percentile, q=5)),
            test_error_p95=("test_error", functools.partial(_percentile, q=95)),
            seconds=("seconds", "mean"),
        )
        .reset_index()
    )
    # Trials may have chosen different shapes; the one with the largest upper end, or with none, stands for the row.
    shapes = rows[rows["epsilon"].notna()].drop_duplicates([*by, "phase_length", "source"])
    shapes[ENDS] = np.reshape([delivered(row) for _, row in shapes.iterrows()], (-1, 2))
    largest = shapes.sort_values("delivered_epsilon", kind="stable").drop_duplicates(by, keep="last")
    summary = summary.merge(largest[[*by, *ENDS]], how="left", on=by)
    private = summary["epsilon"].notna()
    proven = (summary["delivered_epsilon"] <= summary["epsilon"]).astype(object)
    return summary.assign(private=private, proven=proven.where(private, math.nan))


def _common(values: pd.Series) -> float:
    return values.iloc[0] if values.nunique() == 1 else math.nan


def _mean(values: pd.Series) -> float:
    """Mean over all trials: one that is not finite makes the mean infinite and is not left out."""
    return float(np.mean(values.to_numpy())) if np.isfinite(values).all() else math.inf


def _percentile(values: pd.Series, q: float) -> float:
    """Percentile that allows infinities (a diverged regression)."""
    return float(np.percentile(values.to_numpy(), q, method="linear" if np.isfinite(values).all() else "nearest"))


def _sorted(rows: pd.DataFrame, config: Experiment, columns: list[str]) -> pd.DataFrame:
    """`columns` of the rows, sorted; algorithms in the experiment's order, families last."""
    order = {name: position for position, name in enumerate([*config.algorithms, *families(config.algorithms)])}
    by = [name for name in ("reading", "M", "R", "position", "epsilon", "trial") if name == "position" or name in rows]
    return rows.assign(position=rows["algorithm"].map(order)).sort_values(by, kind="stable", ignore_index=True)[columns]


def reported(grid: pd.DataFrame, fresh: pd.DataFrame | None, chosen: pd.DataFrame, config: Experiment) -> pd.DataFrame:
    """One row a trial behind every row of the default report (the experiment's first): what pairs are compared by."""
    default = config.reports[0]
    grid, fresh = complete(grid, config), None if fresh is None else complete(fresh, config)
    return _sorted(report_rows(grid, fresh, chosen, default.selection, default.evaluation), config, REPORTED_COLUMNS)


def table(
    grid: pd.DataFrame,
    fresh: pd.DataFrame | None,
    chosen: pd.DataFrame,
    config: Experiment,
    delivered: Callable[[pd.Series], tuple[float, float]],
) -> pd.DataFrame:
    """The experiment's table: a row for each algorithm, M, R, ε and reading.

    The first of the experiment's reports is the default; another one's rows carry how they differ in `reading`.
    """
    grid, fresh = complete(grid, config), None if fresh is None else complete(fresh, config)
    default, parts = config.reports[0].model_dump(), []
    for report in config.reports:
        rows = report_rows(grid, fresh, chosen, report.selection, report.evaluation)
        differs = [f"{name}={value}" for name, value in report.model_dump().items() if value != default[name]]
        part = summarise(rows, delivered).assign(edge=_edges(rows, grid), **report.model_dump())
        parts.append(part.assign(reading=[";".join(filter(None, [label, *differs])) for label in part["reading"]]))
    # Whole numbers that are empty where trials chose differently.
    result = pd.concat(parts, ignore_index=True).astype({"K": "Int64", "phase_length": "Int64"})
    return _sorted(result, config, [*TABLE_COLUMNS, *TABLE_EXTRA])


def delivered_lookup(rows: pd.DataFrame) -> Callable[[pd.Series], tuple[float, float]]:
    """Function from a trial row (`source` in place of its algorithm) to (upper, lower) end of its true ε in `rows`."""
    keys = rows[KEY].astype({"M": int, "R": int, "epsilon": float, "phase_length": int})
    if keys.duplicated().any():
        raise ValueError(
            f"rows of privacy: {keys[keys.duplicated()].values.tolist()[0]}: twice: must be one row a point"
        )
    ends = rows[ENDS].apply(pd.to_numeric, errors="coerce")
    values = dict(zip(*(table.itertuples(index=False, name=None) for table in (keys, ends)), strict=True))

    def ends_of(row: pd.Series) -> tuple[float, float]:
        key = tuple(row[["source", *KEY[1:]]])
        if key not in values:
            named = ", ".join(f"{name} {value}" for name, value in zip(KEY, key, strict=True))
            raise ValueError(f"rows of privacy: {named}: missing: must have every point of the table")
        return values[key]

    return ends_of
