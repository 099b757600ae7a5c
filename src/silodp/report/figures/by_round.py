"""ε by round: what all messages up to the end of each round give, beside the claim for the whole run."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from silodp.report.figures.axes import log_ticks, new_axes, set_page
from silodp.report.figures.style import label, looks, styled


def draw_by_round(rows: pd.DataFrame, *, title: str) -> Figure:
    """Draw ε against the round, one line an algorithm; the dotted line is what is claimed for the run.

    Args:
        rows: columns algorithm, round, epsilon and claimed_epsilon (NaN where nothing is claimed).
        title: of the figure.

    Raises ValueError where there are no rows.
    """
    if rows.empty:
        raise ValueError("figure: by_round needs rows, the table has none")
    with styled():
        axes = new_axes(title, "round", "ε so far")
        handles: list[Any] = []
        for name, look in looks(rows["algorithm"]).items():
            of = rows[rows["algorithm"] == name].sort_values("round")
            handles += axes.plot(
                of["round"], of["epsilon"], color=look.colour, ls=look.line, marker=look.marker, ms=3, label=label(name)
            )
        for claimed in sorted(set(rows["claimed_epsilon"].dropna())):
            axes.axhline(claimed, color="#777777", lw=1, ls=":")
        axes.set_xlim(left=0)
        # Local SGD's is tens of times the others'.
        if rows["epsilon"].max() > 8 * rows["epsilon"].groupby(rows["algorithm"]).max().min():
            axes.set_yscale("log")
            log_ticks(axes.yaxis, *axes.get_ylim(), most=12)
        else:
            axes.set_ylim(bottom=0)
        note = "Upper ends, of all messages up to the end of a round; dotted: claimed for the run."
        return set_page(axes, handles, [note])
