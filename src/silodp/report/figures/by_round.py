"""ε by round: what all messages up to the end of each round give, beside the claim for the whole run."""

import pandas as pd
from matplotlib.figure import Figure

from silodp.report.figures.axes import log_ticks, new_axes, set_page
from silodp.report.figures.style import label, looks, styled


def draw_by_round(rows: pd.DataFrame, *, title: str) -> Figure:
    """ε against the round, a line an algorithm, dotted: claimed (NaN for nothing)."""
    with styled():
        axes = new_axes(title, "round", "true ε so far")
        # Local SGD's is tens of times the others'.
        is_log = rows["epsilon"].max() > 8 * rows.groupby("algorithm")["epsilon"].max().min()
        bottom = rows.loc[rows["epsilon"] > 0, "epsilon"].min() / 1.5 if is_log else 0.0
        handles = []
        for name, look in looks(rows["algorithm"]).items():
            x, y = rows[rows["algorithm"] == name].sort_values("round")[["round", "epsilon"]].to_numpy(float).T
            axes.fill_between(x, bottom, y, color=look.colour, alpha=0.08, lw=0)
            handles += axes.plot(x, y, color=look.colour, ls=":", label=label(name), gid=f"ends:{name}")
        for claimed in sorted(set(rows["claimed_epsilon"].dropna())):
            axes.axhline(claimed, color="#777777", lw=1, ls="--")
        axes.set_xlim(left=0)
        axes.set(yscale="log" if is_log else "linear", ylim=(bottom, None))
        if is_log:
            log_ticks(axes.yaxis, *axes.get_ylim(), most=12)
        note = "Bands, open to 0: no lower end is computed by round. Dashed: claimed for the run."
        return set_page(axes, handles, [note])
