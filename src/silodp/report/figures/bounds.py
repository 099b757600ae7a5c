"""Figures of the bounds tables: rates with their slopes, a risk between its bounds, rounds to a target."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from silodp.report.figures.axes import log_ticks, plain
from silodp.report.figures.style import styled
from silodp.report.figures.svg import TITLE, crop, say
from silodp.report.figures.words import in_signs
from silodp.report.numbers import measured
from silodp.theory import THEOREMS
from silodp.theory.registry import PAPERS

_INK, _CLAIM, _FIT, _BOUND = "#004488", "#000000", "#b3485a", "#6e6e6e"
_COLOURS = ("#004488", "#b3485a", "#d9a62e", "#30102f", "#3a9a92", "#6b4a9c")
SLOPE = "slope in "
# What a theorem bounds, by the beginning of its key; the first that fits.
_QUANTITIES = {
    "convex-lemma-D.5": "variance of a round's gradient",
    "nonconvex-3": "squared norm of the gradient mapping",
    "checkins-3.4": "dummy updates",
    "checkins-4.4": "dummy updates",
    "": "excess risk",
}
# What stands in brackets behind a parameter is what was measured, where it begins so.
_MEASURES = ("risk of", "n where", "rounds to")
_DECISION = (
    "Confirmed: the slope's interval leaves the rivals out and contains the stated exponent or the slope of the "
    "theorem's own formula over the same points. Order agrees: it contains neither, but lies nearer to the stated "
    "exponent than to any rival. Refuted: it lies nearer to a rival."
)
RULE = f"Bars: 95 % intervals. Solid red: fitted slope; dashed: stated exponent; dotted: its rivals. {_DECISION}"
# Inches: the page, one panel, and what stands above and below it.
_WIDTH, _COLUMNS, _TALL, _LEFT, _RIGHT, _EDGE = 5.4, 3, 1.15, 0.44, 0.1, 0.36
_ABOVE, _XAXIS, _LINE, _TOP, _NOTE_LINE = 0.5, 0.42, 0.115, 0.3, 0.125


def rates(table: pd.DataFrame, *, title: str) -> Figure:
    """One log–log panel for each slope of a rates table: means with intervals, fitted line, stated exponent, rivals.

    Raises ValueError when the table has no slope.
    """
    slopes = table[table["parameter"].str.startswith(SLOPE)]
    if slopes.empty:
        raise ValueError("figure: the table has no slopes")
    with styled():
        figure, panels = _page(title, len(slopes), [RULE], lines=3)
        for axes, (_, slope) in zip(panels, slopes.iterrows(), strict=True):
            _rate(axes, _points(table, slope), slope)
        return figure


def _points(table: pd.DataFrame, slope: pd.Series) -> pd.DataFrame:
    """The rows behind a slope: its theorem, in its form, along its parameter."""
    parameter = slope["parameter"].removeprefix(SLOPE)
    own = (table["theorem"] == slope["theorem"]) & (table["parameter"] == parameter)
    return table[own & (table["form"] == slope["form"])]


def _rate(axes: Axes, points: pd.DataFrame, slope: pd.Series) -> None:
    x, y = points["value"].to_numpy(float), points["measured"].to_numpy(float)
    _measured(axes, points)
    axes.set(xscale="log", yscale="log")
    rivals = str(slope["rivals"]).split()
    looks: list[tuple[float, dict[str, Any]]] = [
        (slope["measured"], {"color": _FIT}),
        (slope["value"], {"color": _CLAIM, "ls": "--"}),
        *((float(rival), {"color": _BOUND, "ls": ":"}) for rival in rivals),
    ]
    for exponent, look in looks:
        axes.plot(x, _through(points, exponent), lw=1.0, zorder=1, **look)
    # Rivals leave the panel where they must.
    spread = max((y.max() / y.min()) ** 0.25, 1.1)
    axes.set_ylim(y.min() / spread, y.max() * spread)
    interval = f"[{_short(slope['measured_low'])}, {_short(slope['measured_high'])}]"
    said = [
        f"stated {_short(slope['value'])}, formula {_short(slope['formula'])}",
        f"measured {_short(slope['measured'])} {interval}",
        f"{slope['verdict']}" + (f" (rivals {', '.join(_short(float(one)) for one in rivals)})" if rivals else ""),
    ]
    _dress(axes, slope, slope["parameter"].removeprefix(SLOPE), x, said)


def _through(points: pd.DataFrame, exponent: float) -> np.ndarray:
    """Of a power of that exponent the values at the points, through the middle of what was measured."""
    x, y = points["value"].to_numpy(float), points["measured"].to_numpy(float)
    return np.exp(np.log(y).mean()) * (x / np.exp(np.log(x).mean())) ** exponent


def between_bounds(table: pd.DataFrame, *, title: str) -> Figure:
    """One panel for each theorem, form and parameter: measured means with intervals between lower and upper bounds."""
    groups = [group for _, group in table.groupby(["theorem", "form", "parameter"], sort=False) if len(group) > 1]
    if not groups:
        raise ValueError("figure: the table has no theorem with two values of a parameter")
    with styled():
        said = (
            "Dots with bars: measured, with intervals. Dashed: upper bound; dotted: lower bound, its hidden constant "
            "taken as 1; thin red: the largest value that can be reached, where a bound above it says nothing. "
            "Confirmed: the interval keeps to the bound, which could have failed; vacuous here: it could not. Refuted: "
            "the interval lies beyond it. Not contradicted: it keeps to a bound that is stated for all algorithms or "
            "instances, of which a few were run."
        )
        figure, panels = _page(title, len(groups), [said], lines=2)
        for axes, group in zip(panels, groups, strict=True):
            _measured(axes, group)
            for column, line in (("upper", "--"), ("lower", ":")):
                axes.plot(group["value"], group[column], color=_BOUND, ls=line, lw=1.2)
            if np.isfinite(group["reach"]).any():
                axes.plot(group["value"], group["reach"], color=_FIT, lw=0.7)
            axes.set(xscale="log", yscale="log")
            counts = group.loc[group["verdict"] != "", "verdict"].value_counts()
            words = [f"{count} of {len(group)} {word}" for word, count in counts.items()]
            _dress(axes, group.iloc[0], group["parameter"].iloc[0], group["value"].to_numpy(float), words)
        return figure


def lines(table: pd.DataFrame, *, title: str, ylabel: str = "excess risk") -> Figure:
    """All slopes of a table in one panel: what is measured along one axis, a line for each theorem, with its slope."""
    slopes = table[table["parameter"].str.startswith(SLOPE)]
    if slopes.empty:
        raise ValueError("figure: the table has no slopes")
    with styled():
        rows = 2 * len(slopes)
        said = f"Bars: 95 % intervals. Dashed: stated exponent; dotted: its rivals. {_DECISION}"
        height = _TOP + 2.9 + _XAXIS + 0.16 * rows + _NOTE_LINE * len(textwrap.wrap(said, 100)) + 0.25
        figure = Figure(figsize=(_WIDTH, round(height, 2)))
        FigureCanvasAgg(figure)
        below = height - _TOP - 2.9
        axes = figure.add_axes((0.7 / _WIDTH, below / height, (_WIDTH - 0.8) / _WIDTH, 2.9 / height))
        axes.set(xscale="log", yscale="log")
        drawn: list[tuple[np.ndarray, np.ndarray, str, str]] = []
        for (_, slope), marker, colour in zip(slopes.iterrows(), "os^DvX", _COLOURS, strict=False):
            points = _points(table, slope)
            interval = f"[{_short(slope['measured_low'])}, {_short(slope['measured_high'])}]"
            parameter = in_signs(slope["parameter"].removeprefix(SLOPE))
            text = f"{name_of(slope)}, {parameter}:\nslope {_short(slope['measured'])} {interval}, stated "
            rivals = [float(one) for one in str(slope["rivals"]).split()]
            text += f"{_short(slope['value'])}, formula {_short(slope['formula'])}, "
            text += f"rivals {', '.join(map(_short, rivals))}: {slope['verdict']}"
            _measured(axes, points, color=colour, fmt=f"{marker}-", label=text)
            for exponent in (slope["value"], *rivals):
                line = "--" if exponent == slope["value"] else ":"
                drawn.append((points["value"].to_numpy(float), _through(points, exponent), line, colour))
        # What a rival would give leaves the panel where it must.
        limits = axes.get_ylim()
        for x, y, line, colour in drawn:
            axes.plot(x, y, color=colour, ls=line, lw=0.9, zorder=1)
        xlabel = in_signs(slopes["parameter"].iloc[0].removeprefix(SLOPE).split(" (")[0])
        axes.set(ylim=limits, xlabel=xlabel, ylabel=ylabel)
        shown = table["parameter"].isin(slopes["parameter"].str.removeprefix(SLOPE))
        _ticks(axes, sorted(table.loc[shown, "value"].unique()), size=8)
        log_ticks(axes.yaxis, *limits, most=9)
        axes.set_title(title, gid=TITLE)
        crop(figure, _TOP - 0.1)
        place = (0.3 / _WIDTH, (below - _XAXIS - 0.05) / height)
        figure.legend(loc="upper left", bbox_to_anchor=place, fontsize=7, borderaxespad=0.0)
        _note(figure, [said], height)
        return figure


def name_of(row: pd.Series) -> str:
    """A theorem as its paper numbers it, and which form of it where there are two."""
    key = str(row["theorem"])
    found = THEOREMS.get(key)
    if found is None:
        return key
    paper = PAPERS[found.paper].removesuffix(" paper").capitalize()
    place = found.place.partition(" (complete")[0].partition(", eq")[0]
    return f"{paper} {place}" + (f", {row['form']}" if row["form"] else "")


def quantity_of(theorem: str, parameter: str = "") -> str:
    """What a theorem bounds, or what was measured along a parameter, in words."""
    measures = _bracket(parameter)
    return measures or next(words for start, words in _QUANTITIES.items() if theorem.startswith(start))


def _bracket(parameter: str) -> str:
    """What is measured, as in "n where privacy doubles the risk", where a parameter's brackets say it."""
    inside = parameter.partition(" (")[2].removesuffix(")")
    return in_signs(inside) if inside.startswith(_MEASURES) else ""


