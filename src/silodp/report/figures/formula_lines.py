"""Delivered against claimed ε of a paper's noise formulas, whatever is trained with them."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from silodp.algorithms.base import Look
from silodp.report.figures.axes import mark, mark_beyond, new_axes, set_page
from silodp.report.figures.delivered_vs_claimed import draw_agreement
from silodp.report.figures.style import styled
from silodp.report.figures.svg import say
from silodp.report.numbers import bounded

# Seven lines, told apart by shape as well as colour.
_LOOKS = [
    Look(0, "#004488", "s", "-"),
    Look(1, "#b3485a", "o", (0, (5, 1.8))),
    Look(2, "#d9a62e", "^", (0, (5, 1.5, 1.2, 1.5))),
    Look(3, "#3a9a92", "v", (0, (6, 1.5, 1, 1.5, 1, 1.5))),
    Look(4, "#30102f", "D", (0, (1.2, 1.2))),
    Look(5, "#9fd3e6", "X", (0, (3, 1, 1, 1))),
    Look(6, "#6b4a9c", "P", (0, (8, 2))),
]


def draw_formulas(rows: pd.DataFrame, *, title: str) -> Figure:
    """Draw one paper's rows of `silodp.experiments.formulas.formula_rows`; points over their claim are hollow.

    Raises ValueError where there are no rows or more formulas than can be told apart.
    """
    names = list(dict.fromkeys(rows["formula"]))
    if not 0 < len(names) <= len(_LOOKS):
        raise ValueError(f"figure: {len(names)} formulas, allowed: 1 to {len(_LOOKS)}")
    finite = rows["delivered_epsilon"].where(np.isfinite(rows["delivered_epsilon"]))
    with styled():
        axes = new_axes(title, "claimed ε", "delivered ε")
        axes.set(xscale="log", yscale="log")
        handles: list[Any] = []
        for name, look in zip(names, _LOOKS, strict=False):
            of = rows["formula"] == name
            x, y = rows.loc[of, "claimed_epsilon"].to_numpy(float), finite[of].to_numpy(float)
            style: dict[str, Any] = {"color": look.colour, "ls": look.line, "marker": look.marker}
            handles += axes.plot(x, y, label=name, zorder=3, gid=f"line:{name}", **style)
            pairs = [(a, b) for a, b in zip(x, y, strict=True) if b == b]
            say(axes.figure, f"line:{name}", [f"{name}: claimed ε = {a:g}, delivered {bounded(b)}" for a, b in pairs])
            mark(axes, x[y > x], y[y > x], look, f"over:{name}")
            mark_beyond(axes, x[np.isnan(y)], look, f"beyond:{name}")
        claims = rows["claimed_epsilon"].to_numpy(float)
        handles += draw_agreement(axes, claims, np.r_[claims, finite.dropna()])
        first = rows.iloc[0]
        note = f"n = {first['n']}, R = {first['R']}, δ = 1/n²; hollow: more than claimed."
        return set_page(axes, handles, [note])
