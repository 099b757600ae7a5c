"""Delivered against claimed ε, of trained algorithms and of the papers' noise formulas, with the line of equality."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from silodp.algorithms.base import Look
from silodp.report.figures.axes import draw_line, log_ticks, mark_beyond, mark_zeros, new_axes, set_page
from silodp.report.figures.notes import beyond_axis, over_claim, zero
from silodp.report.figures.slices import private_rows
from silodp.report.figures.style import label, looks, styled
from silodp.report.numbers import bounded

OVER: dict[str, Any] = {"facecolor": "#f4f4f4", "edgecolor": "#c9c9c9", "hatch": "////", "lw": 0}
# Seven lines, told apart by shape as well as colour.
_LOOKS = [
    Look(0, "#004488", "s", "-"),
    Look(1, "#b3485a", "o", (0, (5, 1.8))),
    Look(2, "#d9a62e", "^", (0, (5, 1.5, 1.2, 1.5))),
    Look(3, "#3a9a92", "v", (0, (6, 1.5, 1, 1.5, 1, 1.5))),
    Look(4, "#30102f", "D", (0, (1.2, 1.2))),
    Look(5, "#9fd3e6", "X", (0, (3, 1, 1, 1))),
    Look(6, "#6b4a9c", "P", (0, (8, 2))),
]


def delivered_vs_claimed(
    table: pd.DataFrame, *, title: str, ylabel: str = "delivered ε", note: str | None = None
) -> Figure:
    """Draw the delivered against the claimed ε of every private row of one (experiment, M, R, reading) slice.

    Points in the hatched half break their claim and are hollow; a delivered ε that is not finite is on the upper edge,
    one of 0, which δ alone covers, on the lower. Raises ValueError when the table is not such a slice or has no private
    row.
    """
    rows = private_rows(table, ["delivered_epsilon"], "delivered_vs_claimed")
    curves = [
        (name, look, label(name, reading=rows["reading"].iloc[0]), rows[rows["algorithm"] == name])
        for name, look in looks(rows["algorithm"]).items()
    ]
    with styled():
        axes = new_axes(title, "claimed ε", ylabel)
        handles = _draw_delivered(axes, curves, "epsilon")
        notes = [note, zero(rows, "lower"), beyond_axis(rows, "delivered_epsilon"), over_claim(rows, "Hollow")]
        return set_page(axes, handles, notes)


def draw_formulas(rows: pd.DataFrame, *, title: str) -> Figure:
    """Draw one paper's rows of `silodp.experiments.formulas.formula_rows`; points over their claim are hollow."""
    groups = rows.groupby("formula", sort=False)
    curves = [(str(name), look, str(name), part) for (name, part), look in zip(groups, _LOOKS, strict=False)]
    with styled():
        axes = new_axes(title, "claimed ε", "delivered ε")
        handles = _draw_delivered(axes, curves, "claimed_epsilon")
        first = rows.iloc[0]
        return set_page(axes, handles, [f"n = {first['n']}, R = {first['R']}, δ = 1/n²; hollow: more than claimed."])


def _draw_delivered(axes: Axes, curves: Sequence[tuple[str, Look, str, pd.DataFrame]], claim: str) -> list[Any]:
    """Curves (name, look, label, rows) over the column `claim` beside the diagonal; returns what the legend shows."""
    axes.set(xscale="log", yscale="log")
    handles: list[Any] = []
    for name, look, text, rows in curves:
        x, y = rows[[claim, "delivered_epsilon"]].to_numpy(float).T
        finite = np.isfinite(y)
        words = [f"{text}: claimed ε = {a:g}, delivered {bounded(b)}" for a, b in zip(x, y, strict=True)]
        drawn = np.where(finite & (y > 0), y, np.nan)
        handles.append(draw_line(axes, name, look, text, (x, drawn), words, hollow=finite & (y > x)))
        mark_beyond(axes, x[~finite], look, name)
        zeros = [words[place] for place in np.flatnonzero(y == 0)]
        mark_zeros(axes, x[y == 0], look, name, zeros, upright=True)
    table = pd.concat([rows for *_, rows in curves])
    claims, values = table[claim].to_numpy(float), table["delivered_epsilon"].to_numpy(float)
    return handles + _agreement(axes, claims, np.r_[claims, values[np.isfinite(values) & (values > 0)]])


def _agreement(axes: Axes, claims: np.ndarray, values: np.ndarray) -> list[Line2D | Patch]:
    """The diagonal over the range of the claims, the half above it, and 1-2-5 ticks on both axes."""
    left, right = claims.min() / 1.3, claims.max() * 1.3
    low, high = min(values.min() / 1.3, left), max(values.max() * 1.3, right)
    axes.fill_between([left, right], [left, right], high, zorder=0.5, **OVER)
    (agree,) = axes.plot([left, right], [left, right], color="black", lw=1.0, label="delivered = claimed", zorder=2)
    axes.set(xlim=(left, right), ylim=(low, high))
    log_ticks(axes.xaxis, left, right, most=9)
    log_ticks(axes.yaxis, low, high, most=16)
    return [agree, Patch(**OVER, label="claim exceeded")]
