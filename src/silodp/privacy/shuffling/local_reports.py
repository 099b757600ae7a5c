"""Amplification: the central ε of local reports that are shuffled, sampled or sent at random times, bound by bound.

N reports, each ε0-private for one record of its sender, are shuffled; neighbours replace one record. Closed forms are
those of `silodp.theory`; `clones_delta` evaluates the proof behind two of them exactly (docs/proofs/p_vec.md).
"""

import itertools
import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from silodp.privacy.shuffling.p_vec import bisect_to_private_side
from silodp.theory.checkins.privacy import fixed_window, shuffled, shuffled_earlier
from silodp.theory.convex.privacy import shuffled_round
from silodp.theory.theorem import AssumptionError

# Masses (k,) of the mean ratio without the record, and its values.
Law = tuple[NDArray[np.float64], NDArray[np.float64]]
# Charged for what a law leaves out, in either direction, and for rounding.
LEFT_OUT = 1e-11


def response_law(epsilon0: float, slots: int) -> Law:
    """The worst law of slots that are ε0-private with and without the record: m bits of randomised response."""
    one = 1 / (1 + math.exp(epsilon0))
    low, high = binom.ppf(LEFT_OUT / 9, slots, one), binom.isf(LEFT_OUT / 9, slots, one)
    # The record's own bit adds one at most.
    ones = np.arange(max(low - 1, 0), min(high + 2, slots) + 1)
    return binom.pmf(ones, slots, one), (ones * math.exp(epsilon0) + (slots - ones) * math.exp(-epsilon0)) / slots


def removed(law: Law, epsilon: float) -> float:
    """δ at ε of the law with the record against that without."""
    return float((law[0] * np.maximum(law[1] - math.exp(epsilon), 0)).sum())


def added(law: Law, epsilon: float) -> float:
    """δ at ε of the law without the record against that with it."""
    return float((law[0] * np.maximum(1 - math.exp(epsilon) * law[1], 0)).sum())


def replaced(law: Law, epsilon: float) -> float:
    """Upper bound on δ at ε where neighbours replace the record: it leaves at ε₁, another comes at ε − ε₁.

    δ ≤ δ_removed(ε₁) + e^ε₁ δ_added(ε − ε₁) for every ε₁; the smallest found counts.
    """

    def delta_of_split(first: float) -> float:
        weight = math.exp(first)
        return removed(law, first) + weight * added(law, epsilon - first) + (1 + weight) * LEFT_OUT

    return float(minimize_scalar(delta_of_split, bounds=(0, epsilon), method="bounded").fun)


def smallest(delta_at: Callable[[float], float], delta: float, most: float = 60.0) -> tuple[float, float]:
    """Between which two ε a decreasing δ(ε) passes `delta`, to 1e-6 of them; ε is at most `most` in any case."""
    return bisect_to_private_side(lambda e: delta_at(e) <= delta, 0.0, most, lambda low, high: high - low > 1e-6 * high)


# Relative error granted to each tail probability; SciPy's are good to 1e-13 and better.
_ROUNDING = 1e-11
# δ0 of pure reports, which the theorem wants positive; it adds 2Nn e^((n−1)ε0)(e^ε+1) times this to δ.
_PURE = 1e-300


def clones_delta(
    epsilon0: float, reports: int, epsilon: float, *, records: int = 1, upper: bool = True, delta: float = 1e-15
) -> float:
    """δ at ε of shuffled ε0-private reports, by the exact hockey-stick divergence of the clones' counts.

    Feldman, McMillan and Talwar 2021, Theorem 3.1's proof; with n `records` a sender as in the convex paper's Theorem
    E.2. The reports may be adaptive. Errs upwards, or downwards if not `upper`; a millionth of `delta` may be spent on
    improbable numbers of clones.
    """
    _check(epsilon0, reports, delta, records)
    keep = 1 / (1 + math.exp(-epsilon0))
    return _counts_delta(reports, math.exp(-records * epsilon0), keep, 1 - keep, epsilon, upper, delta)


def response_delta(epsilon0: float, reports: int, epsilon: float, *, delta: float = 1e-15) -> float:
    """δ at ε that shuffled randomised response over three symbols has at least: no bound for all reports is below."""
    _check(epsilon0, reports, delta)
    other = 1 / (math.exp(epsilon0) + 2)
    return _counts_delta(reports, 2 * other, 1 - 2 * other, other, epsilon, False, delta)


def clones_epsilon(epsilon0: float, reports: int, delta: float, *, records: int = 1) -> float:
    """Upper bound on ε at δ of shuffled ε0-private reports, numerical; never above ε0."""
    return _invert(lambda e: clones_delta(epsilon0, reports, e, records=records, delta=delta), epsilon0, delta)[1]


