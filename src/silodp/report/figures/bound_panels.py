"""Figures of the bounds tables: rates with their slopes, a risk between its bounds, rounds to a target, Figure 3."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.report.figures.axes import log_ticks, new_axes, new_figure, set_page, set_ticks
from silodp.report.figures.reader_words import in_signs
from silodp.report.figures.style import styled
from silodp.report.figures.svg import gid_texts, say, say_note, say_panels
from silodp.report.numbers import count, measured, slope_text
from silodp.theory import THEOREMS
from silodp.theory.theorem import PAPERS

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
_MEASURES = ("risk of", "rounds to")
# Or an entry of the non-convex paper's Figure 3, in its order.
_ENTRIES = {
    "isrl_so": "ISRL-DP population, proximal-PL",
    "sdp_so": "SDP population, proximal-PL",
    "isrl_erm": "ISRL-DP empirical, proximal-PL",
    "sdp_erm": "SDP empirical, proximal-PL",
    "isrl_nonconvex": "ISRL-DP, squared gradient norm",
    "sdp_nonconvex": "SDP, squared gradient norm",
}
_DECISION = (
    "Confirmed: the slope's interval leaves the rivals out and contains the stated exponent or the slope of the "
    "theorem's own formula over the same points. Order agrees: it contains neither, but lies nearer to the stated "
    "exponent than to any rival. Refuted: it lies nearer to a rival."
)
RULE = f"Bars: 95 % intervals. Solid red: fitted slope; dashed: stated exponent; dotted: its rivals. {_DECISION}"
BETWEEN = (
    "Dots with bars: measured, with intervals. Dashed: upper bound; dotted: lower bound, its hidden constant taken as "
    "1; thin red: the largest value that can be reached, where a bound above it says nothing. Confirmed: the interval "
    "keeps to the bound, which could have failed; vacuous here: it could not. Refuted: the interval lies beyond it. "
    "Not contradicted: it keeps to a bound that is stated for all algorithms or instances, of which a few were run."
)
SUMMARY = (
    "Solid: the paper's upper bound; dotted: the lower bound beside it; dashed: the earlier upper bound that it names. "
    "Risks of a population, or of the records (empirical). Constants, logarithms and the factor L²/μ are left out, so "
    "a line is an order. This project's point: n = 1,000 records a silo, N = M = 100 silos, d = 50, κ = 10."
)
# Inches: the page, one panel, and what stands above and below it.
_WIDTH, _COLUMNS, _TALL, _LEFT, _RIGHT, _EDGE = 5.4, 3, 1.15, 0.44, 0.1, 0.36
_ABOVE, _XAXIS, _LINE, _TOP = 0.5, 0.42, 0.115, 0.3


def rates(table: pd.DataFrame, *, title: str) -> Figure:
    """A log–log panel for each slope: means, fitted line, stated exponent, rivals."""
    slopes = table[table["parameter"].str.startswith(SLOPE)]
    with styled():
        figure, panels = _page(title, len(slopes), RULE, lines=3)
        for axes, (_, slope) in zip(panels, slopes.iterrows(), strict=True):
            points = _points(table, slope)
            x, y = points["value"].to_numpy(float), points["measured"].to_numpy(float)
            _measured(axes, points)
            axes.set(xscale="log", yscale="log")
            rivals, stated, interval = _slope_texts(slope)
            looks: list[tuple[float, dict[str, Any]]] = [
                (slope["measured"], {"color": _FIT}),
                (slope["value"], {"color": _CLAIM, "ls": "--"}),
                *((rival, {"color": _BOUND, "ls": ":"}) for rival in rivals),
            ]
            for exponent, look in looks:
                axes.plot(x, _through(points, exponent), lw=1.0, zorder=1, **look)
            # Rivals leave the panel where they must.
            spread = max((y.max() / y.min()) ** 0.25, 1.1)
            axes.set_ylim(y.min() / spread, y.max() * spread)
            against = f" (rivals {', '.join(map(slope_text, rivals))})" if rivals else ""
            below = [stated, f"measured {interval}", f"{slope['verdict']}{against}"]
            _dress(axes, slope, slope["parameter"].removeprefix(SLOPE), x, below)
        say_panels(figure)
        return figure


def _points(table: pd.DataFrame, slope: pd.Series) -> pd.DataFrame:
    """The rows behind a slope: its theorem, in its form, along its parameter."""
    parameter = slope["parameter"].removeprefix(SLOPE)
    own = (table["theorem"] == slope["theorem"]) & (table["parameter"] == parameter)
    return table[own & (table["form"] == slope["form"])]


def _slope_texts(slope: pd.Series) -> tuple[list[float], str, str]:
    """The rivals of a slope, the words for what is stated, and those for what is measured."""
    value, low, high = (slope_text(slope[name]) for name in ("measured", "measured_low", "measured_high"))
    stated = f"stated {slope_text(slope['value'])}, formula {slope_text(slope['formula'])}"
    return [float(rival) for rival in str(slope["rivals"]).split()], stated, f"{value} [{low}, {high}]"


def _through(points: pd.DataFrame, exponent: float) -> np.ndarray:
    """Of a power of that exponent the values at the points, through the middle of what was measured."""
    x, y = points["value"].to_numpy(float), points["measured"].to_numpy(float)
    return np.exp(np.log(y).mean()) * (x / np.exp(np.log(x).mean())) ** exponent


def between_bounds(table: pd.DataFrame, *, title: str) -> Figure:
    """One panel for each theorem, form and parameter: measured means with intervals between lower and upper bounds."""
    groups = [group for _, group in table.groupby(["theorem", "form", "parameter"], sort=False) if len(group) > 1]
    with styled():
        figure, panels = _page(title, len(groups), BETWEEN, lines=2)
        for axes, group in zip(panels, groups, strict=True):
            _measured(axes, group)
            for column, dashes in (("upper", "--"), ("lower", ":")):
                axes.plot(group["value"], group[column], color=_BOUND, ls=dashes, lw=1.2)
            if np.isfinite(group["reach"]).any():
                axes.plot(group["value"], group["reach"], color=_FIT, lw=0.7)
            axes.set(xscale="log", yscale="log")
            counts = group.loc[group["verdict"] != "", "verdict"].value_counts()
            words = [f"{number} of {len(group)} {word}" for word, number in counts.items()]
            _dress(axes, group.iloc[0], group["parameter"].iloc[0], group["value"].to_numpy(float), words)
        say_panels(figure)
        return figure


def summary(table: pd.DataFrame, *, title: str) -> Figure:
    """A log–log panel for each entry of a summary of results: its upper, lower and earlier bound, and their gap."""
    rows = table.assign(
        entry=table["parameter"].str.extract(r"\((\w+)", expand=False),
        earlier=table["parameter"].str.contains("earlier"),
    )
    with styled():
        figure, panels = _page(title, rows["entry"].nunique(), SUMMARY, lines=1)
        for axes, (_, entry) in zip(panels, rows.groupby("entry", sort=False), strict=True):
            own, earlier = entry[~entry["earlier"]], entry[entry["earlier"]]
            looks = ((own, "upper", _INK, "-"), (own, "lower", _INK, ":"), (earlier, "upper", _BOUND, "--"))
            for part, column, colour, dashes in looks:
                axes.plot(part["value"], part[column], color=colour, ls=dashes, lw=1.2)
            axes.set(xscale="log", yscale="log")
            gaps = own["upper"] / own["lower"]
            ends = dict.fromkeys(count(round(gap)) for gap in (gaps.min(), gaps.max()))
            below = [f"upper over lower: {' to '.join(ends)}"]
            _dress(axes, own.iloc[0], own["parameter"].iloc[0], own["value"].to_numpy(float), below)
        say_panels(figure)
        return figure


def lines(table: pd.DataFrame, *, title: str, ylabel: str = "excess risk") -> Figure:
    """All slopes of a table in one panel: what is measured along one axis, a line for each theorem, with its slope."""
    slopes = table[table["parameter"].str.startswith(SLOPE)]
    parameters = slopes["parameter"].str.removeprefix(SLOPE)
    with styled():
        axes = new_axes(title, in_signs(parameters.iloc[0].split(" (")[0]), ylabel)
        axes.set(xscale="log", yscale="log")
        handles: list[Line2D] = []
        notes: list[str] = []
        drawn: list[tuple[np.ndarray, np.ndarray, str, str]] = []
        for (_, slope), marker, colour in zip(slopes.iterrows(), "os^DvX", _COLOURS, strict=False):
            points, (rivals, stated, interval) = _points(table, slope), _slope_texts(slope)
            text = f"{name_of(slope)}, {in_signs(slope['parameter'].removeprefix(SLOPE))}"
            against = ", ".join(map(slope_text, rivals))
            notes.append(f"{text}: slope {interval}, {stated}, rivals {against}: {slope['verdict']}.")
            handles.append(_measured(axes, points, color=colour, fmt=f"{marker}-"))
            handles[-1].set_label(text)
            for exponent in (slope["value"], *rivals):
                dashes = "--" if exponent == slope["value"] else ":"
                drawn.append((points["value"].to_numpy(float), _through(points, exponent), dashes, colour))
        # What a rival would give leaves the panel where it must.
        limits = axes.get_ylim()
        for x, y, dashes, colour in drawn:
            axes.plot(x, y, color=colour, ls=dashes, lw=0.9, zorder=1)
        axes.set_ylim(limits)
        _ticks(axes, sorted(table.loc[table["parameter"].isin(parameters), "value"].unique()), size=8.5)
        log_ticks(axes.yaxis, *limits, most=9)
        notes.append(f"Bars: 95 % intervals. Dashed: stated exponent; dotted: its rivals. {_DECISION}")
        return set_page(axes, handles, notes)


def name_of(row: pd.Series) -> str:
    """A theorem as its paper numbers it, and which form of it where there are two."""
    key = str(row["theorem"])
    theorem = THEOREMS.get(key)
    if theorem is None:
        return key
    paper = PAPERS[theorem.paper].removesuffix(" paper").capitalize()
    place = theorem.place.partition(" (complete")[0].partition(", eq")[0]
    return f"{paper} {place}" + (f", {row['form']}" if row["form"] else "")


def _bracket(parameter: str) -> str:
    """What is measured, as in "n where privacy doubles the risk", where a parameter's brackets say it."""
    inside = parameter.partition(" (")[2].removesuffix(")")
    if inside in _ENTRIES:
        return _ENTRIES[inside]
    return in_signs(inside) if inside.startswith(_MEASURES) else ""


