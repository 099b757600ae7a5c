"""Figures of a run. A kind of figure is a function of its own name in its own file, entered in `FIGURES` below."""

from typing import Protocol

import pandas as pd
from matplotlib.figure import Figure

from silodp.figures.calibrated_vs_paper import calibrated_vs_paper
from silodp.figures.delivered_vs_claimed import delivered_vs_claimed
from silodp.figures.error_vs_epsilon import error_vs_epsilon
from silodp.figures.slices import Slice, figure_name, slices
from silodp.figures.style import save


class FigureFunction(Protocol):
    """Draws one (experiment, M, R, reading) slice of a results table."""

    def __call__(self, table: pd.DataFrame, *, title: str, ylabel: str = ..., note: str | None = ...) -> Figure: ...


FIGURES: dict[str, FigureFunction] = {
    "error_vs_epsilon": error_vs_epsilon,
    "delivered_vs_claimed": delivered_vs_claimed,
    "calibrated_vs_paper": calibrated_vs_paper,
}

__all__ = [
    "FIGURES",
    "FigureFunction",
    "Slice",
    "calibrated_vs_paper",
    "delivered_vs_claimed",
    "error_vs_epsilon",
    "figure_name",
    "save",
    "slices",
]
