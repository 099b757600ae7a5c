"""The true ε against the claimed one, of trained algorithms and of the papers' noise formulas, with their equality."""

import itertools
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from silodp.algorithms import ALGORITHMS, traits
from silodp.algorithms.base import Look
from silodp.report.figures.axes import dodged, log_ticks, new_axes, set_page
from silodp.report.figures.intervals import draw_intervals, limits, marks_of, open_key
from silodp.report.figures.notes import claims_note, zero
from silodp.report.figures.slices import private_rows
from silodp.report.figures.style import label, looks, styled

# Of an algorithm's further formulas.
_MARKERS = "*dp8H"
YLABEL = "true ε (black line: as claimed)"


def delivered_vs_claimed(table: pd.DataFrame, *, title: str, ylabel: str = YLABEL, note: str | None = None) -> Figure:
    """Draw the interval of the true ε against the claimed ε of every private row of one (experiment, M, R, reading).

    An upper end of 0, which δ alone covers, is on the lower edge.
    """
    rows = private_rows(table, members=True)
    curves = [
        (name, look, label(name, reading=rows["reading"].iloc[0]), rows[rows["algorithm"] == name])
        for name, look in looks(rows["algorithm"]).items()
    ]
    with styled():
        axes = new_axes(title, "claimed ε", ylabel)
        return set_page(axes, _draw(axes, curves), [note, zero(rows, "lower"), claims_note(rows)], marks_of(rows))


def draw_formulas(rows: pd.DataFrame, *, title: str) -> Figure:
    """Draw one paper's rows of `silodp.experiments.formulas.formula_rows`."""
    rows = rows.rename(columns={"claimed_epsilon": "epsilon"})
    names = [(str(name), part) for name, part in rows.groupby("formula", sort=False)]
    of = _looks([name for name, _ in names])
    curves = [(name, look, _brief(name), part) for look, (name, part) in zip(of, names, strict=True)]
    with styled():
        axes = new_axes(title, "claimed ε", YLABEL)
        first = rows.iloc[0]
        notes = [f"n = {first['n']}, R = {first['R']}, δ = 1/n²."]
        return set_page(axes, _draw(axes, curves), notes, marks_of(rows))


def _brief(formula: str) -> str:
    """A formula's name as a legend has room for: "MB-SGD, moments form" is "MB-SGD, moments"."""
    return formula.partition(":")[0].replace(" form", "").replace(" in its range", " in range")


def _looks(formulas: Sequence[str]) -> list[Look]:
    """Colour and marker of each formula's algorithm as in all figures; its further formulas have other markers."""
    known = {text: look for name, look in looks(ALGORITHMS).items() if (text := traits(name)[0].lower())}
    begins = [formula.split(",")[0].lower() for formula in formulas]
    own = [known.get(name) or looks(["released"])["released"] for name in begins]
    spare = itertools.cycle(_MARKERS)
    first = [begins.index(name) == place for place, name in enumerate(begins)]
    return [look if new else look._replace(marker=next(spare)) for look, new in zip(own, first, strict=True)]


def _draw(axes: Axes, curves: Sequence[tuple[str, Look, str, pd.DataFrame]]) -> list[Any]:
    """Bars of curves (name, look, label, rows) beside the diagonal; returns what the legend shows."""
    table = pd.concat([rows for *_, rows in curves])
    claims = table["epsilon"].to_numpy(float)
    left, right, (low, high) = claims.min() / 1.3, claims.max() * 1.3, limits(table)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, high))
    axes.plot([left, right], [left, right], color="black", lw=1.0, label="true = claimed", zorder=2)
    log_ticks(axes.xaxis, left, right, most=9)
    log_ticks(axes.yaxis, low, high, most=16)
    handles: list[Any] = []
    for (name, look, text, rows), shift in zip(curves, dodged(claims, len(curves)), strict=True):
        handles.append(draw_intervals(axes, name, look, text, rows, rows["epsilon"].to_numpy() * shift, upright=True))
    return [*handles, *open_key(table)]
