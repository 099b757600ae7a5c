"""Test error against the ε that is delivered: noise by the papers' formulas beside the least that keeps the claim."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.report.figures.axes import mark, mark_zeros, new_axes, set_log_ticks, set_page
from silodp.report.figures.notes import over_claim, zero
from silodp.report.figures.slices import checked, with_reading
from silodp.report.figures.style import label, looks, styled
from silodp.report.figures.svg import say
from silodp.report.numbers import bounded, measured
from silodp.verdicts.comparisons import CALIBRATED

COLUMNS = ["delivered_epsilon", "test_error_mean"]


def calibrated_vs_paper(
    table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None
) -> Figure:
    """Draw the readings "" (solid) and `noise=calibrated` (dotted) of one (experiment, M, R).

    Both stand at the ε they deliver, so that a vertical line compares them at equal privacy; a point whose claim is
    smaller than that is hollow. Points with an error or ε that is not finite are left out and counted in a note.
    Raises ValueError when the table has no calibrated rows, or is not one (experiment, M, R).
    """
    drawn = dict(zip(("", CALIBRATED), both_parts(table, COLUMNS, "calibrated_vs_paper"), strict=True))
    left_out = 0
    with styled():
        axes = new_axes(title, "delivered ε", ylabel)
        axes.set_xscale("log")
        handles: list[Any] = []
        for reading, rows in drawn.items():
            finite = np.isfinite(rows["delivered_epsilon"]) & np.isfinite(rows["test_error_mean"])
            left_out += int((~finite).sum())
            handles += _lines(axes, rows[finite], calibrated=reading == CALIBRATED)
        set_log_ticks(axes)
        if any((rows["delivered_epsilon"] > rows["epsilon"]).any() for rows in drawn.values()):
            handles.append(_hollow_key())
        missing = f"Not finite, left out: {left_out} points." if left_out else None
        return set_page(
            axes, handles, [note, missing, zero(pd.concat(drawn.values()), "left"), over_claim(drawn[""], "Hollow")]
        )


def both_parts(table: pd.DataFrame, columns: list[str], kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Private rows under the default reading and under `noise=calibrated`, each checked as one slice with `columns`.

    Raises ValueError, naming the `kind` of figure, when the table lacks either.
    """
    table = with_reading(table)
    parts = [table[table["reading"] == reading] for reading in ("", CALIBRATED)]
    if any(part.empty for part in parts):
        raise ValueError(f"figure: {kind} needs rows of the default reading and of {CALIBRATED}")
    paper, calibrated = (checked(part, columns).query("private") for part in parts)
    return paper, calibrated


def _hollow_key() -> Line2D:
    text = "hollow: more ε than claimed"
    return Line2D([], [], ls="none", marker="o", mfc="white", mec="#444444", mew=1.4, label=text)


def _lines(axes: Axes, rows: pd.DataFrame, *, calibrated: bool) -> list[Line2D]:
    """One line an algorithm, in the order of what is delivered."""
    lines = []
    for name, look in looks(rows["algorithm"]).items():
        of = rows[rows["algorithm"] == name].sort_values("delivered_epsilon", kind="stable")
        kind = "calibrated" if calibrated else "paper"
        text, gid = f"{label(name)}, {kind}", f"line:{name}-{kind}"
        none, of = of[of["delivered_epsilon"] == 0], of[of["delivered_epsilon"] > 0]
        words = [f"{text}, claimed ε = {a:g}, delivered 0" for a in none["epsilon"]]
        mark_zeros(axes, none["test_error_mean"].to_numpy(float), look, f"zero:{name}-{kind}", words, upright=False)
        x, y = of["delivered_epsilon"].to_numpy(float), of["test_error_mean"].to_numpy(float)
        style: dict[str, Any] = {"color": look.colour, "ls": ":" if calibrated else "-", "marker": look.marker}
        lines += axes.plot(x, y, label=text, gid=gid, **style)
        points = zip(of["epsilon"], x, y, strict=True)
        words = [f"{text}, claimed ε = {a:g}, delivered {bounded(b)}: {measured(c)}" for a, b, c in points]
        say(axes.figure, gid, words)
        over = x > of["epsilon"].to_numpy(float)
        mark(axes, x[over], y[over], look, f"over:{name}")
    return lines
