"""The true ε as the interval between its proven ends, and how each claim stands: bars, marks and rings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from silodp.algorithms.base import Look
from silodp.privacy.standing import Standing, standings
from silodp.report.figures.style import STANDINGS
from silodp.report.figures.svg import say


def draw_intervals(
    axes: Axes,
    name: str,
    look: Look,
    text: str,
    rows: pd.DataFrame,
    at: np.ndarray,
    words: Sequence[str],
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
    known = rows.assign(epsilon=rows.get("claimed_epsilon", rows.get("epsilon"))).reindex(columns=columns)
    claimed, low, high = known.to_numpy(float).T
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
    found = standings(rows).to_numpy()
    for word, (marker, fill) in STANDINGS.items():
        part = np.flatnonzero(found == word)
        x, y = (at[part], near[part]) if upright else (near[part], at[part])
        style: dict[str, Any] = {"ls": "none", "marker": marker, "ms": 5, "mfc": fill, "mec": colour, "zorder": 4}
        axes.plot(x, y, gid=f"{word.name}:{name}", clip_on=False, **style)
        say(axes.figure, f"{word.name}:{name}", [words[place] for place in part.tolist()])
    return Line2D([], [], color=colour, lw=2.2, label=text)


def standing_keys(rows: pd.DataFrame, *, ring: bool = False) -> list[Any]:
    """The legend's entries for how the claims of `rows` stand, and for bars that are open."""
    words, keys = set(standings(rows)), []
    for word, (marker, colour) in STANDINGS.items():
        if word in words and not (ring and word is Standing.KEPT):
            style: dict[str, Any] = {"mfc": "none", "ms": 9} if ring else {"mfc": colour, "ms": 5}
            keys.append(Line2D([], [], ls="none", marker=marker, mec=colour, label=f"claim {word}", **style))
    lower = rows["delivered_lower"] if "delivered_lower" in rows else pd.Series(np.nan, index=rows.index)
    if not ring and (lower.isna() & (rows["delivered_epsilon"] > 0)).any():
        keys.append(Line2D([], [], color="#444444", ls=":", lw=2.2, label="dotted: no lower end proven, open to 0"))
    return keys


def draw_rings(axes: Axes, name: str, x: np.ndarray, y: np.ndarray, rows: pd.DataFrame) -> None:
    """Rings about points whose claim is not kept, in the shape and colour of its word."""
    words = standings(rows).to_numpy()
    for word in (Standing.NOT_CERTIFIED, Standing.VIOLATED):
        (marker, colour), part = STANDINGS[word], words == word
        style: dict[str, Any] = {"ls": "none", "marker": marker, "ms": 10, "mfc": "none", "mec": colour, "mew": 1.0}
        axes.plot(x[part], y[part], gid=f"{word.name}:{name}", zorder=5, **style)
