"""The page of a figure, its ε axis, and lines with bars and marks, which figures share."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from silodp.algorithms.base import Look
from silodp.report.figures.style import better_of, in_legend
from silodp.report.figures.svg import say, say_note
from silodp.report.numbers import tick_text

MORE_PRIVATE = "ε  (← more private)"
TOP_EDGE = 0.985  # height, in axes units, at which values that are not finite are marked

# Inches. The axes keep their size whatever stands around them; the page grows with title, legend and notes.
# On a phone of 366 px a point has 1.1 px, so that text of 8.3 points has 9 px.
_WIDTH, _AXES_HEIGHT, _LEFT, _RIGHT = 4.6, 2.6, 0.74, 0.12
_TITLE_LINE, _XLABEL, _LEGEND_ROW, _MARGIN = 0.19, 0.46, 0.185, 0.1
# With a zoom panel: heights of the whole and of the part, and what stands between them.
_OVERVIEW_HEIGHT, _ZOOM_HEIGHT, _BETWEEN = 1.2, 2.1, 0.42
# How much longer one curve may make an axis.
_STRETCH = 2.0
# Of the ε axis: how far the first and the last of several dodged points stand apart, and how near two labels may be.
_DODGE, _NEAREST_LABELS, _END = 0.04, 0.045, 0.04

# A title may come from a run file: a $ in it is no formula.
_WORDS: dict[str, Any] = {"parse_math": False}
# A cross is a trial or a value that diverged.
_CROSS: dict[str, Any] = {"ls": "none", "marker": "x", "ms": 6.5, "mew": 1.4, "zorder": 6}


def new_figure(width: float, height: float) -> Figure:
    """A page in inches, drawn by Agg and known to no global list."""
    figure = Figure(figsize=(width, round(height, 2)))
    FigureCanvasAgg(figure)
    return figure


def new_axes(title: str, xlabel: str, ylabel: str) -> Axes:
    axes = new_figure(_WIDTH, _AXES_HEIGHT).add_subplot()
    axes.set_title("\n".join(line for part in title.splitlines() for line in textwrap.wrap(part, 46)), **_WORDS)
    axes.set_xlabel(xlabel, **_WORDS)
    axes.set_ylabel("\n".join(textwrap.wrap(ylabel, 44)), **_WORDS)
    return axes


def zoom_axes(axes: Axes, without: str) -> Axes:
    """A second panel below `axes`, on the same ε axis, for all curves but those that stretch the first."""
    below = axes.figure.add_subplot(sharex=axes)
    below.set_title(f"Without {without}", loc="left", fontsize=8.5, fontweight="normal")
    below.set_xlabel(axes.get_xlabel(), **_WORDS)
    below.set_ylabel(axes.get_ylabel(), **_WORDS)
    axes.set(xlabel="", ylabel="")
    axes.tick_params(labelbottom=False)
    return below


def stretching(largest: pd.Series, baseline: float = np.nan) -> str | None:
    """The curve without which the axis of errors is less than half as long, by the largest values drawn; else None."""
    by_size = largest.dropna().sort_values()
    if len(by_size) < 3:
        return None
    others = np.nanmax([by_size.iloc[-2], baseline])
    return str(by_size.index[-1]) if by_size.iloc[-1] > _STRETCH * others else None


def set_page(axes: Axes, handles: Sequence[Any], notes: Iterable[str | None], marks: str = "") -> Figure:
    """Set the legend below the axes, in one line where it fits, and the page about it; notes stand beside the picture.

    `marks` says, below the axis, what full, half and empty marks are; empty for nothing.
    """
    figure = axes.figure
    assert isinstance(figure, Figure)
    labels = [str((handle[-1] if isinstance(handle, tuple) else handle).get_label()) for handle in handles]
    say_note(figure, " ".join(note for note in [*notes, better_of(labels)] if note))
    labels = [in_legend(text) for text in labels]
    edges: dict[str, Any] = {"borderpad": 0.0, "borderaxespad": 0.0, "labelspacing": 0.35, "loc": "upper left"}
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(handles, labels, ncols=columns, **edges)
        if columns == 1 or legend.get_window_extent().width / figure.dpi <= _WIDTH - 2 * _MARGIN:
            break
        legend.remove()
    rows = -(-len(handles) // columns) if handles else 0
    panels = figure.axes
    if marks:
        panels[-1].set_xlabel(f"{panels[-1].get_xlabel()}\n{marks}", linespacing=1.45, **_WORDS)
    below = _MARGIN + _LEGEND_ROW * rows + _XLABEL + (_TITLE_LINE if marks else 0.0)
    heights = [_AXES_HEIGHT] if len(panels) == 1 else [_OVERVIEW_HEIGHT, _ZOOM_HEIGHT]
    title = _TITLE_LINE * (axes.get_title(loc="left").count("\n") + 1)
    height = below + sum(heights) + _BETWEEN * (len(panels) - 1) + title + 2 * _MARGIN
    figure.set_size_inches(_WIDTH, round(height, 2))
    left = _LEFT + _TITLE_LINE * panels[-1].get_ylabel().count("\n")
    bottom = below
    for panel, tall in zip(reversed(panels), reversed(heights), strict=True):
        panel.set_position((left / _WIDTH, bottom / height, (_WIDTH - left - _RIGHT) / _WIDTH, tall / height))
        bottom += tall + _BETWEEN
    if handles:
        legend.set_bbox_to_anchor((_MARGIN / _WIDTH, (_MARGIN + _LEGEND_ROW * rows) / height))
    return figure


def draw_line(
    axes: Axes,
    name: str,
    look: Look,
    label: str,
    points: tuple[np.ndarray, np.ndarray],
    words: Iterable[str],
    bars: tuple[np.ndarray, np.ndarray] | None = None,
    marks: bool = True,
    **style: Any,
) -> Line2D:
    """One curve with its markers, which its parts bear the `name` of; returns it for the legend.

    `points` are x and y (points,), of which a y of NaN is not drawn, `words` what rests on each, `bars` lower and upper
    ends (points,). Without `marks` its points have none but in the legend. `style` goes over the look.
    """
    x, y = points
    if bars is not None:
        low, high = bars
        # About their own middle, not the mean: a skewed mean may lie outside its percentiles.
        drawn = axes.errorbar(
            x, (low + high) / 2, yerr=(high - low) / 2, fmt="none", ecolor=look.colour, capsize=2.0, lw=1.0
        )
        for part in (*drawn.lines[1], *drawn.lines[2]):
            part.set_gid(f"bars:{name}")
    whole: dict[str, Any] = {"color": look.colour, "ls": look.line, "marker": look.marker, "zorder": 3} | style
    (line,) = axes.plot(x, y, label=label, gid=f"line:{name}", **(whole if marks else whole | {"marker": ""}))
    say(axes.figure, f"line:{name}", [value for value, height in zip(words, y, strict=True) if height == height])
    return line if marks else Line2D([], [], label=label, **whole)


def cross(axes: Axes, x: np.ndarray, y: np.ndarray, gid: str, **options: Any) -> None:
    if len(x):
        axes.plot(x, y, gid=gid, **(_CROSS | {"color": "#000000"} | options))


def cross_key() -> Line2D:
    return Line2D([], [], color="#000000", label="trials diverged", **_CROSS)


def cross_beyond(axes: Axes, x: np.ndarray, look: Look, name: str, words: Sequence[str]) -> None:
    """Crosses on the upper edge, for values that are not finite."""
    edge = {"transform": axes.get_xaxis_transform(), "clip_on": False, "color": look.colour}
    cross(axes, x, np.full(len(x), TOP_EDGE), f"beyond:{name}", **edge)
    if len(x):
        say(axes.figure, f"beyond:{name}", words)


def dodged(epsilons: Iterable[float], count: int) -> list[float]:
    """Factors by which `count` curves are moved along a logarithmic ε axis, symmetric about 1.

    The first and the last stand apart by a few per cent of the axis, and by less where two ε are nearer than that.
    """
    if count < 2:
        return [1.0] * count
    places = np.log10(sorted(set(map(float, epsilons))))
    # One ε alone has an axis of a decade.
    room = _DODGE * (places[-1] - places[0] or 1.0)
    if len(places) > 1:
        room = min(room, 0.6 * float(np.diff(places).min()))
    return (10 ** np.linspace(-room / 2, room / 2, count)).tolist()


def set_epsilon_axis(axes: Axes, epsilons: pd.Series) -> None:
    """A logarithmic axis with a tick at every ε that was run; a label that would touch the one before is left out."""
    values = sorted(set(epsilons.astype(float)))
    axes.set_xscale("log")
    span = np.log10(values[-1] / values[0]) or 1.0 if values else 1.0
    texts = {value: f"{value:g}" for value in values}
    set_ticks(axes, texts, lambda text: _NEAREST_LABELS * span * (1 + len(text) / 12))
    if values:
        end = 10 ** (_END * span)
        axes.set_xlim(values[0] / end, values[-1] * end)


def set_ticks(axes: Axes, texts: dict[float, str], room: Any) -> None:
    """Ticks of a log x axis at the increasing values of `texts`, labelled where `room`, in decades, allows it."""
    shown: dict[float, str] = {}
    for value, text in texts.items():
        if not shown or np.log10(value / max(shown)) >= room(text):
            shown[value] = text
    axes.xaxis.set_major_locator(FixedLocator(list(texts)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown.get(value, "")))
    axes.xaxis.set_minor_locator(NullLocator())


def log_ticks(axis: Axis, low: float, high: float, most: int) -> None:
    """Plain numbers on an axis: at 1, 2, 5 of every decade, at 1 and 3, or at 1, with `most` labels at most."""
    decades = np.log10(high / low)
    subs = next((steps for steps in ((1.0, 2.0, 5.0), (1.0, 3.0)) if len(steps) * decades <= most), (1.0,))
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    axis.set_minor_formatter(NullFormatter())
