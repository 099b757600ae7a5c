"""The leaderboard's figures: error against certified ε, and what corrections gain along heterogeneity."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from silodp.config.board import heterogeneity_axis
from silodp.report.figures.axes import new_figure
from silodp.report.figures.reader_words import short_title
from silodp.report.figures.style import looks, short_label, styled
from silodp.report.figures.svg import say_panels
from silodp.verdicts.leaderboard import axis_position

# Inches of a panel with what stands around it, and of a row of the legend.
_WIDTH, _HEIGHT, _ROW = 2.9, 2.3, 0.16
# Of values of ε: colours are algorithms'.
_GREYS = ("#111111", "#8c8c8c", "#555555", "#b5b5b5")
ALPHA = "silos.alpha"


def error_panels(reported: pd.DataFrame) -> Figure:
    """Mean test error over trials against ε: a panel for each data set, a line for each algorithm.

    Experiments on an axis of heterogeneity are left out.
    """
    rows = reported[reported["epsilon"].notna() & (reported["experiment"].map(heterogeneity_axis) == "")]
    names = list(looks(set(rows["algorithm"]) - {"spider"}))
    experiments = list(dict.fromkeys(rows["experiment"]))
    title = "Test error at equal certified ε, by data set"
    with styled():
        figure, panels = _panels(len(experiments), math.ceil(len(names) / 2), title)
        for axes, experiment in zip(panels, experiments, strict=True):
            part = rows[rows["experiment"] == experiment]
            for name, look in looks(names).items():
                means = part[part["algorithm"] == name].groupby("epsilon")["test_error"].mean()
                style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ls": look.line, "lw": 1, "ms": 3}
                axes.plot(means.index, means.to_numpy(), label=short_label(name), **style)
            epsilons = sorted(part["epsilon"].unique())
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(FixedLocator(epsilons))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xticklabels([f"{epsilon:.3g}" for epsilon in epsilons])
            axes.set_xlabel("certified ε", fontsize=7)
            axes.tick_params(labelsize=6.5)
            axes.set_title(short_title(experiment).removesuffix(", leaderboard"), fontsize=7.5)
            axes.set_ylabel("test error (↓ better)", fontsize=7)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=2, fontsize=7)
        say_panels(figure)
    return figure


def heterogeneity_panels(table: pd.DataFrame) -> Figure:
    """Differences along the axis of heterogeneity with their intervals: a panel for each pair, a line for each ε.

    `table` is what `silodp.verdicts.leaderboard.compared` gives, with an experiment on an axis.
    """
    rows = table[table["axis"] != ""]
    rows = rows.assign(at=rows["experiment"].map(axis_position)).sort_values(["axis", "at"], ascending=[False, True])
    pairs = list(rows.groupby(["first", "second", "axis"], sort=False))
    with styled():
        figure, panels = _panels(len(pairs), 1, "Test error with a correction minus without, by heterogeneity")
        for axes, ((first, second, axis), part) in zip(panels, pairs, strict=True):
            for shift, (epsilon, line) in enumerate(part.groupby("epsilon")):
                bars = [line["difference"] - line["low"], line["high"] - line["difference"]]
                at = line["at"] * 1.1**shift if axis == ALPHA else line["at"] + 2.5 * shift
                look: dict[str, Any] = {"fmt": "os^D"[shift % 4] + "-", "color": _GREYS[shift % 4], "ms": 3, "lw": 1}
                axes.errorbar(at, line["difference"], bars, label=f"ε = {epsilon:g}", **look)
            axes.axhline(0, color="black", lw=0.7)
            axes.set_title(f"{short_label(first)} minus {short_label(second)}", fontsize=7)
            axes.set_ylabel("below 0: the first is better", fontsize=7)
            axes.set_xlabel("Dirichlet α" if axis == ALPHA else "records from all classes, %", fontsize=7)
            if axis == ALPHA:
                axes.set_xscale("log")
            axes.tick_params(labelsize=6.5)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=4, fontsize=7)
        say_panels(figure)
    return figure


def _panels(count: int, legend: int, title: str) -> tuple[Figure, list[Axes]]:
    columns = min(count, 2)
    rows = math.ceil(count / columns)
    width, bottom = max(columns * _WIDTH, 5.4), 0.25 + _ROW * legend
    height = rows * _HEIGHT + bottom + 0.3
    figure = new_figure(width, height)
    figure.text(0.1 / width, 1 - 0.22 / height, title, fontsize=9, fontweight="bold")
    panels = []
    for number in range(count):
        row, column = divmod(number, columns)
        left, low = column * width / columns + 0.68, bottom + (rows - 1 - row) * _HEIGHT + 0.45
        size = ((width / columns - 0.78) / width, (_HEIGHT - 0.75) / height)
        panels.append(figure.add_axes((left / width, low / height, *size)))
    return figure, panels
