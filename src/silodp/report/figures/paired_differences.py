"""Paired differences of test error with their intervals: who is better, by how much, at every ε of every setting."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from silodp.report.cells import PUBLISHED, USELESS, counts_of_cells
from silodp.report.figures.axes import new_figure
from silodp.report.figures.reader_words import setting_words, short_title
from silodp.report.figures.style import better_of, in_legend, looks, short_label, styled
from silodp.report.figures.svg import say, say_note, say_panels
from silodp.report.numbers import measured
from silodp.verdicts.comparisons import AHEAD, BEHIND, SAME
from silodp.verdicts.decided import OPEN, WITHIN

# Outcome → colour, marker, and width of the interval's line: told apart in grey too.
_LOOKS = {
    AHEAD: ("#004488", "<", 1.1),
    BEHIND: ("#b3485a", ">", 1.1),
    WITHIN: ("#6e6e6e", "|", 2.8),
    OPEN: ("#6e6e6e", "|", 1.1),
    SAME: ("#a8a8a8", "x", 1.1),
    USELESS: ("#a8a8a8", "o", 1.1),
}
# Inches: of a page, of one row of a panel, and of what stands around panels.
_WIDTH, _COLUMNS, _ROW, _HEADING, _XAXIS, _TOP, _BOTTOM = 5.4, 2, 0.135, 0.32, 0.36, 0.66, 0.98
# Beyond such a ratio a common range would hide the narrower panels.
_FAR = 8
# Points of text in a panel: 10 px on the page.
_SIZE = 6.6


def outcome_looks(first: str, second: str) -> dict[str, tuple[str, str, float]]:
    """Outcome → colour, marker and width of the line; who is better lends its colour."""
    own = looks({first, second})
    colours = {} if first.startswith(second) else {AHEAD: own[first].colour, BEHIND: own[second].colour}
    return {word: (colours.get(word, look[0]), *look[1:]) for word, look in _LOOKS.items()}


def paired_differences(rows: pd.DataFrame, *, title: str, names: tuple[str, str] | None = None) -> Figure:
    """A forest plot of one pair: a panel for each (experiment, M, R), a line for each ε, the margin Δ as a band.

    All panels have one range of differences; where one experiment's is `_FAR` times another's each has its own.
    `rows` are those of `silodp.report.cells`. `names` are what the two are called in place of their labels.
    """
    pairs = rows[["first", "second"]].drop_duplicates()
    first, second = names or map(short_label, pairs.iloc[0])
    rows = rows.sort_values("epsilon", kind="stable")
    groups = list(rows.groupby(["experiment", "M", "R"], sort=False))
    order = {name: place for place, name in enumerate(dict.fromkeys(rows["experiment"]))}
    groups.sort(key=lambda group: (order[group[0][0]], *group[0][1:]))
    step = (_WIDTH - 0.06) / _COLUMNS
    lines = [groups[start : start + _COLUMNS] for start in range(0, len(groups), _COLUMNS)]
    heights = [_ROW * (0.6 + max(len(group) for _, group in line)) for line in lines]
    height = _TOP + sum(heights) + len(lines) * (_HEADING + _XAXIS) + _BOTTOM
    with styled():
        figure = new_figure(_WIDTH, height)
        figure.text(0.1 / _WIDTH, 1 - 0.1 / height, title, va="top", fontsize=10, fontweight="bold")
        what = f"Test error of {first} minus that of {second}: mean, 95 % interval.\n{_source(rows)}"
        figure.text(0.1 / _WIDTH, 1 - 0.33 / height, what, va="top", fontsize=7.2)
        say_note(figure, better_of([first, second]))
        mixed = rows["decided"].nunique() > 1
        own = {name: _limits(part) for name, part in rows.groupby("experiment")}
        spans = [high - low for low, high in own.values()]
        limits = own if max(spans) > _FAR * min(spans) else dict.fromkeys(own, _limits(rows))
        top = height - _TOP
        for place, (key, group) in enumerate(groups):
            line, column = divmod(place, _COLUMNS)
            bottom = top - _HEADING - heights[line]
            left = 0.56 + column * step
            axes = figure.add_axes((left / _WIDTH, bottom / height, (step - 0.62) / _WIDTH, heights[line] / height))
            _panel(axes, group, limits[key[0]])
            heading = f"{short_title(key[0])}\n{setting_words(*key[1:])}" + "*" * mixed * (not group["decided"].all())
            axes.set_title(heading, fontsize=_SIZE, pad=3, x=-0.42 / (step - 0.62))
            axes.set_xlabel(f"← {first} better | {second} better →", fontsize=_SIZE, labelpad=1)
            if column == _COLUMNS - 1:
                top = bottom - _XAXIS
        _legend(figure, rows, first, second, height)
        say_panels(figure)
        return figure


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    values = rows[["low", "high", "difference", "margin"]].to_numpy(float)
    values = np.r_[values[np.isfinite(values)], 0.0]
    room = 0.06 * (values.max() - values.min() or 1.0)
    return float(values.min() - room), float(values.max() + room)


def _panel(axes: Axes, rows: pd.DataFrame, limits: tuple[float, float]) -> None:
    y = np.arange(len(rows))[::-1].astype(float)
    margin = float(rows["margin"].max())
    if margin > 0:
        axes.axvspan(-margin, margin, color="#d6d6d6", lw=0, zorder=0.5)
    axes.axvline(0, color="#000000", lw=0.8, zorder=1)
    for outcome, (colour, marker, wide) in outcome_looks(*rows[["first", "second"]].iloc[0]).items():
        here = (rows["outcome"] == outcome).to_numpy()
        if not here.any():
            continue
        of = rows[here]
        gid = f"{axes.figure.axes.index(axes)}:{outcome}"
        middle, low, high = of[["difference", "low", "high"]].to_numpy(float).T
        ends = [middle - low, high - middle]
        axes.errorbar(middle, y[here], xerr=ends, fmt="none", ecolor=colour, lw=wide, capsize=0)
        axes.plot(middle, y[here], ls="none", marker=marker, ms=4.5, color=colour, zorder=3, gid=gid)
        say(axes.figure, gid, [_point_text(row) for row in of.to_dict("records") if np.isfinite(row["difference"])])
    axes.set_ylim(-0.8, len(rows) - 0.2)
    axes.set_xlim(limits)
    texts = [f"{value:g}" if np.isfinite(value) else "–" for value in rows["epsilon"]]
    axes.set_yticks(y, [f"ε = {texts[0]}", *texts[1:]], fontsize=_SIZE)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−") if value else "equal"))
    axes.tick_params(axis="x", labelsize=_SIZE, length=2, pad=2)
    axes.tick_params(axis="y", length=0, pad=2)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def _point_text(row: dict[Any, Any]) -> str:
    difference, low, high = (measured(row[name]) for name in ("difference", "low", "high"))
    return f"ε = {row['epsilon']:g}: {difference} ({low} to {high}), {row['outcome']}, {row['trials']} trials"


def _source(rows: pd.DataFrame) -> str:
    """What stands behind the intervals."""
    if not rows["decided"].any():
        return f"{PUBLISHED[:1].upper()}{PUBLISHED[1:]}."
    return "Each with its tuning, by fresh trials" + ("." if rows["decided"].all() else f"; *: {PUBLISHED}.")


def _legend(figure: Figure, rows: pd.DataFrame, first: str, second: str, height: float) -> None:
    words = {AHEAD: f"{in_legend(first)} better", BEHIND: f"{in_legend(second)} better", WITHIN: "alike"}
    parts = [(part, counts_of_cells(part)) for part in (rows[rows["decided"]], rows[~rows["decided"]]) if len(part)]
    handles: list[Any] = []
    for outcome, (colour, marker, wide) in outcome_looks(*rows[["first", "second"]].iloc[0]).items():
        if not (rows["outcome"] == outcome).any():
            continue
        texts: list[str] = []
        for part, counts in parts:
            kept = {AHEAD: counts.ahead_kept, BEHIND: counts.behind_kept}.get(outcome)
            holm = "" if kept is None else f" ({kept})"
            of = len(part) if outcome in (SAME, USELESS) else counts.cells
            texts.append(f"{(part['outcome'] == outcome).sum()}{holm} of {of}{'*' * (texts != [])}")
        text = f"{words.get(outcome, outcome)}: {', '.join(texts)}"
        handles.append(Line2D([], [], marker=marker, label=text, color=colour, ms=4.5, lw=wide))
    if (rows["margin"] > 0).any():
        margins = " or ".join(f"{value:g}" for value in sorted(set(rows["margin"])))
        text = f"grey: within the margin of {margins}\nin brackets: what Holm's correction keeps"
        handles.append(Patch(facecolor="#d6d6d6", lw=0, label=text))
    place = (0.1 / _WIDTH, 0.06 / height)
    options: dict[str, Any] = {"ncols": 1, "borderpad": 0.0, "borderaxespad": 0.0, "fontsize": 7.0}
    figure.legend(handles=handles, loc="lower left", bbox_to_anchor=place, **options)