def _short(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _count(value: float) -> str:
    """A value on an axis in few characters: 16.4k, 1.6M, 0.5."""
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{value:,.4g}"


def _measured(axes: Axes, points: pd.DataFrame, **options: Any) -> None:
    y = points["measured"].to_numpy(float)
    errors = np.abs(points[["measured_low", "measured_high"]].to_numpy(float).T - y)
    look: dict[str, Any] = {"fmt": "o", "color": _INK, "ms": 3.5, "capsize": 2, "lw": 1.0, "zorder": 3}
    drawn = axes.errorbar(points["value"], y, yerr=errors, **(look | options))
    figure = axes.figure
    gid = f"points:{len(getattr(figure, '_silodp_said', {}))}"
    drawn.lines[0].set_gid(gid)
    finite = points[np.isfinite(points["measured"])]
    say(figure, gid, [_said(row) for row in finite.to_dict("records")])


def _said(row: dict[Any, Any]) -> str:
    words = f"{in_signs(row['parameter'])} = {row['value']:g}: {measured(row['measured'])}"
    if np.isfinite(row["measured_low"]):
        words += f" ({measured(row['measured_low'])} to {measured(row['measured_high'])})"
    bounds = [f"{name} bound {measured(row[name])}" for name in ("lower", "upper") if np.isfinite(row[name])]
    return "; ".join([words, *bounds, *([str(row["verdict"])] if row["verdict"] else [])])


def _dress(axes: Axes, row: pd.Series, parameter: str, x: np.ndarray, said: Sequence[str]) -> None:
    """Heading, ticks at the points, and below the panel what came out: no text over data."""
    name, what = name_of(row), quantity_of(str(row["theorem"]), parameter)
    # From the left edge of the panel's labels, for more room than the axes have.
    edge: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    heading = [line for part in (name, what) for line in textwrap.wrap(part, 32)]
    axes.annotate("\n".join(heading), (0, 1), (-72 * _EDGE, 3), fontsize=6.8, va="bottom", **edge)
    shown = parameter.partition(" (")[0] if _bracket(parameter) else parameter
    axes.set_xlabel("\n".join(textwrap.wrap(in_signs(shown), 28)), fontsize=6.8, labelpad=1)
    _ticks(axes, sorted(set(x.tolist())), size=6.3)
    axes.yaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 30 * low else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axes.tick_params(axis="y", labelsize=6.3, pad=2)
    axes.annotate("\n".join(said), (0, 0), (-72 * _EDGE, -72 * _XAXIS), fontsize=6.5, va="top", **edge)


def _ticks(axes: Axes, values: Sequence[float], size: float) -> None:
    """Ticks at the points; of two labels that would touch the second is left out."""
    span = np.log10(values[-1] / values[0]) or 1.0
    shown: list[float] = []
    for value in values:
        if not shown or np.log10(value / shown[-1]) > span * 0.05 * (1 + len(_count(value))) * size / 8:
            shown.append(value)
    texts = {value: _count(value) for value in shown}
    axes.xaxis.set_major_locator(FixedLocator(list(values)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: texts.get(value, "")))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=size, pad=2)


