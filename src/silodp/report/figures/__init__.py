"""Figures of a run. A kind of figure is a function of its name, entered in `FIGURES` below."""

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from silodp.report.figures import bound_panels
from silodp.report.figures.delivered_vs_claimed import delivered_vs_claimed
from silodp.report.figures.error_vs_delivered import both_noises, error_vs_delivered
from silodp.report.figures.error_vs_epsilon import error_vs_epsilon
from silodp.report.figures.slices import slices
from silodp.report.figures.style import FORMATS, save

# Each draws one (experiment, M, R, reading) slice of a results table: `(table, *, title, ylabel, note)`.
FIGURES: dict[str, Callable[..., Figure]] = {
    "error_vs_epsilon": error_vs_epsilon,
    "delivered_vs_claimed": delivered_vs_claimed,
    "error_vs_delivered": error_vs_delivered,
    "both_noises": both_noises,
}

# Check → the figure of its table: `(table, *, title)`; the others are tables only.
BOUNDS_FIGURES: dict[str, Callable[..., Figure]] = {
    "upper_bounds": bound_panels.between_bounds,
    "lower_bounds": bound_panels.between_bounds,
    "rates_convex": bound_panels.rates,
    "rates_nonconvex": bound_panels.rates,
    "rates_checkins": bound_panels.rates,
    "rounds_to_target": partial(bound_panels.lines, ylabel="rounds to the target"),
    "trust_models": bound_panels.lines,
    "figure_3": bound_panels.summary,
    "shuffled_records": bound_panels.rates,
    "hybrid_privacy": bound_panels.rates,
}

__all__ = ["BOUNDS_FIGURES", "FIGURES", "FORMATS", "save", "slices"]
