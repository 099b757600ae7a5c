"""Figures of the bounds tables: rates with their slopes, a risk between its bounds, rounds to a target."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from silodp.figures.style import styled

_COLUMNS = 4
_INK, _CLAIM, _FIT, _BOUND = "#004488", "#000000", "#b3485a", "#6e6e6e"
_COLOURS = ("#004488", "#b3485a", "#d9a62e", "#30102f", "#3a9a92", "#6b4a9c")
SLOPE = "slope in "
_SIGNS = {"epsilon": "ε", "sigma": "σ", "beta": "β"}


def rates(table: pd.DataFrame, *, title: str) -> Figure:
    """One log–log panel for each slope of a rates table: means with intervals, fitted line, and the claimed exponent.

    Raises ValueError when the table has no slope.
    """
    slopes = table[table["parameter"].str.startswith(SLOPE)]
    if slopes.empty:
        raise ValueError("figure: the table has no slopes")
    with styled():
        figure, panels = _page(title, len(slopes), "dashes: claimed exponent; red: fitted; bars: 95 % intervals")
        for axes, (_, slope) in zip(panels, slopes.iterrows(), strict=True):
            parameter = slope["parameter"].removeprefix(SLOPE)
            points = table[(table["theorem"] == slope["theorem"]) & (table["parameter"] == parameter)]
            _rate(axes, points, slope, parameter)
        return figure


def _rate(axes: Axes, points: pd.DataFrame, slope: pd.Series, parameter: str) -> None:
    x, y = points["value"].to_numpy(float), points["measured"].to_numpy(float)
    _measured(axes, points)
    axes.set(xscale="log", yscale="log", xlabel=_in_signs(parameter))
    middle = np.exp(np.log(x).mean()), np.exp(np.log(y).mean())
    looks: list[tuple[float, dict[str, Any]]] = [
        (slope["measured"], {"color": _FIT}),
        (slope["value"], {"color": _CLAIM, "ls": "--"}),
    ]
    for exponent, look in looks:
        axes.plot(x, middle[1] * (x / middle[0]) ** exponent, lw=1.0, zorder=1, **look)
    # Room below the data for what stands there.
    axes.set_ylim(bottom=y.min() / (y.max() / y.min()) ** 0.5)
    _titled(axes, slope["theorem"])
    verdict = str(slope["verdict"]).split(":")[0]
    said = f"{slope['measured']:.2f} [{slope['measured_low']:.2f}, {slope['measured_high']:.2f}]"
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
    text = f"claimed {slope['value']:.3g}\nmeasured {said}\n{verdict}"
    axes.text(0.03, 0.03, text, transform=axes.transAxes, fontsize=6.5, va="bottom", bbox=box)


def between_bounds(table: pd.DataFrame, *, title: str) -> Figure:
    """One panel for each theorem and parameter: measured means with intervals between lower and upper bounds."""
    groups = [group for _, group in table.groupby(["theorem", "parameter"], sort=False) if len(group) > 1]
    if not groups:
        raise ValueError("figure: the table has no theorem with two values of a parameter")
    with styled():
        said = "dots with bars: measured; dashes: upper bound; dotted: lower bound, its hidden constant taken as 1"
        figure, panels = _page(title, len(groups), said)
        for axes, group in zip(panels, groups, strict=True):
            _measured(axes, group)
            for column, line in (("upper", "--"), ("lower", ":")):
                axes.plot(group["value"], group[column], color=_BOUND, ls=line, lw=1.2)
            axes.set(xscale="log", yscale="log", xlabel=_in_signs(group["parameter"].iloc[0]))
            _titled(axes, group["theorem"].iloc[0])
        return figure


def lines(table: pd.DataFrame, *, title: str, ylabel: str = "excess risk") -> Figure:
    """All slopes of a table in one panel: what is measured along one axis, a line for each theorem, with its slope."""
    slopes = table[table["parameter"].str.startswith(SLOPE)]
    if slopes.empty:
        raise ValueError("figure: the table has no slopes")
    with styled():
        figure = Figure(figsize=(5.4, 3.9), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for (_, slope), marker, colour in zip(slopes.iterrows(), "os^DvX", _COLOURS, strict=False):
            parameter = slope["parameter"].removeprefix(SLOPE)
            points = table[(table["theorem"] == slope["theorem"]) & (table["parameter"] == parameter)]
            said = f"slope {slope['measured']:.2f} (claimed {slope['value']:.3g})"
            text = f"{slope['theorem']}, {_in_signs(parameter)}: {said}"
            _measured(axes, points, color=colour, fmt=f"{marker}-", label=text)
        xlabel = _in_signs(slopes["parameter"].iloc[0].removeprefix(SLOPE).split(" (")[0])
        axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
        drawn = table["parameter"].isin(slopes["parameter"].str.removeprefix(SLOPE))
        values = sorted(table.loc[drawn, "value"].unique())
        axes.set_xticks(values, [f"{value:,.10g}" for value in values])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(title)
        axes.legend(fontsize=7)
        return figure


def _in_signs(parameter: str) -> str:
    """A parameter as its symbol, with what stands in brackets: "epsilon (hinge)" is "ε (hinge)"."""
    name, *rest = parameter.split(" ", 1)
    return " ".join([_SIGNS.get(name, name), *rest])


def _measured(axes: Axes, points: pd.DataFrame, **options: Any) -> None:
    y = points["measured"].to_numpy(float)
    errors = np.abs(points[["measured_low", "measured_high"]].to_numpy(float).T - y)
    look: dict[str, Any] = {"fmt": "o", "color": _INK, "ms": 3.5, "capsize": 2, "lw": 1.0, "zorder": 3}
    axes.errorbar(points["value"], y, yerr=errors, **(look | options))


def _titled(axes: Axes, text: str) -> None:
    axes.set_title("\n".join(textwrap.wrap(text, 30)), fontsize=8)
    axes.tick_params(labelsize=6.5, which="both")
    # Decades only: labels between them would run into each other.
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.label.set_fontsize(7)


def _page(title: str, panels: int, note: str) -> tuple[Figure, list[Axes]]:
    rows = -(-panels // _COLUMNS)
    columns = min(_COLUMNS, panels)
    width, height = 2.3 * columns + 0.2, 2.2 * rows + 0.6
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left", y=1 - 0.08 / height)
    figure.supxlabel(note, fontsize=7, y=0.05 / height)
    figure.supylabel("what the statement bounds", fontsize=7, x=0.05 / width)
    # Margins in inches: a layout that measures every label would take longer than all the rest.
    margins = {"left": 0.65 / width, "right": 1 - 0.1 / width, "bottom": 0.6 / height, "top": 1 - 0.65 / height}
    space = {"wspace": 0.34, "hspace": 0.55}
    grid = figure.subplots(rows, columns, squeeze=False, gridspec_kw=margins | space).flatten()
    for axes in grid[panels:]:
        axes.set_axis_off()
    return figure, list(grid[:panels])
