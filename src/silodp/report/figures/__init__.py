"""Figures of a run. A kind of figure is a function of its own name in its own file, entered in `FIGURES` below."""

from functools import partial
from typing import Protocol

import pandas as pd
from matplotlib.figure import Figure

from silodp.files import figure_name
from silodp.report.figures import bounds
from silodp.report.figures.both_noises import both_noises
from silodp.report.figures.calibrated_vs_paper import calibrated_vs_paper
from silodp.report.figures.delivered_vs_claimed import delivered_vs_claimed
from silodp.report.figures.error_vs_delivered import error_vs_delivered
from silodp.report.figures.error_vs_epsilon import error_vs_epsilon
from silodp.report.figures.slices import Slice, slices
from silodp.report.figures.style import FORMATS, save


class FigureFunction(Protocol):
    """Draws one (experiment, M, R, reading) slice of a results table."""

    def __call__(self, table: pd.DataFrame, *, title: str, ylabel: str = ..., note: str | None = ...) -> Figure: ...


FIGURES: dict[str, FigureFunction] = {
    "error_vs_epsilon": error_vs_epsilon,
    "delivered_vs_claimed": delivered_vs_claimed,
    "error_vs_delivered": error_vs_delivered,
    "calibrated_vs_paper": calibrated_vs_paper,
    "both_noises": both_noises,
}


class BoundsFigure(Protocol):
    """Draws the table of one check."""

    def __call__(self, table: pd.DataFrame, *, title: str) -> Figure: ...


# Check → its figure; the others are tables only.
BOUNDS_FIGURES: dict[str, BoundsFigure] = {
    "upper_bounds": bounds.between_bounds,
    "lower_bounds": bounds.between_bounds,
    "rates_convex": bounds.rates,
    "rates_nonconvex": bounds.rates,
    "rates_checkins": bounds.rates,
    "rounds_to_target": partial(bounds.lines, ylabel="rounds to the target"),
    "trust_models": bounds.lines,
    "shuffled_records": bounds.rates,
    "hybrid_privacy": bounds.rates,
}

__all__ = [
    "BOUNDS_FIGURES",
    "FIGURES",
    "FORMATS",
    "BoundsFigure",
    "FigureFunction",
    "Slice",
    "both_noises",
    "calibrated_vs_paper",
    "delivered_vs_claimed",
    "error_vs_delivered",
    "error_vs_epsilon",
    "figure_name",
    "save",
    "slices",
]
