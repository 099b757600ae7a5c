"""Test error against the true or the claimed ε: private algorithms, and both noises beside each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.algorithms.base import Look
from silodp.report.figures.axes import (
    dodged,
    draw_line,
    log_ticks,
    new_axes,
    set_epsilon_axis,
    set_page,
    stretching,
    zoom_axes,
)
from silodp.report.figures.intervals import draw_intervals, draw_rings, said, standing_keys
from silodp.report.figures.notes import bar_ends, not_finite, stand, trials, zero
from silodp.report.figures.slices import both_noises_of, private_rows
from silodp.report.figures.style import in_order, label, looks, styled, tint

COLUMNS = ["delivered_epsilon", "trials", "test_error_mean"]
# Draws rows on axes and returns the lines for the legend.
Panel = Callable[[Axes, pd.DataFrame], list[Line2D]]


def error_vs_delivered(
    table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None
) -> Figure:
    """Draw the private rows of one (experiment, M, R, reading) slice over the intervals of their true ε.

    A vertical line compares algorithms at equal true ε, whatever their noise formulas claim, where it meets their bars.
    Points with an error that is not finite are left out and counted in a note.
    Raises ValueError when the table is not such a slice or has no private row.
    """
    rows = private_rows(table, COLUMNS, "error_vs_delivered")
    finite, left_out = _finite(rows, ["test_error_mean"])
    names = in_order(rows["algorithm"])
    limits = _limits(finite)

    def panel(axes: Axes, shown: pd.DataFrame) -> list[Line2D]:
        axes.set_xlim(limits)
        groups = [(name, look, shown[shown["algorithm"] == name]) for name, look in looks(names).items()]
        return [
            _over_true(axes, name, look, label(name, reading=of["reading"].iloc[0]), of)
            for name, look, of in groups
            if len(of)
        ]

    notes = [note, f"{int(rows['trials'].max())} trials a point.", zero(finite, "left"), stand(rows), left_out]
    with styled():
        axes = new_axes(title, "true ε", ylabel)
        axes.set_xscale("log")
        handles = _with_zoom(axes, panel, finite, finite)
        log_ticks(axes.xaxis, *limits, most=9)
        return set_page(axes, handles + standing_keys(finite), [" ".join(words for words in notes if words)])


def calibrated_vs_paper(
    table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None
) -> Figure:
    """Draw the readings `noise=calibrated` and "" (pale) of one (experiment, M, R) over the intervals of their true ε.

    A vertical line compares them at equal true ε. Points with an error that is not finite are left out and counted in
    a note. Raises ValueError when the table has no calibrated rows, or is not one (experiment, M, R).
    """
    paper, calibrated = both_noises_of(table, ["delivered_epsilon", "test_error_mean"], "calibrated_vs_paper")
    shares = {"paper": 0.55, "calibrated": 1.0}
    both, left_out = _finite(
        pd.concat([paper.assign(kind="paper"), calibrated.assign(kind="calibrated")]), ["test_error_mean"]
    )
    with styled():
        axes = new_axes(title, "true ε", ylabel)
        axes.set_xscale("log")
        axes.set_xlim(_limits(both))
        handles: list[Any] = []
        for (kind, name), of in both.groupby(["kind", "algorithm"], sort=False):
            text, look = f"{label(name)}, {kind}", looks(both["algorithm"])[name]
            handles.append(_over_true(axes, f"{name}-{kind}", look, text, of, shares[kind]))
        log_ticks(axes.xaxis, *axes.get_xlim(), most=9)
        return set_page(axes, handles + standing_keys(both), [note, left_out, zero(both, "left"), stand(paper)])


def both_noises(table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None) -> Figure:
    """Draw the readings `noise=calibrated` (full lines with bars) and "" (pale, dotted) of one (experiment, M, R).

    Both stand at the ε they claim: full lines keep it, and rings mark claims of dotted ones that are violated or not
    certified. Points with an error that is not finite are left out and counted in a note.
    Raises ValueError when the table has no calibrated rows, or is not one (experiment, M, R).
    """
    paper, calibrated = both_noises_of(table, [*COLUMNS, "test_error_p05", "test_error_p95"], "both_noises")
    both = pd.concat([paper.assign(kind="paper"), calibrated.assign(kind="calibrated")])
    finite, left_out = _finite(both, ["test_error_mean"])
    names = in_order(finite["algorithm"])

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
                lines.append(draw_line(axes, f"{name}-{kind}", look, text, points, said(text, of), **style))
                draw_rings(axes, f"{name}-{kind}", *points, of)
        set_epsilon_axis(axes, rows["epsilon"])
        axes.grid(axis="x", visible=False)
        return lines

    with styled():
        axes = new_axes(title, "claimed ε", ylabel)
        # By the calibrated lines, which the figure is about.
        handles = _with_zoom(axes, panel, finite, finite[finite["kind"] == "calibrated"])
        notes = [note, trials(calibrated), left_out, f"The paper's noise. {stand(paper)}"]
        return set_page(axes, handles + standing_keys(paper, ring=True), notes)


def _finite(rows: pd.DataFrame, columns: list[str]) -> tuple[pd.DataFrame, str | None]:
    """The rows whose `columns` are finite, and the note about the others."""
    finite = rows[np.isfinite(rows[columns]).all(axis=1)]
    return finite, not_finite(len(rows) - len(finite))


def _with_zoom(axes: Axes, panel: Panel, rows: pd.DataFrame, judged: pd.DataFrame) -> list[Any]:
    """All curves and, where one of those in `judged` stretches the axis, a panel without it; returns the first's."""
    handles: list[Any] = panel(axes, rows)
    worst = stretching(judged.groupby("algorithm")["test_error_mean"].max())
    if worst is not None:
        panel(zoom_axes(axes, label(worst)), rows[rows["algorithm"] != worst])
    return handles


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of the ε axis for bars between all proven ends; for the claims where there are none."""
    ends = rows.filter(regex="^delivered_|^epsilon$").to_numpy(float)
    ends = ends[np.isfinite(ends) & (ends > 0)]
    return ends.min() / 1.3, ends.max() * 1.3


def _over_true(axes: Axes, name: str, look: Look, text: str, rows: pd.DataFrame, share: float = 1.0) -> Line2D:
    """The bars of one algorithm over the true ε, at its errors, its colour mixed with white."""
    errors, colour = rows["test_error_mean"].to_numpy(float), tint(look.colour, share)
    return draw_intervals(axes, name, look, text, rows, errors, upright=False, colour=colour)