def response_epsilon(epsilon0: float, reports: int, delta: float) -> float:
    """Lower bound on ε at δ that any bound for shuffled ε0-private reports must have (see `response_delta`)."""
    return _invert(lambda e: response_delta(epsilon0, reports, e, delta=delta), epsilon0, delta)[0]


def allocation_epsilon(epsilon0: float, slots: int, delta: float) -> float:
    """Upper bound on ε at δ of an ε0-private report in one of m slots, drawn in secret; neighbours replace the record.

    The smaller of two zero-out steps (`replaced`) and the clones' proof, which covers random slots too
    (docs/proofs/p_vec.md); never above ε0. `response_epsilon` is a lower end: the report's counts have the same law.
    """
    law = response_law(epsilon0, slots)
    steps = _invert(lambda e: replaced(law, e), epsilon0, delta)[1]
    return min(steps, clones_epsilon(epsilon0, slots, delta))


def clones_closed_form(epsilon0: float, reports: int, delta: float, *, records: int = 1) -> float:
    """The convex paper's Theorem E.2 (n = 1: FMT 2021, 3.1); ValueError where ε0 exceeds ln(N/(16 ln(2/δ)))/n."""
    _check(epsilon0, reports, delta, records)
    return shuffled_round(N=reports, n=records, epsilon0=epsilon0, delta0=_PURE, delta=delta).value