def _note(figure: Figure, notes: Sequence[str], height: float) -> None:
    wrapped = [line for note in notes for line in textwrap.wrap(note, 100)]
    place = 0.08 / _WIDTH, (0.05 + _NOTE_LINE * len(wrapped)) / height
    figure.text(*place, "\n".join(wrapped), va="top", fontsize=6.6, color="#333333", linespacing=1.25)


def _page(title: str, panels: int, notes: Sequence[str], lines: int) -> tuple[Figure, list[Axes]]:
    """A page of panels, three beside each other; `lines` of text have room below each."""
    rows = -(-panels // _COLUMNS)
    row = _ABOVE + _TALL + _XAXIS + _LINE * lines + 0.08
    foot = _NOTE_LINE * sum(len(textwrap.wrap(note, 100)) for note in notes) + 0.12
    titles = textwrap.wrap(title, 60)
    top = _TOP + 0.17 * (len(titles) - 1)
    height = round(top + rows * row + foot, 2)
    figure = Figure(figsize=(_WIDTH, height))
    FigureCanvasAgg(figure)
    head = 0.08 / _WIDTH, 1 - 0.08 / height
    figure.text(*head, "\n".join(titles), va="top", fontsize=10, fontweight="bold", gid=TITLE)
    crop(figure, top)
    step = _WIDTH / _COLUMNS
    found = []
    for place in range(panels):
        line, column = divmod(place, _COLUMNS)
        bottom = height - top - line * row - _ABOVE - _TALL
        left = column * step + _LEFT
        wide = step - _LEFT - _RIGHT
        found.append(figure.add_axes((left / _WIDTH, bottom / height, wide / _WIDTH, _TALL / height)))
    _note(figure, notes, height)
    return figure, found
