"""Paired differences of test error with their intervals: who is better, by how much, at every ε of every setting."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from silodp.report.figures.axes import new_figure
from silodp.report.figures.style import better_of, in_legend, label, looks, styled
from silodp.report.figures.svg import say, say_note
from silodp.report.figures.words import setting_words, title_of
from silodp.report.numbers import measured
from silodp.verdicts.comparisons import NO_DIFFERENCE, SAME

# Outcome → colour, marker and the marker's inside: told apart in grey too.
FIRST, SECOND, EQUAL, UNDECIDED = "first better", "second better", "equal within the tolerance", NO_DIFFERENCE
_LOOKS = {
    FIRST: ("#004488", "<", "#004488"),
    SECOND: ("#b3485a", ">", "#b3485a"),
    EQUAL: ("#6e6e6e", "D", "#6e6e6e"),
    UNDECIDED: ("#6e6e6e", "o", "#ffffff"),
    SAME: ("#a8a8a8", "x", "#a8a8a8"),
}
# Inches: of a page, of one row of a panel, and of what stands around panels.
_WIDTH, _ROW, _TITLE_LINE, _XAXIS, _TOP, _BOTTOM = 5.4, 0.13, 0.125, 0.22, 0.5, 0.6
# Points of a panel's title, and how many characters of it an inch holds.
_SIZE, _CHARACTERS = 6.8, 16.5


def outcomes(rows: pd.DataFrame) -> pd.Series:
    """What each interval says: who is better, or equal within `tolerance`, or nothing; of one algorithm, `SAME`."""
    same = rows["outcome"] == SAME if "outcome" in rows else np.zeros(len(rows), bool)
    better = np.select([same, rows["high"] < 0, rows["low"] > 0], [SAME, FIRST, SECOND], UNDECIDED)
    alike = (rows["low"] >= -rows["tolerance"]) & (rows["high"] <= rows["tolerance"])
    return pd.Series(np.where((better == UNDECIDED) & alike, EQUAL, better), index=rows.index)


def outcome_looks(first: str, second: str) -> dict[str, tuple[str, str, str]]:
    """Outcome → colour, marker and the marker's inside; who is better lends its own colour."""
    own = looks({first, second})
    colours = {} if first.startswith(second) else {FIRST: own[first].colour, SECOND: own[second].colour}
    return {word: (colours.get(word, look[0]), look[1], colours.get(word, look[2])) for word, look in _LOOKS.items()}


def paired_differences(rows: pd.DataFrame, *, title: str, names: tuple[str, str] | None = None) -> Figure:
    """A forest plot of one pair: a panel for each (experiment, M, R), a line for each ε, the tolerance as a band.

    `names` are what the two are called in place of their labels. Raises ValueError for no rows, or several pairs.
    """
    pairs = rows[["first", "second"]].drop_duplicates()
    if len(pairs) != 1:
        raise ValueError(f"figure: {len(pairs)} pairs of algorithms, allowed: 1")
    first, second = names or tuple(label(name) for name in pairs.iloc[0])
    rows = rows.assign(outcome=outcomes(rows)).sort_values("epsilon", kind="stable")
    groups = list(rows.groupby(["experiment", "M", "R"], sort=False))
    order = {name: place for place, name in enumerate(dict.fromkeys(rows["experiment"]))}
    groups.sort(key=lambda group: (order[group[0][0]], *group[0][1:]))
    columns = 2 if len(groups) <= 6 else 3
    step = (_WIDTH - 0.06) / columns
    heads = {
        key: [*textwrap.wrap(title_of(key[0]), int(_CHARACTERS * step)), setting_words(*key[1:])] for key, _ in groups
    }
    lines = [groups[start : start + columns] for start in range(0, len(groups), columns)]
    heading = [_TITLE_LINE * (0.6 + max(len(heads[key]) for key, _ in line)) for line in lines]
    heights = [_ROW * (0.6 + max(len(group) for _, group in line)) for line in lines]
    height = _TOP + sum(heights) + sum(heading) + len(lines) * _XAXIS + _BOTTOM
    with styled():
        figure = new_figure(_WIDTH, height)
        figure.text(0.1 / _WIDTH, 1 - 0.1 / height, title, va="top", fontsize=10, fontweight="bold")
        what = f"Test error of {first} minus that of {second}, trial by trial: mean, 95 % interval"
        figure.text(0.1 / _WIDTH, 1 - 0.33 / height, what, va="top", fontsize=7.2)
        say_note(figure, better_of([first, second]))
        limits = {name: _limits(part) for name, part in rows.groupby("experiment")}
        top = height - _TOP
        for place, (key, group) in enumerate(groups):
            line, column = divmod(place, columns)
            bottom = top - heading[line] - heights[line]
            left = 0.56 + column * step
            axes = figure.add_axes((left / _WIDTH, bottom / height, (step - 0.62) / _WIDTH, heights[line] / height))
            _panel(axes, group, limits[key[0]])
            axes.set_title("\n".join(heads[key]), fontsize=_SIZE, pad=3, x=-0.42 / (step - 0.62))
            if column == columns - 1:
                top = bottom - _XAXIS
        _legend(figure, rows, first, second, height)
        return figure


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    values = rows[["low", "high", "difference", "tolerance"]].to_numpy(float)
    values = np.r_[values[np.isfinite(values)], 0.0]
    room = 0.06 * (values.max() - values.min() or 1.0)
    return float(values.min() - room), float(values.max() + room)


