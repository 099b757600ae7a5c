"""Test error against ε, one line an algorithm, with bars from the 5th to the 95th percentile over trials."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from silodp.figures.axes import TOP_EDGE, epsilon_positions, mark, mark_beyond, new_axes, set_epsilon_ticks, set_page
from silodp.figures.notes import BARS, beyond_axis, diverged, over_claim
from silodp.figures.slices import checked
from silodp.figures.style import baseline_looks, in_order, label, looks, styled, tint

# About a marker, whatever that is: the point does not have the ε it is drawn at.
RING: dict[str, Any] = {
    "ls": "none",
    "marker": "o",
    "ms": 9.5,
    "mfc": "none",
    "mec": "#444444",
    "mew": 0.9,
    "zorder": 5,
}
COLUMNS = ["delivered_epsilon", "trials", "diverged", "test_error_mean", "test_error_p05", "test_error_p95"]


def error_vs_epsilon(table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None) -> Figure:
    """Draw one (experiment, M, R, reading) slice of a results table (convex paper Fig. 2, non-convex paper Figs. 4–10).

    Private algorithms are lines over ε, non-private ones horizontal lines with a hatched band. A point where trials
    diverged has a hollow marker; one whose mean is not finite sits, hollow, on the upper edge; one that delivers a
    larger ε than it claims is ringed. Of SPIDER the reported row `spider` is drawn where it exists, else its members.
    Raises ValueError when the table is not such a slice.
    """
    rows = checked(table, COLUMNS)
    private, baselines = rows[rows["private"]], rows[~rows["private"]]
    with styled():
        axes = new_axes(title, "privacy parameter ε", ylabel)
        handles: list[Any] = [*_draw_private(axes, private), *_draw_baselines(axes, baselines)]
        over = private["delivered_epsilon"] > private["epsilon"]
        if over.any():
            handles.append(_ring_key())
        if (rows["diverged"] > 0).any():
            handles.append(_hollow_key())
        _set_error_axis(axes, rows)
        axes.grid(axis="x", visible=False)
        return set_page(
            axes, handles, [note, BARS, diverged(rows), beyond_axis(rows, "test_error_mean"), over_claim(rows)]
        )


def _draw_private(axes: Axes, rows: pd.DataFrame) -> list[Line2D]:
    """One line with bars an algorithm; returns the lines for the legend."""
    if rows.empty:
        axes.set_xticks([])
        return []
    position, gap = epsilon_positions(rows["epsilon"])
    names = in_order(rows["algorithm"])
    dodge = gap * np.linspace(-0.2, 0.2, len(names)) if len(names) > 1 else [0.0]
    lines = []
    for (name, look), shift in zip(looks(names).items(), dodge, strict=True):
        of = rows[rows["algorithm"] == name]
        x = of["epsilon"].map(position).to_numpy(float) + shift
        low, high = _finite(of["test_error_p05"]), _finite(of["test_error_p95"])
        # About their own middle, not the mean: a skewed mean may lie outside its percentiles.
        axes.errorbar(x, (low + high) / 2, yerr=(high - low) / 2, fmt="none", ecolor=look.colour, capsize=2.5, lw=1.0)
        finite = _finite(of["test_error_mean"])
        text = label(name, reading=of["reading"].iloc[0])
        lines += axes.plot(x, finite, color=look.colour, ls=look.line, marker=look.marker, label=text, zorder=3)
        some = of["diverged"].to_numpy() > 0
        mark(axes, x[some], finite[some], look, f"diverged:{name}")
        mark_beyond(axes, x[np.isnan(finite)], look, f"beyond:{name}")
        over = (of["delivered_epsilon"] > of["epsilon"]).to_numpy()
        axes.plot(x[over], finite[over], gid=f"over:{name}", **RING)
    set_epsilon_ticks(axes, position, gap)
    return lines


def _finite(values: pd.Series) -> np.ndarray:
    """Values with NaN for what is not finite."""
    return values.where(np.isfinite(values)).to_numpy(float)


def _draw_baselines(axes: Axes, rows: pd.DataFrame) -> list[tuple[Patch, Line2D]]:
    """A horizontal line and band for each non-private algorithm; returns legend handles."""
    handles = []
    for name, look in baseline_looks(rows["algorithm"]).items():
        row = rows[rows["algorithm"] == name].iloc[0]
        text = label(name, private=False)
        band: dict[str, Any] = {
            "facecolor": (*tint(look.colour, 1.0), 0.07),
            "edgecolor": tint(look.colour, 0.35),
            "hatch": look.hatch,
        }
        if np.isfinite(row["test_error_p05"]) and np.isfinite(row["test_error_p95"]):
            axes.axhspan(row["test_error_p05"], row["test_error_p95"], lw=0, zorder=0.5, gid=f"band:{name}", **band)
        line_style: dict[str, Any] = {"color": look.colour, "ls": look.line, "lw": 1.3, "zorder": 2, "label": text}
        if np.isfinite(row["test_error_mean"]):
            line = axes.axhline(row["test_error_mean"], **line_style)
        else:
            (line,) = axes.plot([0, 1], [TOP_EDGE, TOP_EDGE], transform=axes.transAxes, **line_style)
        handles.append((Patch(lw=0, **band), line))
    return handles


def _ring_key() -> Line2D:
    return Line2D([], [], label="ringed: more ε than claimed", **RING)


def _hollow_key() -> Line2D:
    return Line2D([], [], ls="none", marker="o", mfc="white", mec="#444444", mew=1.4, label="hollow: trials diverged")


def _set_error_axis(axes: Axes, rows: pd.DataFrame) -> None:
    """Linear, from 0 where that costs little room; logarithmic where a diverged loss would flatten everything else."""
    values = rows[["test_error_mean", "test_error_p05", "test_error_p95"]].to_numpy(float)
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() > max(1.0, 20 * np.median(values)):
        axes.set_yscale("log")
    elif values.size and 0 <= values.min() < 0.3 * values.max():
        axes.set_ylim(bottom=0)
