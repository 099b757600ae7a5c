"""Test error against the ε that is delivered: algorithms compared at the privacy that is proven for them."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.report.figures.axes import mark, mark_zeros, new_axes, set_log_ticks, set_page, stretching, zoom_axes
from silodp.report.figures.notes import zero
from silodp.report.figures.slices import checked
from silodp.report.figures.style import in_order, label, looks, styled, widths
from silodp.report.figures.svg import say
from silodp.report.numbers import bounded, measured

COLUMNS = ["delivered_epsilon", "trials", "test_error_mean"]


def error_vs_delivered(
    table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None
) -> Figure:
    """Draw the private rows of one (experiment, M, R, reading) slice at the ε they deliver, joined in that order.

    A vertical line compares algorithms at equal proven privacy, whatever their noise formulas claim. Hollow points
    deliver more than they claim, points of ε = 0 are on the left edge. Points with an error or ε that is not finite are
    left out and counted in a note.
    Raises ValueError when the table is not such a slice or has no private row.
    """
    rows = checked(table, COLUMNS)
    rows = rows[rows["private"]]
    if rows.empty:
        raise ValueError("figure: error_vs_delivered needs private rows, the table has none")
    finite = rows[np.isfinite(rows["delivered_epsilon"]) & np.isfinite(rows["test_error_mean"])]
    with styled():
        axes = new_axes(title, "delivered ε (proven upper bound)", ylabel)
        axes.set_xscale("log")
        names = in_order(rows["algorithm"])
        handles = _lines(axes, finite, names)
        worst = stretching(finite.groupby("algorithm")["test_error_mean"].max(), np.nan)
        if worst is not None:
            below = zoom_axes(axes, label(worst))
            _lines(below, finite[finite["algorithm"] != worst], names)
        set_log_ticks(axes)
        left_out = len(rows) - len(finite)
        over = (finite["delivered_epsilon"] > finite["epsilon"]).any()
        notes = [
            note,
            f"{int(rows['trials'].max())} trials a point.",
            zero(finite, "left"),
            "Hollow: more ε than claimed." if over else None,
            f"Left out, as error or ε is not finite: {left_out} of {len(rows)} points." if left_out else None,
        ]
        return set_page(axes, handles, [" ".join(one for one in notes if one)])


def _lines(axes: Axes, rows: pd.DataFrame, names: list[str]) -> list[Line2D]:
    """One line an algorithm; returns the lines for the legend."""
    lines = []
    for (name, look), width in zip(looks(names).items(), widths(len(names)), strict=True):
        of = rows[rows["algorithm"] == name].sort_values("delivered_epsilon", kind="stable")
        if of.empty:
            continue
        text = label(name, reading=of["reading"].iloc[0])
        none, of = of[of["delivered_epsilon"] == 0], of[of["delivered_epsilon"] > 0]
        words = [_said(text, row) for row in none.to_dict("records")]
        mark_zeros(axes, none["test_error_mean"].to_numpy(float), look, f"zero:{name}", words, upright=False)
        x, y = of["delivered_epsilon"].to_numpy(float), of["test_error_mean"].to_numpy(float)
        style: dict[str, Any] = {"color": look.colour, "ls": look.line, "marker": look.marker, "lw": width}
        lines += axes.plot(x, y, label=text, zorder=3, gid=f"line:{name}", **style)
        say(axes.figure, f"line:{name}", [_said(text, row) for row in of.to_dict("records")])
        over = x > of["epsilon"].to_numpy(float)
        mark(axes, x[over], y[over], look, f"over:{name}")
    return lines


def _said(text: str, row: dict[Any, Any]) -> str:
    delivered = bounded(row["delivered_epsilon"])
    return f"{text}, claimed ε = {row['epsilon']:g}, delivered {delivered}: {measured(row['test_error_mean'])}"
