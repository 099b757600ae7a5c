"""Test error against ε, one line an algorithm, with bars over trials."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.report.figures.axes import (
    MORE_PRIVATE,
    TOP_EDGE,
    cross,
    cross_beyond,
    cross_key,
    dodged,
    draw_line,
    new_axes,
    set_epsilon_axis,
    set_page,
    stretching,
    zoom_axes,
)
from silodp.report.figures.intervals import draw_standings, marks_of
from silodp.report.figures.notes import at_edge, bar_ends, bars, beyond_axis, claims_note, diverged, edges, trials
from silodp.report.figures.slices import TRIALS, drawn_rows
from silodp.report.figures.style import label, looks, sort_algorithms, styled, tint, widths
from silodp.report.numbers import interval, measured


def error_vs_epsilon(table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None) -> Figure:
    """Draw one (experiment, M, R, reading) slice of a results table (convex paper Fig. 2, non-convex paper Figs. 4–10).

    Private algorithms are lines over ε, non-private ones dashed levels with a band, in the colour of the algorithm. A
    mark is full where the claim is kept, half where it is not certified, empty where it is violated; a cross lies over
    a point where trials diverged, and on the upper edge where the mean is not finite. Of SPIDER the reported row
    `spider` is drawn where it exists, else its members. Where one algorithm stretches the error axis, a second panel
    shows the others. With fewer than 10 trials bars are intervals of the mean, if `table` has them, else percentiles;
    with fewer than 5 trials dots are the trials.
    """
    rows = drawn_rows(table)
    private = rows[rows["private"]]
    names = sort_algorithms(private["algorithm"])
    with styled():
        axes = new_axes(title, f"claimed {MORE_PRIVATE}", f"{ylabel} (↓ better)")
        handles = _panel(axes, rows, names)
        largest = rows[["test_error_mean", *bars(rows)]].where(np.isfinite).max(axis=1)
        of_private = largest[rows["private"]].groupby(rows["algorithm"]).max()
        worst = stretching(of_private, largest[~rows["private"]].max())
        if worst is not None and axes.get_yscale() == "linear":
            others = rows[~(rows["private"] & (rows["algorithm"] == worst))]
            _panel(zoom_axes(axes, label(worst)), others, names)
        if (rows["diverged"] > 0).any():
            handles.append(cross_key())
        notes = [note, trials(rows), diverged(rows), beyond_axis(rows), claims_note(rows), edges(rows)]
        plain = "- - no noise" if len(private) < len(rows) else ""
        return set_page(axes, handles, notes, "   ".join(filter(None, (marks_of(private), plain))))


def _panel(axes: Axes, rows: pd.DataFrame, names: list[str]) -> list[Any]:
    """Everything in one panel; returns handles for the legend. `names` fixes every algorithm's place."""
    private = rows[rows["private"]]
    handles: list[Any] = []
    shifts = dodged(private["epsilon"], len(names))
    for name, shift, width in zip(names, shifts, widths(len(names)), strict=True):
        of = private[private["algorithm"] == name]
        if len(of):
            handles.append(_draw(axes, name, looks(names)[name], of, shift, width))
    _draw_baselines(axes, rows[~rows["private"]])
    values = rows[["test_error_mean", *bars(rows)]].to_numpy(float)
    values = values[np.isfinite(values)]
    # Linear, from 0 where that costs little room; logarithmic where a diverged loss would flatten everything else.
    if values.size and values.min() > 0 and values.max() > max(1.0, 20 * np.median(values)):
        axes.set_yscale("log")
    elif values.size and 0 <= values.min() < 0.3 * values.max():
        axes.set_ylim(bottom=0)
    set_epsilon_axis(axes, private["epsilon"])
    axes.grid(axis="x", visible=False)
    return handles


def _draw(axes: Axes, name: str, look: Any, rows: pd.DataFrame, shift: float, width: float) -> Line2D:
    """One private algorithm: its line with bars, and the marks on its points."""
    x, y = rows["epsilon"].to_numpy(float) * shift, rows["test_error_mean"].to_numpy(float)
    y = np.where(np.isfinite(y), y, np.nan)
    text = label(name, reading=rows["reading"].iloc[0])
    words = [_point_text(text, row) for row in rows.to_dict("records")]
    line = draw_line(axes, name, look, text, (x, y), words, bars=bar_ends(rows), marks=False, lw=width)
    draw_standings(axes, name, look, x, y, rows, words)
    for at, errors in zip(x, rows.get(TRIALS, [()] * len(rows)), strict=True):
        axes.plot([at] * len(errors), errors, ls="none", marker=".", ms=3, color=look.colour, gid=f"trials:{name}")
    some, beyond = rows["diverged"].to_numpy() > 0, np.isnan(y)
    cross(axes, x[some & ~beyond], y[some & ~beyond], f"diverged:{name}")
    cross_beyond(axes, x[beyond], look, name, [words[place] for place in np.flatnonzero(beyond)])
    return line


def _point_text(text: str, row: dict[Any, Any]) -> str:
    """What rests on a point: whose it is, at which ε, what it is worth."""
    low, high = (measured(row[name]) for name in bars(pd.DataFrame([row])))
    words = f"{text} at ε = {row['epsilon']:g}: {measured(row['test_error_mean'])} ({low} to {high})"
    words += f"; true ε in {interval(row.get('delivered_lower'), row['delivered_epsilon'])}"
    if at_edge(pd.DataFrame([row])).all():
        words += f"; at the {row['edge'].replace('stepsize', 'step size').replace('; ', ' and ')} of its grid"
    return words + (f"; {int(row['diverged'])} of {int(row['trials'])} trials diverged" if row["diverged"] else "")


def _draw_baselines(axes: Axes, rows: pd.DataFrame) -> None:
    for place, (name, look) in enumerate(looks(rows["algorithm"]).items()):
        row = rows[rows["algorithm"] == name].iloc[0]
        low, high = row[[*bars(rows)]]
        if np.isfinite(low) and np.isfinite(high):
            axes.axhspan(low, high, zorder=0.5, gid=f"band:{name}-plain", color=(*tint(look.colour, 1.0), 0.1), lw=0)
        # Of two levels that coincide the dashes of both are seen.
        style: dict[str, Any] = {"color": look.colour, "ls": (4 * place, (4, 2)), "lw": 1.3, "zorder": 2}
        style |= {"label": label(name, private=False), "gid": f"line:{name}-plain"}
        if np.isfinite(row["test_error_mean"]):
            axes.axhline(row["test_error_mean"], **style)
        else:
            axes.plot([0, 1], [TOP_EDGE, TOP_EDGE], transform=axes.transAxes, **style)
