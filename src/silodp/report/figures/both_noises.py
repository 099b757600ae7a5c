"""Test error against the ε that is claimed: calibrated noise, which delivers just that, beside the papers' formulas."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.report.figures.axes import dodged, mark, new_axes, set_epsilon_axis, set_page, stretching, zoom_axes
from silodp.report.figures.calibrated_vs_paper import both_parts
from silodp.report.figures.notes import bars, over_claim, trials
from silodp.report.figures.style import in_order, label, looks, styled, tint
from silodp.report.figures.svg import say
from silodp.report.numbers import bounded, measured

COLUMNS = ["delivered_epsilon", "trials", "test_error_mean", "test_error_p05", "test_error_p95"]


def both_noises(table: pd.DataFrame, *, title: str, ylabel: str = "test error", note: str | None = None) -> Figure:
    """Draw the readings `noise=calibrated` (full lines with bars) and "" (pale, dotted) of one (experiment, M, R).

    Both stand at the ε they claim: full lines deliver it, and a hollow point of a dotted one delivers more. Points with
    an error that is not finite are left out and counted in a note.
    Raises ValueError when the table has no calibrated rows, or is not one (experiment, M, R).
    """
    paper, calibrated = both_parts(table, COLUMNS, "both_noises")
    old, new = (part[np.isfinite(part["test_error_mean"])] for part in (paper, calibrated))
    names = in_order(pd.concat([old, new])["algorithm"])
    with styled():
        axes = new_axes(title, "claimed ε", ylabel)
        handles: list[Any] = _panel(axes, old, new, names)
        # By what the calibrated lines ask for, which the figure is about.
        worst = stretching(new.groupby("algorithm")["test_error_mean"].max(), np.nan)
        if worst is not None:
            others = [part[part["algorithm"] != worst] for part in (old, new)]
            _panel(zoom_axes(axes, label(worst)), others[0], others[1], names)
        if (paper["delivered_epsilon"] > paper["epsilon"]).any():
            text = "hollow: more ε than claimed"
            handles.append(Line2D([], [], ls="none", marker="o", mfc="white", mec="#444444", mew=1.4, label=text))
        left_out = len(paper) + len(calibrated) - len(old) - len(new)
        missing = f"Not finite, left out: {left_out} points." if left_out else None
        return set_page(axes, handles, [note, trials(calibrated), missing, over_claim(paper, "Hollow")])


def _panel(axes: Axes, paper: pd.DataFrame, calibrated: pd.DataFrame, names: list[str]) -> list[Line2D]:
    """Both lines of every algorithm; returns those of the legend."""
    lines = []
    both = pd.concat([paper, calibrated])
    for (name, look), shift in zip(looks(names).items(), dodged(both["epsilon"], len(names)), strict=True):
        for kind, part in (("paper", paper), ("calibrated", calibrated)):
            of = part[part["algorithm"] == name].sort_values("epsilon", kind="stable")
            if of.empty:
                continue
            x, y = of["epsilon"].to_numpy(float) * shift, of["test_error_mean"].to_numpy(float)
            text, gid = f"{label(name)}, {kind}", f"line:{name}-{kind}"
            style: dict[str, Any] = {"color": look.colour, "ls": look.line, "marker": look.marker, "zorder": 3}
            if kind == "paper":
                style |= {"color": tint(look.colour, 0.55), "ls": ":", "zorder": 2}
            else:
                low, high = (of[column].to_numpy(float) for column in bars(of))
                bar = axes.errorbar(
                    x, (low + high) / 2, yerr=(high - low) / 2, fmt="none", ecolor=look.colour, capsize=2.0, lw=1.0
                )
                for drawn in (*bar.lines[1], *bar.lines[2]):
                    drawn.set_gid(f"bars:{name}")
            lines += axes.plot(x, y, label=text, gid=gid, **style)
            say(axes.figure, gid, [_said(text, row) for row in of.to_dict("records")])
            over = (of["delivered_epsilon"] > of["epsilon"]).to_numpy()
            mark(axes, x[over], y[over], look, f"over:{name}")
    set_epsilon_axis(axes, both["epsilon"])
    axes.grid(axis="x", visible=False)
    return lines


def _said(text: str, row: dict[Any, Any]) -> str:
    delivered = bounded(row["delivered_epsilon"])
    return f"{text}, claimed ε = {row['epsilon']:g}, delivered {delivered}: {measured(row['test_error_mean'])}"
