"""The pictures of the page's findings, each as wide as the page and again as narrow as a phone."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator

from silodp.privacy.standing import Standing, standings
from silodp.report.figures.axes import new_figure
from silodp.report.figures.intervals import COLOURS, fill
from silodp.report.figures.paired_differences import outcome_looks
from silodp.report.figures.style import label, short_label, sort_algorithms, styled
from silodp.report.figures.svg import say
from silodp.report.numbers import interval

# Inches: on a page of 1,088 px and on a phone of 366 px text of 9 points has 10 px.
WIDTHS = {"wide": 10.2, "narrow": 4.4}
# A true ε beyond so many times the claim leaves the panel: an upper end is a bound, not an amount.
_MOST = 6.0


def differences(cells: pd.DataFrame, name: str) -> Figure:
    """A line for each data set: a stroke for each cell, coloured by its outcome, and their mean; * where not decided.

    `cells` are those of `silodp.report.cells` of one pair, with the words of their `data_set`.
    """
    first, second = map(short_label, cells[["first", "second"]].iloc[0])
    wide = name == "wide"
    parts = list(cells.groupby("data_set", sort=False))
    own = outcome_looks(*cells[["first", "second"]].iloc[0])
    with styled():
        figure = new_figure(WIDTHS[name], 0.52 + (0.26 if wide else 0.6) * len(parts))
        height = figure.get_figheight()
        left = 3.9 if wide else 0.15
        size = (left / WIDTHS[name], 0.48 / height, 1 - (left + 0.15) / WIDTHS[name], 1 - 0.52 / height)
        axes = figure.add_axes(size)
        for y, (data, part) in zip(range(len(parts))[::-1], parts, strict=True):
            margin = part["margin"].max()
            axes.barh(y, 2 * margin, left=-margin, height=0.7, color="#ebebeb", lw=0, zorder=0)
            for outcome, some in part.groupby("outcome"):
                style: dict[str, Any] = {"ls": "none", "marker": "|", "color": own[str(outcome)][0]}
                axes.plot(some["difference"], [y] * len(some), ms=11, zorder=3, **style)
            gid, mean = f"mean:{data}", part["difference"].mean()
            signed = f"{mean:+.4f}".replace("-", "−")
            star = "" if part["decided"].all() or not cells["decided"].any() else "*"
            axes.plot(mean, y, marker="D", ms=6, color="#000000", zorder=4, gid=gid)
            text = f"{data}{star}  mean {signed} over {len(part)}"
            say(figure, gid, [text])
            place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "fontsize": 10}
            if wide:
                axes.text(-0.012, y, text, ha="right", va="center", **place)
            else:
                axes.text(0, y + 0.24, text, va="bottom", **place)
        axes.axvline(0, color="#000000", lw=1.0, zorder=2)
        end = 1.08 * cells["difference"].abs().max()
        axes.set_xlim(-end, end)
        axes.xaxis.set_major_locator(MaxNLocator(7 if wide else 5))
        axes.yaxis.set_major_locator(NullLocator())
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"← {first} better   |   {second} better →", fontsize=10)
        axes.set_ylim(-0.6, len(parts) - (0.4 if wide else 0.2))
        return figure


def true_epsilon(rows: pd.DataFrame, name: str) -> Figure:
    """Intervals of true over claimed ε, one for each algorithm and claimed ε of one setting; 1 is the claim.

    `rows` are private rows of one (experiment, M, R); a bar that leaves the panel goes on beyond it.
    """
    names, epsilons = sort_algorithms(rows["algorithm"]), sorted(rows["epsilon"].unique())
    words = standings(rows)
    with styled():
        figure = new_figure(WIDTHS[name], 1.75 if name == "wide" else 3.3)
        height = figure.get_figheight()
        free = 0.8 if name == "wide" else 1.25
        axes = figure.add_axes((0.62 / WIDTHS[name], 0.46 / height, 1 - 0.75 / WIDTHS[name], 1 - free / height))
        low, high = 0.4, _MOST
        axes.axhspan(low, 1, color="#eef3f8", lw=0, zorder=0)
        axes.axhline(1, color="#000000", lw=1.0, zorder=2)
        for place, row in enumerate(rows.to_dict("records")):
            x = epsilons.index(row["epsilon"]) + 0.8 * ((names.index(row["algorithm"]) + 0.5) / len(names) - 0.5)
            ends = [row.get(key, np.nan) / row["epsilon"] for key in ("delivered_lower", "delivered_epsilon")]
            ends[0] = ends[0] if np.isfinite(ends[0]) else low
            colour = COLOURS[words.iloc[place]]
            axes.plot([x, x], np.clip(ends, low, high * 1.2), color=colour, lw=2.6, solid_capstyle="butt", zorder=3)
            gid = f"{words.iloc[place].name}:{place}"
            style = fill(words.iloc[place], colour) | {"marker": "o", "ms": 7, "mew": 1.4, "gid": gid}
            axes.plot(x, np.clip(ends[0], low, high * 0.94), zorder=4, **style)
            true = interval(row.get("delivered_lower"), row["delivered_epsilon"])
            say(figure, gid, [f"{label(row['algorithm'])}, claimed ε = {row['epsilon']:g}: true ε in {true}"])
        axes.set(yscale="log", ylim=(low, high), xlim=(-0.5, len(epsilons) - 0.5))
        axes.set_yticks([0.5, 1, 2, 5], ["½", "1", "2", "5"])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xticks(range(len(epsilons)), [f"{value:g}" for value in epsilons])
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("claimed ε", fontsize=10)
        axes.set_ylabel("true / claimed ε", fontsize=10)
        _standing_key(figure, [word for word in Standing if (words == word).any()])
        return figure


def _standing_key(figure: Figure, words: list[Standing]) -> None:
    style: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 7, "mew": 1.4}
    keys = [Line2D([], [], label=f"claim {word}", **style, **fill(word, COLOURS[word])) for word in words]
    keys.append(Line2D([], [], color="#444444", lw=2.6, label="bar: where the true ε lies"))
    width, height = figure.get_size_inches()
    options: dict[str, Any] = {"ncols": 4 if width > 6 else 2, "fontsize": 10, "borderpad": 0.1, "handlelength": 1.1}
    figure.legend(handles=keys, loc="upper left", bbox_to_anchor=(0.5 / width, 1.0), **options)
    top = 1 - (0.06 if width > 6 else 0.48) / height
    figure.text(1 - 0.12 / width, top, "above the line: reveals more than claimed", ha="right", va="top", fontsize=10)
