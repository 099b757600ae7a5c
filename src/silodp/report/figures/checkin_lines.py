"""Figures of the check-ins paper: Figure 2 with the bounds that came after it, and test error at equal central ε."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.algorithms.base import Look
from silodp.report.figures.axes import dodged, draw_line, new_axes, set_epsilon_axis, set_page
from silodp.report.figures.style import styled
from silodp.report.figures.svg import say
from silodp.report.numbers import measured, tick_text

_COLOURS = ("#9fd3e6", "#d9a62e", "#b3485a", "#004488", "#30102f")
# Bound in the amplification table → its line and its words.
LINES = {
    "earlier bound": (":", "earlier bound [19]"),
    "check-ins paper 5.1": ("-", "Theorem 5.1"),
    "clones, closed form": ((0, (6, 2, 1, 2)), "clones, closed"),
    "clones, numerical": ((0, (4, 1.5)), "clones, numerical"),
    "random check-ins": ((0, (4, 1, 1, 1, 1, 1)), "check-ins, Theorem 3.2"),
}
# The lower and the upper end of random allocation: a band.
BAND = ("lower bound", "random allocation")
LOOKS = {
    "none": ("no amplification", Look(0, "#6e6e6e", "h", (0, (1, 1.5)))),
    "subsampling": ("subsampling", Look(1, "#30102f", "D", (0, (1.2, 1.2)))),
    "shuffling": ("shuffling", Look(2, "#b3485a", "o", (0, (5, 1.8)))),
    "shuffling_clones": ("clones", Look(3, "#9fd3e6", "X", (0, (3, 1, 1, 1)))),
    "a_fix": ("A_fix", Look(4, "#004488", "s", "-")),
    "a_avg": ("A_avg", Look(5, "#d9a62e", "^", (0, (5, 1.5, 1.2, 1.5)))),
    "a_sldw": ("A_sldw", Look(6, "#3a9a92", "v", (0, (6, 1.5, 1, 1.5, 1, 1.5)))),
}


def amplified_epsilon(table: pd.DataFrame, *, title: str) -> Figure:
    """Figure 2 of the check-ins paper: ε after shuffling against ε0, a colour for each n, a line for each bound.

    `table` has rows of `amplification_table`; bounds in `LINES` are drawn, and those in `BAND` as one band.
    """
    rows = table[table["bound"].isin([*LINES, *BAND])]
    with styled():
        axes = new_axes(title, "ε0 of the local randomiser", f"central ε at δ = {tick_text(rows['delta'].iloc[0])}")
        sizes = sorted(rows["reports"].unique())
        for n, colour in zip(sizes, _COLOURS, strict=False):
            for bound, (line, _) in LINES.items():
                of = rows[(rows["reports"] == n) & (rows["bound"] == bound)].sort_values("epsilon0")
                axes.plot(of["epsilon0"], of["epsilon"], color=colour, ls=line, lw=1.3, gid=f"{bound}:{n}")
            low, high = (rows[(rows["reports"] == n) & (rows["bound"] == b)].sort_values("epsilon0") for b in BAND)
            if len(low) and len(low) == len(high):
                ends, gid = (low["epsilon"].to_numpy(), high["epsilon"].to_numpy()), f"random allocation:{n}"
                axes.fill_between(high["epsilon0"], *ends, color=colour, alpha=0.3, lw=0, gid=gid)
        limits = rows["epsilon0"].min(), rows["epsilon0"].max()
        # The line ε = ε0 is curved, as only the ε axis is logarithmic.
        diagonal = np.linspace(*limits, 200)
        axes.plot(diagonal, diagonal, color="#969696", lw=2.5, zorder=1, gid="none")
        smallest = float(rows["epsilon"].min())
        axes.set(yscale="log", xlim=limits, ylim=(smallest, 3 * limits[1]))
        handles = [Line2D([], [], color="#000000", ls=line, label=text) for line, text in LINES.values()]
        handles.append(Line2D([], [], color="#000000", alpha=0.3, lw=6, label="random allocation"))
        handles.append(Line2D([], [], color="#969696", lw=2.5, label="ε = ε0"))
        handles += [
            Line2D([], [], color=colour, lw=3, label=f"n = {n:,}") for n, colour in zip(sizes, _COLOURS, strict=False)
        ]
        note = (
            "Above the grey line a bound says nothing. The earlier bound is Theorem 7 of the paper's [19]; clones are "
            "those of Feldman, McMillan and Talwar 2021. The band is random allocation to one of n slots under "
            "replace-one (Feldman and Shenfeld 2025): upper end by two zero-out steps or by clones."
        )
        return set_page(axes, handles, [note])


def error_at_equal_epsilon(table: pd.DataFrame, *, title: str) -> Figure:
    """Test error of every protocol against the central ε; means, with bars from the 5th to the 95th percentile.

    Points whose bound amplifies nothing (ε0 = ε) have no mark; the run without noise is a horizontal line.
    """
    private = table[table["epsilon"].notna()]
    with styled():
        axes = new_axes(title, "", "test error (↓ better)")
        names = [name for name in LOOKS if name in set(private["protocol"])]
        handles = []
        for name, shift in zip(names, dodged(private["epsilon"], len(names)), strict=True):
            (text, look), of = LOOKS[name], private[private["protocol"] == name].sort_values("epsilon")
            columns = ["epsilon", "test_error_mean", "test_error_p05", "test_error_p95"]
            x, y, low, high = of[columns].to_numpy(float).T
            words = [
                f"{text} at ε = {a:g}: {measured(b)} ({measured(c)} to {measured(d)})"
                for a, b, c, d in of[columns].to_numpy(float)
            ]
            marked = np.flatnonzero(of["amplified"] | (name == "none")).tolist()
            style: dict[str, Any] = {"bars": (low, high), "markevery": marked}
            handles.append(draw_line(axes, name, look, text, (x * shift, y), words, **style))
            say(axes.figure, f"line:{name}", [words[place] for place in marked])
        for value in table[table["epsilon"].isna()]["test_error_mean"]:
            handles.append(axes.axhline(value, color="#000000", ls=(0, (7, 2, 1, 2)), lw=1.2, label="no noise"))
        delta, n = tick_text(private["delta"].iloc[0]), private["n"].iloc[0]
        set_epsilon_axis(axes, private["epsilon"])
        axes.set_xlabel(f"central ε at δ = {delta}, {n:,} clients with one record each")
        axes.set_ylim(bottom=0)
        note = (
            "Bars: 5th to 95th percentile over trials. No mark: the bound gives no amplification there, so a report "
            "keeps ε0 = ε. Shuffling: Theorem 5.1; clones: the later bound. All send pure reports at the ε0 that their "
            "bound allows."
        )
        return set_page(axes, handles, [note])
