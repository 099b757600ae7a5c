"""Test error against ε, one line an algorithm, with bars over trials."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from silodp.report.figures.axes import (
    TOP_EDGE,
    dodged,
    mark,
    mark_beyond,
    new_axes,
    set_epsilon_axis,
    set_page,
    stretching,
    zoom_axes,
)
from silodp.report.figures.notes import at_edge, bars, beyond_axis, diverged, edges, over_claim, trials
from silodp.report.figures.slices import checked
from silodp.report.figures.style import baseline_looks, in_order, inside, label, looks, styled, tint, widths
from silodp.report.figures.svg import say
from silodp.report.numbers import bounded, measured

# About a marker, whatever that is: the point does not have the ε it is drawn at.
RING: dict[str, Any] = {
    "ls": "none",
    "marker": "o",
    "ms": 9.5,
    "mfc": "none",
    "mec": "#444444",
    "mew": 0.9,
    "zorder": 5,
}
# Inside a marker: the chosen point lies at an end of its grid.
CROSS: dict[str, Any] = {"ls": "none", "marker": "+", "ms": 4.2, "mew": 1.0, "zorder": 6}
COLUMNS = ["delivered_epsilon", "trials", "diverged", "test_error_mean", "test_error_p05", "test_error_p95"]


def error_vs_epsilon(table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None) -> Figure:
    """Draw one (experiment, M, R, reading) slice of a results table (convex paper Fig. 2, non-convex paper Figs. 4–10).

    Private algorithms are lines over ε, non-private ones horizontal lines with a hatched band. A point where trials
    diverged has a hollow marker; one whose mean is not finite sits, hollow, on the upper edge; one that delivers a
    larger ε than it claims is ringed; one whose step size or clip is an end of its grid is crossed, if `table` has the
    column `edge`. Of SPIDER the reported row `spider` is drawn where it exists, else its members.
    Where one algorithm stretches the error axis, a second panel shows the others. With fewer than 10 trials bars are
    intervals of the mean, if `table` has them, else percentiles. Raises ValueError when the table is not such a slice.
    """
    rows = checked(table, COLUMNS)
    private = rows[rows["private"]]
    with styled():
        axes = new_axes(title, "privacy parameter ε", ylabel)
        handles = _panel(axes, rows, in_order(private["algorithm"]))
        worst = _stretching(rows)
        if worst is not None and axes.get_yscale() == "linear":
            others = rows[~(rows["private"] & (rows["algorithm"] == worst))]
            _panel(zoom_axes(axes, label(worst)), others, in_order(private["algorithm"]))
        if (private["delivered_epsilon"] > private["epsilon"]).any():
            handles.append(_ring_key())
        if (rows["diverged"] > 0).any():
            handles.append(_hollow_key())
        if at_edge(private).any():
            handles.append(_cross_key())
        notes = [
            *(note, trials(rows), diverged(rows), beyond_axis(rows, "test_error_mean"), over_claim(rows)),
            edges(rows),
        ]
        return set_page(axes, handles, notes)


def _panel(axes: Axes, rows: pd.DataFrame, names: list[str]) -> list[Any]:
    """Everything in one panel; returns handles for the legend. `names` fixes every algorithm's place."""
    private = rows[rows["private"]]
    handles: list[Any] = [*_draw_private(axes, private, names), *_draw_baselines(axes, rows[~rows["private"]])]
    _set_error_axis(axes, rows)
    set_epsilon_axis(axes, private["epsilon"])
    axes.grid(axis="x", visible=False)
    return handles


def _stretching(rows: pd.DataFrame) -> str | None:
    """The private algorithm that stretches the error axis; None where there is no such one."""
    drawn = rows[["test_error_mean", *bars(rows)]].where(np.isfinite).max(axis=1)
    private = rows["private"]
    return stretching(drawn[private].groupby(rows["algorithm"]).max(), drawn[~private].max())


