"""Random allocation: each record takes part in one of m slots, drawn uniformly and in secret (docs/accounting.md).

Feldman and Shenfeld 2025, arXiv 2502.08202: to leave a record out is dominated by two laws of which one has the mean of
m independent likelihood ratios X_i over the other. Both directions of the hockey-stick divergence are expectations of
convex functions of that mean, and two of them in sequence replace a record.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from silodp.privacy.search import narrowed

# Masses (k,) of the mean ratio without the record, and its values.
Law = tuple[NDArray[np.float64], NDArray[np.float64]]
# Charged for what a law leaves out, in either direction, and for rounding; cells of a Gaussian law.
LEFT_OUT, _CELLS = 1e-11, 2**20


def response_law(epsilon0: float, slots: int) -> Law:
    """The worst law of slots that are ε0-private with and without the record: m bits of randomised response."""
    one = 1 / (1 + math.exp(epsilon0))
    low, high = binom.ppf(LEFT_OUT / 9, slots, one), binom.isf(LEFT_OUT / 9, slots, one)
    # The record's own bit adds one at most.
    ones = np.arange(max(low - 1, 0), min(high + 2, slots) + 1)
    return binom.pmf(ones, slots, one), (ones * math.exp(epsilon0) + (slots - ones) * math.exp(-epsilon0)) / slots


def gaussian_law(noise: float, slots: int, upper: bool) -> Law:
    """Slots with Gaussian noise, a multiple of the record's norm; both directions err upwards, or removal downwards.

    Each ratio exp(z/σ − 1/(2σ²)) is put on a lattice, spread with its mean kept for `upper`, else rounded down; the sum
    of m is a power of its transform, whose rounding (about 1e-15 of the whole) is not tracked.
    """
    mu = 1 / noise
    most = math.exp(mu * (mu - ndtri(LEFT_OUT / 4 / slots)) - mu**2 / 2)
    # Bernstein's inequality for the sum of ratios up to `most`, beside the record's own; 8 leaves room for the lattice.
    depth = math.log(8 / LEFT_OUT)
    reach = most * depth / 3 + math.sqrt((most * depth / 3) ** 2 + 2 * slots * math.expm1(mu**2) * depth)
    step = (slots + most + reach) / _CELLS
    edges = step * np.arange(math.ceil(most / step) + 1)
    with np.errstate(divide="ignore"):
        z = (np.log(edges) + mu**2 / 2) / mu
    mass, slot = np.diff(ndtr(z)), np.zeros(_CELLS)
    above = np.clip((np.diff(ndtr(z - mu)) - edges[:-1] * mass) / step, 0, mass) if upper else 0 * mass
    slot[: len(mass)] += mass - above
    slot[1 : len(mass) + 1] += above
    masses = np.fft.irfft(np.fft.rfft(slot) ** slots, _CELLS)
    return masses.clip(0), step * np.arange(_CELLS) / slots


def removed(law: Law, epsilon: float) -> float:
    """δ at ε of the law with the record against that without."""
    return float((law[0] * np.maximum(law[1] - math.exp(epsilon), 0)).sum())


def added(law: Law, epsilon: float) -> float:
    """δ at ε of the law without the record against that with it."""
    return float((law[0] * np.maximum(1 - math.exp(epsilon) * law[1], 0)).sum())


def left_out(law: Law, epsilon: float) -> float:
    """Upper bound on δ at ε where neighbours have the record or not, of a law that errs upwards."""
    return max(removed(law, epsilon), added(law, epsilon)) + LEFT_OUT


def replaced(law: Law, epsilon: float) -> float:
    """Upper bound on δ at ε where neighbours replace the record: it leaves at ε₁, another comes at ε − ε₁.

    δ ≤ δ_removed(ε₁) + e^ε₁ δ_added(ε − ε₁) for every ε₁; the smallest found counts.
    """

    def at(first: float) -> float:
        weight = math.exp(first)
        return removed(law, first) + weight * added(law, epsilon - first) + (1 + weight) * LEFT_OUT

    return float(minimize_scalar(at, bounds=(0, epsilon), method="bounded").fun)


def smallest(delta_at: Callable[[float], float], delta: float, most: float = 60.0) -> tuple[float, float]:
    """Between which two ε a decreasing δ(ε) passes `delta`, to 1e-6 of them; ε is at most `most` in any case."""
    return narrowed(lambda e: delta_at(e) <= delta, 0.0, most, lambda low, high: high - low > 1e-6 * high)