def _panel(axes: Axes, rows: pd.DataFrame, limits: tuple[float, float]) -> None:
    y = np.arange(len(rows))[::-1].astype(float)
    tolerance = float(rows["tolerance"].max())
    if tolerance > 0:
        axes.axvspan(-tolerance, tolerance, color="#d6d6d6", lw=0, zorder=0.5)
    axes.axvline(0, color="#000000", lw=0.8, zorder=1)
    for outcome, (colour, marker, face) in outcome_looks(*rows[["first", "second"]].iloc[0]).items():
        here = (rows["outcome"] == outcome).to_numpy()
        if not here.any():
            continue
        of = rows[here]
        gid = f"{axes.figure.axes.index(axes)}:{outcome}"
        middle, low, high = of[["difference", "low", "high"]].to_numpy(float).T
        axes.errorbar(middle, y[here], xerr=[middle - low, high - middle], fmt="none", ecolor=colour, lw=1.1, capsize=0)
        axes.plot(middle, y[here], ls="none", marker=marker, ms=4.5, mfc=face, mec=colour, zorder=3, gid=gid)
        say(axes.figure, gid, [_words(row) for row in of.to_dict("records") if np.isfinite(row["difference"])])
    axes.set_ylim(-0.8, len(rows) - 0.2)
    axes.set_xlim(limits)
    texts = [f"{value:g}" if np.isfinite(value) else "–" for value in rows["epsilon"]]
    axes.set_yticks(y, [f"ε = {texts[0]}", *texts[1:]], fontsize=6)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="x", labelsize=6, length=2, pad=2)
    axes.tick_params(axis="y", length=0, pad=2)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def _words(row: dict[Any, Any]) -> str:
    difference, low, high = (measured(row[name]) for name in ("difference", "low", "high"))
    return f"ε = {row['epsilon']:g}: {difference} ({low} to {high}), {row['outcome']}, {row['trials']} trials"


def _legend(figure: Figure, rows: pd.DataFrame, first: str, second: str, height: float) -> None:
    words = {FIRST: f"{in_legend(first)} ahead", SECOND: f"{in_legend(second)} ahead"}
    handles: list[Any] = []
    for outcome, (colour, marker, face) in outcome_looks(*rows[["first", "second"]].iloc[0]).items():
        if count := int((rows["outcome"] == outcome).sum()):
            style: dict[str, Any] = {"color": colour, "mfc": face, "mec": colour, "ms": 4.5, "lw": 1.1}
            text = f"{words.get(outcome, outcome)} ({count} of {len(rows)})"
            handles.append(Line2D([], [], marker=marker, label=text, **style))
    if (rows["tolerance"] > 0).any():
        handles.append(Patch(facecolor="#d6d6d6", lw=0, label=f"tolerance: ± {rows['tolerance'].max():g}"))
    place = (0.1 / _WIDTH, 0.06 / height)
    options: dict[str, Any] = {"ncols": 2, "borderpad": 0.0, "borderaxespad": 0.0, "fontsize": 7.5}
    figure.legend(handles=handles, loc="lower left", bbox_to_anchor=place, **options)