def poisson_subsampled(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """(ln(1 + q(e^ε − 1)), qδ) of an (ε, δ)-private release on records that each take part with probability q.

    Neighbours add or remove one record, before and after (Balle, Barthe and Gaboardi 2018, Theorem 8): no statement
    about replacing one. Which records took part must stay secret.
    """
    # In logarithms, as e^ε overflows where the result, ε + ln q, does not.
    amplified = math.log1p(rate * math.expm1(epsilon)) if epsilon < 500 else epsilon + math.log(rate)
    return amplified, rate * delta


def sampled_delta(epsilon0: float, records: int, steps: int, epsilon: float) -> float:
    """δ at ε of `steps` adaptive ε0-private reports, each of one record drawn uniformly from `records`, in secret.

    A step is ln(1 + (e^ε0 − 1)/n)-private (Balle, Barthe and Gaboardi 2018, Theorem 9); randomised response composes
    worst (Kairouz, Oh and Viswanath 2015, Theorem 3.3), with a binomial sum as δ.
    """
    _check(epsilon0, records, 0.5)
    step = poisson_subsampled(epsilon0, 0.0, 1 / records)[0]
    truths = np.arange(steps + 1)
    loss = (2 * truths - steps) * step
    above = loss > epsilon
    mass = binom.pmf(truths[above], steps, 1 / (1 + math.exp(-step)))
    return min(float((mass * -np.expm1(epsilon - loss[above])).sum()) * (1 + 1e-9), 1.0)


# What each row of the table is, and under which assumptions.
BOUNDS: dict[str, str] = {
    "none": "no amplification: the report's own ε0",
    "clones, numerical": "any ε0-private reports, adaptive; n records a sender",
    "clones, closed form": "convex paper E.2 (FMT 2021, 3.1 for n = 1): ε0 ≤ ln(N/(16 ln(2/δ)))/n",
    "check-ins paper 5.1": "any ε0-private reports, adaptive; one record a sender",
    "earlier bound": "Erlingsson et al. 2019 as in the check-ins paper; one record a sender",
    "random check-ins": "check-ins paper 3.2: as many slots as reports, p0 = 1; one record a sender",
    "random allocation": "one of as many slots as reports, drawn in secret; any ε0-private reports, adaptive",
    "subsampling": "one of N reports is made, drawn by Poisson sampling at rate 1/N; add or remove one",
    "lower bound": "randomised response over three symbols has at least this, shuffled or in random slots",
}


def amplification_table(
    epsilon0: Sequence[float],
    reports: Sequence[int],
    delta: Sequence[float],
    *,
    records: int = 1,
    bounds: Collection[str] = tuple(BOUNDS),
) -> pd.DataFrame:
    """Every bound, or those named, at every (ε0, N, δ): epsilon0, reports, records, delta, bound, epsilon, note.

    ε is NaN with the violated assumption as note where a bound says nothing. ValueError for values without meaning.
    """
    for name, values in (("epsilon0", epsilon0), ("reports", reports), ("delta", delta)):
        if len(values) == 0:
            raise ValueError(f"{name}: empty: must hold at least one value")
    points = list(itertools.product(epsilon0, reports, delta))
    for e, N, at in points:
        _check(e, N, at, records)
    rows = [
        {"epsilon0": e, "reports": N, "records": records, "delta": at, "bound": bound, "epsilon": value, "note": note}
        for e, N, at in points
        for bound, (value, note) in _bounds(e, N, at, records, bounds).items()
    ]
    return pd.DataFrame(rows)


def _bounds(e: float, N: int, delta: float, records: int, wanted: Collection[str]) -> dict[str, tuple[float, str]]:
    functions: dict[str, Callable[[], float]] = {
        "none": lambda: e,
        "clones, numerical": lambda: clones_epsilon(e, N, delta, records=records),
        "clones, closed form": lambda: clones_closed_form(e, N, delta, records=records),
    }
    if records == 1:
        functions |= {
            "check-ins paper 5.1": lambda: shuffled(n=N, epsilon0=e, delta=delta).value,
            "earlier bound": lambda: shuffled_earlier(n=N, epsilon0=e, delta=delta).value,
            "random check-ins": lambda: fixed_window(p0=1.0, m=N, epsilon0=e, delta=delta).value,
            "random allocation": lambda: allocation_epsilon(e, N, delta),
            "subsampling": lambda: poisson_subsampled(e, 0.0, 1 / N)[0],
            "lower bound": lambda: response_epsilon(e, N, delta),
        }
    values = {}
    for name in [name for name in functions if name in wanted]:
        try:
            value = functions[name]()
            values[name] = (value, "no amplification: above ε0" if value > e * (1 + 1e-9) else "")
        except AssumptionError as error:
            values[name] = (math.nan, str(error))
    return values


def _counts_delta(
    reports: int, clone: float, keep: float, swap: float, epsilon: float, upper: bool, delta: float
) -> float:
    """Hockey-stick divergence of (T, A): of T clones, A of the first kind; the differing report adds to them.

    Others: C ~ Bin(N − 1, clone) clones, Bin(C, 1/2) of the first kind. The differing report is of the first kind with
    probability `keep`, of the second with `swap`; its neighbour has them exchanged. The best event is A ≥ a(t).
    """
    lost = 1e-6 * delta
    low = max(int(binom.ppf(lost / 2, reports - 1, clone)) - 1, 0)
    high = min(int(binom.isf(lost / 2, reports - 1, clone)) + 1, reports - 1)
    t = np.arange(low, high + 2, dtype=float)
    # P(T = t, A = i) = (seen_t (keep·2i/t + swap·2(t − i)/t) + unseen_t)·Bin(i; t, 1/2).
    seen = np.where(t > low, binom.pmf(t - 1, reports - 1, clone), 0.0)
    unseen = np.where(t <= high, binom.pmf(t, reports - 1, clone), 0.0) * max(1 - keep - swap, 0.0)
    weight = math.exp(epsilon)
    # The ratio exceeds e^ε where slope·i > level; slope ≤ 0 (ε ≥ ln(keep/swap) at the latest) never happens below ε0.
    slope = 2 * seen * (keep - swap) * (1 + weight) / np.maximum(t, 1)
    level = (weight - 1) * unseen + 2 * seen * (weight * keep - swap)
    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.where(slope > 0, np.floor(level / slope) + 1, np.inf)
    start = np.minimum(start, t + 1)
    # Σ_{i≥a} Bin(i; t, ½)·{2i/t, 2(t−i)/t} are tails of t − 1 coins, with the i-th coin fixed.
    first = binom.sf(start - 2, np.maximum(t - 1, 0), 0.5)
    second = binom.sf(start - 1, np.maximum(t - 1, 0), 0.5)
    whole = binom.sf(start - 1, t, 0.5)
    p = seen * (keep * first + swap * second) + unseen * whole
    q = seen * (swap * first + keep * second) + unseen * whole
    error = _ROUNDING * float(p.sum() + weight * q.sum())
    total = float(np.maximum(p - weight * q, 0.0).sum())
    return min(total + error + lost, 1.0) if upper else max(total - error, 0.0)


def _invert(delta_at: Callable[[float], float], epsilon0: float, delta: float) -> tuple[float, float]:
    """Between which two ε in [0, ε0] a decreasing δ(ε) passes `delta`; both 0 where it never exceeds that."""
    return (0.0, 0.0) if delta_at(0.0) <= delta else smallest(delta_at, delta, epsilon0)


def _check(epsilon0: float, reports: int, delta: float, records: int = 1) -> None:
    if not 0 < epsilon0 <= 500:
        raise ValueError(f"epsilon0 = {epsilon0}: must lie above 0 and be at most 500")
    for name, value in (("reports", reports), ("records", records)):
        if value < 1 or value != int(value):
            raise ValueError(f"{name} = {value}: must be an integer and at least 1")
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta}: must lie strictly between 0 and 1")
