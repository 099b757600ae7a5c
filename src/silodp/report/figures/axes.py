"""The page of a figure and the ε axis, which figures share."""

import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple

from silodp.figures.style import Look

TOP_EDGE = 0.985  # height, in axes units, at which values that are not finite are marked

# Inches. The axes keep their size whatever stands around them; the page grows with title, legend and notes.
_WIDTH, _AXES_HEIGHT, _LEFT, _RIGHT = 5.4, 2.9, 0.74, 0.12
_TITLE_LINE, _XLABEL, _LEGEND_ROW, _NOTE_LINE, _MARGIN = 0.19, 0.46, 0.185, 0.135, 0.1
# Characters of the longest labels that two columns of the legend hold beside each other.
_LEGEND_CHARACTERS = 58


def new_axes(title: str, xlabel: str, ylabel: str) -> Axes:
    """Axes on a page of their own, drawn by Agg and known to no global list."""
    figure = Figure(figsize=(_WIDTH, _AXES_HEIGHT))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set(
        title="\n".join(line for part in title.splitlines() for line in textwrap.wrap(part, 54)),
        xlabel=xlabel,
        ylabel="\n".join(textwrap.wrap(ylabel, 44)),
    )
    return axes


def set_page(axes: Axes, handles: list[Any], notes: Iterable[str | None]) -> Figure:
    """Set legend and notes below the axes, where they hide no data, and fit the page to them.

    A handle is an artist with a label, or a tuple of artists drawn over each other of which the last has it.
    """
    figure = axes.figure
    assert isinstance(figure, Figure)
    labels = [(handle[-1] if isinstance(handle, tuple) else handle).get_label() for handle in handles]
    lines = [line for note in notes if note for line in textwrap.wrap(note, 88)]
    rows = -(-len(labels) // 2)
    longest = [max((len(str(text)) for text in part), default=0) for part in (labels[:rows], labels[rows:])]
    columns = 2 if sum(longest) <= _LEGEND_CHARACTERS else 1
    title = axes.get_title(loc="left").count("\n") + 1
    legend_height = _LEGEND_ROW * -(-len(handles) // columns) - 0.02
    below = _MARGIN + _NOTE_LINE * len(lines) + legend_height + _XLABEL
    height = below + _AXES_HEIGHT + _TITLE_LINE * title + 2 * _MARGIN
    figure.set_size_inches(_WIDTH, round(height, 2))
    left = _LEFT + _TITLE_LINE * axes.get_ylabel().count("\n")
    axes.set_position((left / _WIDTH, below / height, (_WIDTH - left - _RIGHT) / _WIDTH, _AXES_HEIGHT / height))
    figure.legend(
        handles,
        labels,
        handler_map={tuple: HandlerTuple(ndivide=1)},
        loc="upper left",
        bbox_to_anchor=(0.45 / _WIDTH, (below - _XLABEL) / height),
        ncols=columns,
        borderpad=0.0,
        borderaxespad=0.0,
        labelspacing=0.35,
    )
    if lines:
        x, y = 0.5 / _WIDTH, (_MARGIN + _NOTE_LINE * len(lines)) / height
        figure.text(x, y, "\n".join(lines), va="top", fontsize=6.8, color="#333333", linespacing=1.25)
    return figure


def mark(axes: Axes, x: np.ndarray, y: np.ndarray, look: Look, gid: str, **options: Any) -> None:
    """Empty markers, over the filled ones of a line, on points to be taken with care."""
    if len(x):
        empty: dict[str, Any] = {
            "ls": "none",
            "marker": look.marker,
            "mfc": "white",
            "mec": look.colour,
            "mew": 1.4,
            "zorder": 4,
        }
        axes.plot(x, y, gid=gid, **empty, **options)


def mark_beyond(axes: Axes, x: np.ndarray, look: Look, gid: str) -> None:
    """Empty markers on the upper edge, for values that are not finite."""
    edge = {"transform": axes.get_xaxis_transform(), "clip_on": False}
    mark(axes, x, np.full(len(x), TOP_EDGE), look, gid, **edge)


def epsilon_positions(epsilons: pd.Series) -> tuple[dict[float, float], float]:
    """Where each ε stands on the axis, and the smallest gap between two of them.

    Positions are log₁₀ ε, unless two values would be nearer than a twentieth of the axis: then they are evenly spaced.
    """
    values = sorted(set(epsilons.astype(float)))
    if len(values) == 1:
        return {values[0]: 0.0}, 1.0
    places = np.log10(values)
    gap = float(np.diff(places).min())
    if gap < (places[-1] - places[0]) / 20:
        places, gap = np.arange(len(values), dtype=float), 1.0
    return dict(zip(values, places.tolist(), strict=True)), gap


def set_epsilon_ticks(
    axes: Axes, position: dict[float, float], gap: float, xlabel: str = "privacy parameter ε"
) -> None:
    """Label every ε that was run, and no other, and leave half a gap at both ends."""
    axes.set_xticks(list(position.values()), [f"{value:g}" for value in position])
    axes.set_xlim(min(position.values()) - 0.5 * gap, max(position.values()) + 0.5 * gap)