def _measured(axes: Axes, points: pd.DataFrame, **options: Any) -> Line2D:
    y = points["measured"].to_numpy(float)
    errors = np.abs(points[["measured_low", "measured_high"]].to_numpy(float).T - y)
    look: dict[str, Any] = {"fmt": "o", "color": _INK, "ms": 3.5, "capsize": 2, "lw": 1.0, "zorder": 3}
    drawn = axes.errorbar(points["value"], y, yerr=errors, **(look | options))
    gid = f"points:{len(gid_texts(axes.figure))}"
    line: Line2D = drawn.lines[0]
    line.set_gid(gid)
    say(axes.figure, gid, [_point_text(row) for row in points[np.isfinite(y)].to_dict("records")])
    return line


def _point_text(row: dict[Any, Any]) -> str:
    text = f"{in_signs(row['parameter'])} = {row['value']:g}: {measured(row['measured'])}"
    if np.isfinite(row["measured_low"]):
        text += f" ({measured(row['measured_low'])} to {measured(row['measured_high'])})"
    bounds = [f"{name} bound {measured(row[name])}" for name in ("lower", "upper") if np.isfinite(row[name])]
    return "; ".join([text, *bounds, *([str(row["verdict"])] if row["verdict"] else [])])


def _dress(axes: Axes, row: pd.Series, parameter: str, x: np.ndarray, below: Sequence[str]) -> None:
    """Heading, ticks at the points, and below the panel what came out: no text over data."""
    quantities = (name for start, name in _QUANTITIES.items() if str(row["theorem"]).startswith(start))
    name, what = name_of(row), _bracket(parameter) or next(quantities)
    # From the left edge of the panel's labels, for more room than the axes have.
    edge: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    heading = [line for part in (name, what) for line in textwrap.wrap(part, 32)]
    axes.annotate("\n".join(heading), (0, 1), (-72 * _EDGE, 3), fontsize=6.8, va="bottom", **edge)
    shown = parameter.partition(" (")[0] if _bracket(parameter) else parameter
    axes.set_xlabel("\n".join(textwrap.wrap(in_signs(shown), 28)), fontsize=6.8, labelpad=1)
    _ticks(axes, sorted(set(x.tolist())), size=6.3)
    low, high = axes.get_ylim()
    log_ticks(axes.yaxis, low, high, most=0 if high > 30 * low else 5)
    axes.tick_params(axis="y", labelsize=6.3, pad=2)
    axes.annotate("\n".join(below), (0, 0), (-72 * _EDGE, -72 * _XAXIS), fontsize=6.5, va="top", **edge)


