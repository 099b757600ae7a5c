"""The true ε against the claimed one, of trained algorithms and of the papers' noise formulas, with their equality."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Look
from silodp.report.figures.axes import dodged, log_ticks, new_axes, set_page
from silodp.report.figures.intervals import draw_intervals, limits, standing_keys
from silodp.report.figures.notes import stand, zero
from silodp.report.figures.slices import private_rows
from silodp.report.figures.style import label, looks, styled


def delivered_vs_claimed(table: pd.DataFrame, *, title: str, ylabel: str = "true ε", note: str | None = None) -> Figure:
    """Draw the interval of the true ε against the claimed ε of every private row of one (experiment, M, R, reading).

    An upper end of 0, which δ alone covers, is on the lower edge. Raises ValueError when the table is not such a slice
    or has no private row.
    """
    rows = private_rows(table, ["delivered_epsilon"], "delivered_vs_claimed")
    curves = [
        (name, look, label(name, reading=rows["reading"].iloc[0]), rows[rows["algorithm"] == name])
        for name, look in looks(rows["algorithm"]).items()
    ]
    with styled():
        axes = new_axes(title, "claimed ε", ylabel)
        return set_page(axes, _draw(axes, curves), [note, zero(rows, "lower"), stand(rows)])


def draw_formulas(rows: pd.DataFrame, *, title: str) -> Figure:
    """Draw one paper's rows of `silodp.experiments.formulas.formula_rows`."""
    groups = rows.rename(columns={"claimed_epsilon": "epsilon"}).groupby("formula", sort=False)
    pairs = zip(looks(ALGORITHMS).values(), groups, strict=False)
    curves = [(str(name), look, str(name), part) for look, (name, part) in pairs]
    with styled():
        axes = new_axes(title, "claimed ε", "true ε")
        first = rows.iloc[0]
        return set_page(axes, _draw(axes, curves), [f"n = {first['n']}, R = {first['R']}, δ = 1/n²."])


def _draw(axes: Axes, curves: Sequence[tuple[str, Look, str, pd.DataFrame]]) -> list[Any]:
    """Bars of curves (name, look, label, rows) beside the diagonal; returns what the legend shows."""
    table = pd.concat([rows for *_, rows in curves])
    claims = table["epsilon"].to_numpy(float)
    left, right, (low, high) = claims.min() / 1.3, claims.max() * 1.3, limits(table)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, high))
    (agree,) = axes.plot([left, right], [left, right], color="black", lw=1.0, label="true = claimed", zorder=2)
    log_ticks(axes.xaxis, left, right, most=9)
    log_ticks(axes.yaxis, low, high, most=16)
    handles: list[Any] = []
    for (name, look, text, rows), shift in zip(curves, dodged(claims, len(curves)), strict=True):
        handles.append(draw_intervals(axes, name, look, text, rows, rows["epsilon"].to_numpy() * shift, upright=True))
    return [*handles, agree, *standing_keys(table)]
