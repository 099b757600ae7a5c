"""The ε that an accountant finds delivered, against the ε that was asked for, with the line where both agree."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from silodp.report.figures.axes import log_ticks, mark, mark_beyond, mark_zeros, new_axes, set_page
from silodp.report.figures.notes import beyond_axis, over_claim, zero
from silodp.report.figures.slices import checked
from silodp.report.figures.style import label, looks, styled
from silodp.report.figures.svg import say
from silodp.report.numbers import bounded

OVER: dict[str, Any] = {"facecolor": "#f4f4f4", "edgecolor": "#c9c9c9", "hatch": "////", "lw": 0}


def delivered_vs_claimed(
    table: pd.DataFrame, *, title: str, ylabel: str = "delivered ε", note: str | None = None
) -> Figure:
    """Draw the delivered against the claimed ε of every private row of one (experiment, M, R, reading) slice.

    Points in the hatched half break their claim and are hollow; a delivered ε that is not finite is on the upper edge,
    one of 0, which δ alone covers, on the lower. Raises ValueError when the table is not such a slice or has no private
    row.
    """
    rows = checked(table, ["delivered_epsilon"])
    rows = rows[rows["private"]]
    if rows.empty:
        raise ValueError("figure: delivered_vs_claimed needs private rows, the table has none")
    if (rows["delivered_epsilon"] < 0).any():
        raise ValueError("figure: a delivered ε is below 0, allowed: >= 0, or empty or inf where there is no bound")
    finite = rows["delivered_epsilon"].where(np.isfinite(rows["delivered_epsilon"]))
    above = finite.where(finite > 0)
    with styled():
        axes = new_axes(title, "claimed ε", ylabel)
        axes.set(xscale="log", yscale="log")
        handles: list[Any] = []
        for name, look in looks(rows["algorithm"]).items():
            of = rows["algorithm"] == name
            x, y = rows.loc[of, "epsilon"].to_numpy(float), finite[of].to_numpy(float)
            text = label(name, reading=rows["reading"].iloc[0])
            style: dict[str, Any] = {"color": look.colour, "ls": look.line, "marker": look.marker}
            positive = np.where(y > 0, y, np.nan)
            handles += axes.plot(x, positive, label=text, zorder=3, gid=f"line:{name}", **style)
            pairs = [(a, b) for a, b in zip(x, positive, strict=True) if b == b]
            say(axes.figure, f"line:{name}", [f"{text}: claimed ε = {a:g}, delivered {bounded(b)}" for a, b in pairs])
            mark(axes, x[y > x], y[y > x], look, f"over:{name}")
            mark_beyond(axes, x[np.isnan(y)], look, f"beyond:{name}")
            words = [f"{text}: claimed ε = {a:g}, delivered 0" for a in x[y == 0]]
            mark_zeros(axes, x[y == 0], look, f"zero:{name}", words, upright=True)
        handles += draw_agreement(axes, rows["epsilon"].to_numpy(float), np.r_[rows["epsilon"], above.dropna()])
        notes = [note, zero(rows, "lower"), beyond_axis(rows, "delivered_epsilon"), over_claim(rows, "Hollow")]
        return set_page(axes, handles, notes)


def draw_agreement(axes: Axes, claims: np.ndarray, values: np.ndarray) -> list[Line2D | Patch]:
    """The diagonal over the range of the claims, the half above it, and 1-2-5 ticks on both axes."""
    left, right = claims.min() / 1.3, claims.max() * 1.3
    low, high = min(values.min() / 1.3, left), max(values.max() * 1.3, right)
    axes.fill_between([left, right], [left, right], high, zorder=0.5, **OVER)
    (agree,) = axes.plot([left, right], [left, right], color="black", lw=1.0, label="delivered = claimed", zorder=2)
    axes.set(xlim=(left, right), ylim=(low, high))
    log_ticks(axes.xaxis, left, right, most=9)
    log_ticks(axes.yaxis, low, high, most=16)
    return [agree, Patch(**OVER, label="claim exceeded")]