def _ticks(axes: Axes, values: Sequence[float], size: float) -> None:
    span = np.log10(values[-1] / values[0]) or 1.0
    set_ticks(axes, {value: count(value) for value in values}, lambda text: span * 0.05 * (1 + len(text)) * size / 8)
    axes.tick_params(axis="x", labelsize=size, pad=2)


def _page(title: str, panels: int, note: str, lines: int) -> tuple[Figure, list[Axes]]:
    """A page of panels, three beside each other; `lines` of text have room below each."""
    row = _ABOVE + _TALL + _XAXIS + _LINE * lines + 0.08
    titles = textwrap.wrap(title, 60)
    top = _TOP + 0.17 * (len(titles) - 1)
    height = round(top + -(-panels // _COLUMNS) * row + 0.12, 2)
    figure = new_figure(_WIDTH, height)
    figure.text(0.08 / _WIDTH, 1 - 0.08 / height, "\n".join(titles), va="top", fontsize=10, fontweight="bold")
    say_note(figure, note)
    step = _WIDTH / _COLUMNS
    size = (step - _LEFT - _RIGHT) / _WIDTH, _TALL / height
    found = []
    for place in range(panels):
        line, column = divmod(place, _COLUMNS)
        bottom = height - top - line * row - _ABOVE - _TALL
        found.append(figure.add_axes(((column * step + _LEFT) / _WIDTH, bottom / height, *size)))
    return figure, found