def _draw_private(axes: Axes, rows: pd.DataFrame, names: list[str]) -> list[Line2D]:
    """One line with bars an algorithm; returns the lines for the legend."""
    low_column, high_column = bars(rows)
    lines = []
    shifts = dodged(rows["epsilon"], len(names))
    for (name, look), shift, width in zip(looks(names).items(), shifts, widths(len(names)), strict=True):
        of = rows[rows["algorithm"] == name]
        if of.empty:
            continue
        x = of["epsilon"].to_numpy(float) * shift
        low, high = _finite(of[low_column]), _finite(of[high_column])
        # About their own middle, not the mean: a skewed mean may lie outside its percentiles.
        bar = axes.errorbar(
            x, (low + high) / 2, yerr=(high - low) / 2, fmt="none", ecolor=look.colour, capsize=2.0, lw=1.0
        )
        for part in (*bar.lines[1], *bar.lines[2]):
            part.set_gid(f"bars:{name}")
        finite = _finite(of["test_error_mean"])
        text = label(name, reading=of["reading"].iloc[0])
        said = [_said(text, row) for row in of.to_dict("records")]
        style: dict[str, Any] = {"color": look.colour, "ls": look.line, "marker": look.marker, "lw": width}
        lines += axes.plot(x, finite, label=text, zorder=3, gid=f"line:{name}", **style)
        say(axes.figure, f"line:{name}", [words for words, value in zip(said, finite, strict=True) if value == value])
        some = of["diverged"].to_numpy() > 0
        mark(axes, x[some], finite[some], look, f"diverged:{name}")
        beyond = np.isnan(finite)
        mark_beyond(axes, x[beyond], look, f"beyond:{name}", [w for w, out in zip(said, beyond, strict=True) if out])
        over = (of["delivered_epsilon"] > of["epsilon"]).to_numpy()
        axes.plot(x[over], finite[over], gid=f"over:{name}", **RING)
        end = at_edge(of).to_numpy()
        for part, colour in ((end & ~some, inside(look.colour)), (end & some, look.colour)):
            axes.plot(x[part], finite[part], gid=f"edge:{name}", color=colour, **CROSS)
    return lines


def _said(text: str, row: dict[Any, Any]) -> str:
    """What rests on a point: whose it is, at which ε, what it is worth."""
    claimed = f" at ε = {row['epsilon']:g}" if row["private"] else ""
    low, high = (measured(row[name]) for name in bars(pd.DataFrame([row])))
    said = f"{text}{claimed}: {measured(row['test_error_mean'])} ({low} to {high})"
    if row["private"]:
        said += f"; delivered ε {bounded(row['delivered_epsilon'])}"
    if at_edge(pd.DataFrame([row])).all():
        said += f"; at the {row['edge'].replace('stepsize', 'step size').replace('; ', ' and ')} of its grid"
    return said + (f"; {int(row['diverged'])} of {int(row['trials'])} trials diverged" if row["diverged"] else "")


def _finite(values: pd.Series) -> np.ndarray:
    """Values with NaN for what is not finite."""
    return values.where(np.isfinite(values)).to_numpy(float)


def _draw_baselines(axes: Axes, rows: pd.DataFrame) -> list[tuple[Patch, Line2D]]:
    """A horizontal line and band for each non-private algorithm; returns legend handles."""
    handles = []
    low_column, high_column = bars(rows) if len(rows) else ("", "")
    for name, look in baseline_looks(rows["algorithm"]).items():
        row = rows[rows["algorithm"] == name].iloc[0]
        text, series = label(name, private=False), f"{name}-plain"
        band: dict[str, Any] = {
            "facecolor": (*tint(look.colour, 1.0), 0.07),
            "edgecolor": tint(look.colour, 0.35),
            "hatch": look.hatch,
        }
        if np.isfinite(row[low_column]) and np.isfinite(row[high_column]):
            axes.axhspan(row[low_column], row[high_column], lw=0, zorder=0.5, gid=f"band:{series}", **band)
        line_style: dict[str, Any] = {"color": look.colour, "ls": look.line, "lw": 1.3, "zorder": 2, "label": text}
        line_style["gid"] = f"line:{series}"
        if np.isfinite(row["test_error_mean"]):
            line = axes.axhline(row["test_error_mean"], **line_style)
        else:
            (line,) = axes.plot([0, 1], [TOP_EDGE, TOP_EDGE], transform=axes.transAxes, **line_style)
        handles.append((Patch(lw=0, **band), line))
    return handles


def _ring_key() -> Line2D:
    return Line2D([], [], label="ringed: more ε than claimed", **RING)


def _hollow_key() -> Line2D:
    return Line2D([], [], ls="none", marker="o", mfc="white", mec="#444444", mew=1.4, label="hollow: trials diverged")


def _cross_key() -> tuple[Line2D, Line2D]:
    disc = Line2D([], [], ls="none", marker="o", color="#444444")
    return disc, Line2D([], [], label="crossed: at an end of its grid", **(CROSS | {"color": "white"}))


def _set_error_axis(axes: Axes, rows: pd.DataFrame) -> None:
    """Linear, from 0 where that costs little room; logarithmic where a diverged loss would flatten everything else."""
    values = rows[["test_error_mean", *bars(rows)]].to_numpy(float)
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() > max(1.0, 20 * np.median(values)):
        axes.set_yscale("log")
    elif values.size and 0 <= values.min() < 0.3 * values.max():
        axes.set_ylim(bottom=0)
