"""Test error against the true ε of private algorithms; against the claimed ε under both noises."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.report.figures.axes import (
    MORE_PRIVATE,
    dodged,
    draw_line,
    log_ticks,
    new_axes,
    set_epsilon_axis,
    set_page,
    stretching,
    zoom_axes,
)
from silodp.report.figures.intervals import draw_intervals, draw_standings, limits, marks_of, open_key, point_texts
from silodp.report.figures.notes import bar_ends, claims_note, trials, zero
from silodp.report.figures.slices import both_noises_of, private_rows
from silodp.report.figures.style import label, looks, sort_algorithms, styled, tint

Panel = Callable[[Axes, pd.DataFrame], list[Line2D]]
PAPER = "Claims under the paper's noise"


def error_vs_delivered(
    table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None
) -> Figure:
    """Draw the private rows of one (experiment, M, R, reading) slice over the intervals of their true ε.

    A vertical line compares algorithms at equal true ε, whatever their noise formulas claim, where it meets their bars.
    Points with an error that is not finite are left out and counted in a note.
    """
    rows = private_rows(table, members=True)
    finite, left_out = _finite(rows)
    names = sort_algorithms(rows["algorithm"])
    ends = limits(finite)

    def panel(axes: Axes, shown: pd.DataFrame) -> list[Line2D]:
        axes.set_xlim(ends)
        found = sort_algorithms(shown["algorithm"])
        return [_over_true(axes, names, shown[shown["algorithm"] == name]) for name in found]

    notes = [note, f"{int(rows['trials'].max())} trials a point.", zero(finite, "left"), claims_note(rows), left_out]
    with styled():
        axes = new_axes(title, f"true {MORE_PRIVATE}", f"{ylabel} (↓ better)")
        axes.set_xscale("log")
        handles = _with_zoom(axes, panel, finite, finite)
        log_ticks(axes.xaxis, *ends, most=9)
        return set_page(axes, handles + open_key(finite), notes, marks_of(finite))


def both_noises(table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None) -> Figure:
    """Draw the readings `noise=calibrated` (full lines with bars) and "" (pale, dotted) of one (experiment, M, R).

    Both stand at the ε they claim; a mark is full, half or empty by how its claim stands. Points with an error that is
    not finite are left out and counted in a note.
    """
    both = both_noises_of(table)
    finite, left_out = _finite(both)
    names = sort_algorithms(finite["algorithm"])

    def panel(axes: Axes, rows: pd.DataFrame) -> list[Line2D]:
        lines = []
        for (name, look), shift in zip(looks(names).items(), dodged(rows["epsilon"], len(names)), strict=True):
            for kind, of in rows[rows["algorithm"] == name].groupby("kind", sort=False):
                of = of.sort_values("epsilon", kind="stable")
                points = of["epsilon"].to_numpy(float) * shift, of["test_error_mean"].to_numpy(float)
                text = f"{label(name)}, {kind}"
                style: dict[str, Any] = {"bars": bar_ends(of)}
                if kind == "paper":
                    style = {"color": tint(look.colour, 0.55), "ls": ":", "zorder": 2}
                words, colour = point_texts(text, of), style.get("color")
                lines.append(draw_line(axes, f"{name}-{kind}", look, text, points, words, marks=False, **style))
                draw_standings(axes, f"{name}-{kind}", look, *points, of, words, colour)
        set_epsilon_axis(axes, rows["epsilon"])
        axes.grid(axis="x", visible=False)
        return lines

    with styled():
        axes = new_axes(title, f"claimed {MORE_PRIVATE}", f"{ylabel} (↓ better)")
        # By the calibrated lines, which the figure is about.
        _with_zoom(axes, panel, finite, finite[finite["kind"] == "calibrated"])
        is_paper = both["kind"] == "paper"
        notes = [note, trials(both[~is_paper]), left_out, claims_note(both[is_paper], PAPER)]
        return set_page(axes, _keys(names), notes, marks_of(both))


def _keys(names: list[str]) -> list[Line2D]:
    """What the legend shows of both noises: the algorithms, then what is strong and what is pale."""
    keys = [
        Line2D([], [], color=look.colour, marker=look.marker, label=label(name)) for name, look in looks(names).items()
    ]
    keys.append(Line2D([], [], color="#444444", label="calibrated noise"))
    return [*keys, Line2D([], [], color="#b4b4b4", ls=":", label="the paper's")]


def _finite(rows: pd.DataFrame) -> tuple[pd.DataFrame, str | None]:
    finite = rows[np.isfinite(rows["test_error_mean"])]
    count = len(rows) - len(finite)
    return finite, f"Not finite, left out: {count} points." if count else None


def _with_zoom(axes: Axes, panel: Panel, rows: pd.DataFrame, judged: pd.DataFrame) -> list[Any]:
    """All curves and, where one of those in `judged` stretches the axis, a panel without it; returns the first's."""
    handles: list[Any] = panel(axes, rows)
    worst = stretching(judged.groupby("algorithm")["test_error_mean"].max())
    if worst is not None:
        panel(zoom_axes(axes, label(worst)), rows[rows["algorithm"] != worst])
    return handles


def _over_true(axes: Axes, names: Iterable[str], rows: pd.DataFrame) -> Line2D:
    """The bars of one of the algorithms `names` over its true ε, at its errors."""
    name, errors = rows["algorithm"].iloc[0], rows["test_error_mean"].to_numpy(float)
    text = label(name, reading=rows["reading"].iloc[0])
    return draw_intervals(axes, f"{name}-true", looks(names)[name], text, rows, errors, upright=False)
