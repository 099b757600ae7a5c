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

# Colour of how a claim stands, where no algorithm has a colour; lightness differs too.
COLOURS = dict(zip(Standing, ("#009E73", "#E69F00", "#8B1A0E"), strict=True))


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
) -> Line2D:
    """The true ε of `rows` as bars `at` places of the other axis, with the mark of its claim; for the legend.

    A bar reaches from the lower to the upper end, on axes with limits; where one is not proven it runs, dotted, to the
    edge. Thin lines join the ends. The mark stands where the bar is nearest to the claim, full where that is kept, half
    where it is not certified, empty where it is violated. An ε of 0, which a logarithmic axis lacks, is on the edge.
    """
    colour = look.colour
    claimed, low, high = rows.reindex(columns=["epsilon", "delivered_lower", "delivered_epsilon"]).to_numpy(float).T
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
    x, y = (at, near) if upright else (near, at)
    draw_standings(axes, name, look, x, y, rows, point_texts(text, rows))
    return Line2D([], [], color=colour, marker=look.marker, lw=2.2, label=text)


def point_texts(text: str, rows: pd.DataFrame) -> list[str]:
    """What rests on each point: whose it is, its claimed ε, the interval of its true ε, and its error."""
    ends = rows.reindex(columns=["epsilon", "delivered_lower", "delivered_epsilon", "test_error_mean"]).to_numpy(float)
    words = [(f"{text}, claimed ε = {claimed:g}, true ε in {interval(*of)}", error) for claimed, *of, error in ends]
    return [told if np.isnan(error) else f"{told}: {measured(error)}" for told, error in words]


def fill(word: Standing, colour: Any) -> dict[str, Any]:
    """How a mark of `colour` says how its claim stands: full where it is kept, half not certified, empty violated."""
    if word == Standing.NOT_CERTIFIED:
        return {"fillstyle": "left", "mfc": colour, "mfcalt": "white", "mec": colour}
    return {"mfc": colour if word == Standing.KEPT else "white", "mec": colour}


def draw_standings(
    axes: Axes,
    name: str,
    look: Look,
    x: np.ndarray,
    y: np.ndarray,
    rows: pd.DataFrame,
    words: list[str],
    colour: Any = None,
) -> None:
    """The marks of an algorithm's points, filled by how their claims stand; `words` rest on them."""
    found = standings(rows).to_numpy()
    for word in Standing:
        part = np.flatnonzero((found == word) & ~np.isnan(y))
        gid, style = f"{word.name}:{name}", fill(word, colour or look.colour)
        axes.plot(x[part], y[part], ls="none", marker=look.marker, gid=gid, zorder=4, clip_on=False, **style)
        say(axes.figure, gid, [words[place] for place in part.tolist()])


def marks_of(rows: pd.DataFrame) -> str:
    """What full, half and empty marks are, as a line below an axis; empty where all claims are kept."""
    found = set(standings(rows))
    return (
        "claim " + ", ".join(word.text_with_sign for word in Standing if word in found)
        if found - {Standing.KEPT}
        else ""
    )


def open_key(rows: pd.DataFrame) -> list[Line2D]:
    """The legend's entry for bars that are open; none without them."""
    low, high = rows.reindex(columns=["delivered_lower", "delivered_epsilon"]).to_numpy(float).T
    is_open = (np.isnan(low) & (high > 0)).any()
    return [Line2D([], [], color="#444444", ls=":", lw=2.2, label="open to 0: no lower end")] if is_open else []
