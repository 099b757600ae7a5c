"""The true ε as the interval between its proven ends, and how each claim stands: bars, marks and rings."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from silodp.algorithms.base import Look
from silodp.privacy.standing import Standing, standings
from silodp.report.figures.svg import say
from silodp.report.numbers import interval, measured

# Marker and colour of how a claim stands: shapes differ, and lightness does too.
STANDINGS = dict(zip(Standing, (("o", "#009E73"), ("D", "#E69F00"), ("^", "#8B1A0E")), strict=True))


def limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of a logarithmic axis for the bars of `rows` and their claims."""
    ends = rows.filter(regex="^delivered_|^epsilon$").to_numpy(float)
    ends = ends[np.isfinite(ends) & (ends > 0)]
    return ends.min() / 1.3, ends.max() * 1.3


def draw_intervals(
    axes: Axes,
    name: str,
    look: Look,
    text: str,
    rows: pd.DataFrame,
    at: np.ndarray,
    *,
    upright: bool,
    colour: Any = None,
) -> Line2D:
    """The true ε of `rows` as bars `at` places of the other axis, with the mark of its claim; for the legend.

    A bar reaches from the lower to the upper end, on axes with limits; where one is not proven it runs, dotted, to the
    edge. Thin lines join the ends. The mark stands where the bar is nearest to the claim. An ε of 0, which a
    logarithmic axis lacks, is a mark on the edge.
    """
    colour, columns = colour or look.colour, ["epsilon", "delivered_lower", "delivered_epsilon"]
    claimed, low, high = rows.reindex(columns=columns).to_numpy(float).T
    bottom, top = axes.get_ylim() if upright else axes.get_xlim()
    is_open = (high > 0) & ~((low > 0) & np.isfinite(high))
    start, end = np.where(low > 0, low, bottom), np.where(np.isfinite(high), np.maximum(high, bottom), top)
    bars = axes.vlines if upright else axes.hlines
    for part, dashes in ((~is_open & (high > 0), "-"), (is_open, ":")):
        bars(at[part], start[part], end[part], color=colour, ls=dashes, lw=2.2, gid=f"interval:{name}", zorder=2.5)
    # Between these two lines the curve of the true ε lies.
    for ends in (np.where(low > 0, low, np.nan), np.where(np.isfinite(high) & (high > 0), high, np.nan)):
        x, y = (at, ends) if upright else (ends, at)
        axes.plot(x, y, color=colour, ls=look.line, lw=0.8, gid=f"ends:{name}")
    near = np.clip(claimed, start, end)
    found, words = standings(rows).to_numpy(), said(text, rows)
    for word, (marker, fill) in STANDINGS.items():
        part = np.flatnonzero(found == word)
        x, y = (at[part], near[part]) if upright else (near[part], at[part])
        style: dict[str, Any] = {"marker": marker, "ms": 5, "mfc": fill, "mec": colour, "zorder": 4, "clip_on": False}
        axes.plot(x, y, ls="none", gid=f"{word.name}:{name}", **style)
        say(axes.figure, f"{word.name}:{name}", [words[place] for place in part.tolist()])
    return Line2D([], [], color=colour, lw=2.2, label=text)


def said(text: str, rows: pd.DataFrame) -> list[str]:
    """What rests on each point: whose it is, its claimed ε, the interval of its true ε, and its error."""
    ends = rows.reindex(columns=["epsilon", "delivered_lower", "delivered_epsilon", "test_error_mean"]).to_numpy(float)
    words = [(f"{text}, claimed ε = {claimed:g}, true ε in {interval(*of)}", error) for claimed, *of, error in ends]
    return [told if np.isnan(error) else f"{told}: {measured(error)}" for told, error in words]


def standing_keys(rows: pd.DataFrame, *, ring: bool = False) -> list[Any]:
    """The legend's entries for how the claims of `rows` stand, and for bars that are open."""
    words = set(standings(rows)) - ({Standing.KEPT} if ring else set())
    keys = [
        Line2D([], [], ls="none", marker=marker, mec=colour, mfc="none" if ring else colour, label=f"claim {word}")
        for word, (marker, colour) in STANDINGS.items()
        if word in words
    ]
    low, high = rows.reindex(columns=["delivered_lower", "delivered_epsilon"]).to_numpy(float).T
    if not ring and (np.isnan(low) & (high > 0)).any():
        keys.append(Line2D([], [], color="#444444", ls=":", lw=2.2, label="dotted: no lower end proven, open to 0"))
    return keys


def draw_rings(axes: Axes, name: str, x: np.ndarray, y: np.ndarray, rows: pd.DataFrame) -> None:
    """Rings about points whose claim is not kept, in the shape and colour of its word."""
    for word in (Standing.NOT_CERTIFIED, Standing.VIOLATED):
        (shape, colour), part = STANDINGS[word], standings(rows).to_numpy() == word
        (ring,) = axes.plot(x[part], y[part], ls="none", gid=f"{word.name}:{name}", zorder=5)
        ring.set(marker=shape, markersize=10, markerfacecolor="none", markeredgecolor=colour)
