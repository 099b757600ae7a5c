"""Test error against the ε that is delivered or claimed: private algorithms, and both noises beside each other."""

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
    hollow_key,
    log_ticks,
    mark_zeros,
    new_axes,
    set_epsilon_axis,
    set_page,
    stretching,
    zoom_axes,
)
from silodp.report.figures.notes import bar_ends, not_finite, over_claim, trials, zero
from silodp.report.figures.slices import both_noises_of, private_rows
from silodp.report.figures.style import in_order, label, looks, styled, tint, widths
from silodp.report.numbers import bounded, measured

COLUMNS = ["delivered_epsilon", "trials", "test_error_mean"]
# Draws rows on axes and returns the lines for the legend.
Panel = Callable[[Axes, pd.DataFrame], list[Line2D]]


def error_vs_delivered(
    table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None
) -> Figure:
    """Draw the private rows of one (experiment, M, R, reading) slice at the ε they deliver, joined in that order.

    A vertical line compares algorithms at equal proven privacy, whatever their noise formulas claim. Hollow points
    deliver more than they claim, points of ε = 0 are on the left edge. Points with an error or ε that is not finite are
    left out and counted in a note.
    Raises ValueError when the table is not such a slice or has no private row.
    """
    rows = private_rows(table, COLUMNS, "error_vs_delivered")
    finite, left_out = _finite(rows, COLUMNS)
    names = in_order(rows["algorithm"])

    def panel(axes: Axes, shown: pd.DataFrame) -> list[Line2D]:
        lines = []
        for (name, look), width in zip(looks(names).items(), widths(len(names)), strict=True):
            of = shown[shown["algorithm"] == name]
            if len(of):
                text = label(name, reading=of["reading"].iloc[0])
                lines.append(_draw_at_delivered(axes, name, look, text, of, lw=width))
        return lines

    over = (finite["delivered_epsilon"] > finite["epsilon"]).any()
    notes = [
        note,
        f"{int(rows['trials'].max())} trials a point.",
        zero(finite, "left"),
        "Hollow: more ε than claimed." if over else None,
        left_out,
    ]
    with styled():
        axes = new_axes(title, "delivered ε (proven upper bound)", ylabel)
        axes.set_xscale("log")
        handles = _with_zoom(axes, panel, finite, finite)
        log_ticks(axes.xaxis, *axes.get_xlim(), most=9)
        return set_page(axes, handles, [" ".join(words for words in notes if words)])


def calibrated_vs_paper(
    table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None
) -> Figure:
    """Draw the readings "" (solid) and `noise=calibrated` (dotted) of one (experiment, M, R).

    Both stand at the ε they deliver, so that a vertical line compares them at equal privacy; a point whose claim is
    smaller than that is hollow. Points with an error or ε that is not finite are left out and counted in a note.
    Raises ValueError when the table has no calibrated rows, or is not one (experiment, M, R).
    """
    columns = ["delivered_epsilon", "test_error_mean"]
    paper, calibrated = both_noises_of(table, columns, "calibrated_vs_paper")
    both = pd.concat([paper, calibrated])
    with styled():
        axes = new_axes(title, "delivered ε", ylabel)
        axes.set_xscale("log")
        handles = []
        for kind, rows, dashes in (("paper", paper, "-"), ("calibrated", calibrated, ":")):
            finite, _ = _finite(rows, columns)
            for name, look in looks(finite["algorithm"]).items():
                of, text = finite[finite["algorithm"] == name], f"{label(name)}, {kind}"
                handles.append(_draw_at_delivered(axes, f"{name}-{kind}", look, text, of, ls=dashes))
        log_ticks(axes.xaxis, *axes.get_xlim(), most=9)
        notes = [note, _finite(both, columns)[1], zero(both, "left"), over_claim(paper, "Hollow")]
        return set_page(axes, handles + _hollow_key(both), notes)


def both_noises(table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None) -> Figure:
    """Draw the readings `noise=calibrated` (full lines with bars) and "" (pale, dotted) of one (experiment, M, R).

    Both stand at the ε they claim: full lines deliver it, and a hollow point of a dotted one delivers more. Points with
    an error that is not finite are left out and counted in a note.
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
                text, hollow = f"{label(name)}, {kind}", (of["delivered_epsilon"] > of["epsilon"]).to_numpy()
                style: dict[str, Any] = {"bars": bar_ends(of)}
                if kind == "paper":
                    style = {"color": tint(look.colour, 0.55), "ls": ":", "zorder": 2}
                words = _at_delivered(text, of)
                lines.append(draw_line(axes, f"{name}-{kind}", look, text, points, words, hollow, **style))
        set_epsilon_axis(axes, rows["epsilon"])
        axes.grid(axis="x", visible=False)
        return lines

    with styled():
        axes = new_axes(title, "claimed ε", ylabel)
        # By the calibrated lines, which the figure is about.
        handles = _with_zoom(axes, panel, finite, finite[finite["kind"] == "calibrated"])
        notes = [note, trials(calibrated), left_out, over_claim(paper, "Hollow")]
        return set_page(axes, handles + _hollow_key(paper), notes)


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


def _hollow_key(rows: pd.DataFrame) -> list[Any]:
    return [hollow_key("more ε than claimed")] * bool((rows["delivered_epsilon"] > rows["epsilon"]).any())


def _draw_at_delivered(axes: Axes, name: str, look: Look, text: str, rows: pd.DataFrame, **style: Any) -> Line2D:
    """The curve of one algorithm over delivered ε; a point that delivers more than it claims is hollow."""
    rows = rows.sort_values("delivered_epsilon", kind="stable")
    at_zero = rows["delivered_epsilon"] == 0
    none, rest = rows[at_zero], rows[~at_zero]
    mark_zeros(axes, none["test_error_mean"].to_numpy(float), look, name, _at_delivered(text, none), upright=False)
    x, y, claimed = rest[["delivered_epsilon", "test_error_mean", "epsilon"]].to_numpy(float).T
    return draw_line(axes, name, look, text, (x, y), _at_delivered(text, rest), hollow=x > claimed, **style)


def _at_delivered(text: str, rows: pd.DataFrame) -> list[str]:
    """What rests on each point: whose it is, at which claimed and delivered ε, and its error."""
    columns = rows[["epsilon", "delivered_epsilon", "test_error_mean"]].to_numpy(float)
    return [f"{text}, claimed ε = {a:g}, delivered {bounded(b)}: {measured(c)}" for a, b, c in columns]
