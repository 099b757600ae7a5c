"""Plans of runs whose sums go through P_vec, a record's clipped gradient as one participant, and what is proven.

Non-convex paper, Algorithms 7 to 10 over Algorithms 4 and 5. Where no record is drawn twice in a run the sums compose
in parallel; else records are drawn without replacement in a round and their losses compose (docs/proofs/p_vec.md).
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import binom

from silodp.privacy.accounting.accountant import DeliveredEpsilon
from silodp.privacy.accounting.losses import Composition, connected_losses, epsilon_at, epsilon_of_moments, slack
from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.privacy.plan import PrivacyPlan, Release
from silodp.privacy.shuffling.binomial_noise import vector_moments
from silodp.privacy.shuffling.p_vec import ShuffledSums, SumParameters, calibrate

_TAIL = 1e-3  # share of δ for improbable noise
_ORDERS = 28
_STEP = 0.15  # of a lattice, in standard deviations of one sum's loss
_OVERHEAD = 0.3  # of a sum's variance, for rounding and whole bits
_PRECISION = 0.01  # of the noise at which the search for the least stops
_FINEST_LEVELS = 1 << 12


class SumRelease(NamedTuple):
    """Sums of one kind in a run: numbers of P_vec, how many, and K/n, the probability that a record is in a sum."""

    parameters: SumParameters
    times: int
    share: float


def composed_upper(kinds: Sequence[SumRelease], dimension: int, delta: float) -> float:
    """Proven ε at δ of all sums of d coordinates against replacing one record; ∞ where noise is too little for any."""
    kinds = [kind for kind in kinds if kind.times]
    if not kinds:
        return 0.0
    bounds = _Bounds(kinds, dimension, delta)
    return min(bounds.by_moments(), bounds.by_profiles()) if np.isfinite(bounds.moments).any(1).all() else math.inf


def composed_lower(kinds: Sequence[SumRelease], delta: float, step: float = 1e-4) -> float:
    """ε at δ below which no guarantee for all sums can go, by two silos whose records send −L·e₁, but one record L·e₁.

    A sum is B against (1 − q)B + q(B + g), B the binomial noise; losses are rounded down on a lattice of `step`.
    """
    total = None
    for parameters, count, share in kinds:
        if not count:
            continue
        ones = np.arange(parameters.trials + parameters.levels + 1)
        with np.errstate(divide="ignore"):
            log_q = binom.logpmf(ones, parameters.trials, parameters.chance)
            moved = binom.logpmf(ones - parameters.levels, parameters.trials, parameters.chance)
            log_p = np.logaddexp(math.log1p(-share) + log_q, math.log(share) + moved) if share < 1 else moved
        laws = [{k: v for k, v in enumerate(law.tolist()) if v > -math.inf} for law in (log_q, log_p)]
        one = privacy_loss_distribution.from_two_probability_mass_functions(
            *laws,
            pessimistic_estimate=False,
            value_discretization_interval=step,
            log_mass_truncation_bound=math.log(delta) - 20,
        )
        kind = one.self_compose(count)
        total = kind if total is None else total.compose(kind)
    return 0.0 if total is None else max(float(total.get_epsilon_for_delta(delta)), 0.0)


def calibrated_sums(
    sizes: Sequence[tuple[int, int, float]], dimension: int, epsilon: float, delta: float
) -> tuple[SumParameters, ...]:
    """Numbers of P_vec for each kind of sum with which all together are (ε, δ)-private, as proven, with little noise.

    `sizes` are (participants, count, K/n) of each kind; noise multipliers are √count·K/n times a common factor, as in
    `prox_svrg`. ValueError where no sensible numbers do it.
    """

    def numbers(factor: float) -> tuple[SumParameters, ...]:
        return tuple(
            _numbers(participants, factor * math.sqrt(max(count, 1)) * share, dimension)
            for participants, count, share in sizes
        )

    def excess(factor: float) -> float:
        """Proven ε over the wanted one."""
        pairs = zip(numbers(factor), sizes, strict=True)
        kinds = [SumRelease(parameters, count, share) for parameters, (_, count, share) in pairs]
        return composed_upper(kinds, dimension, delta) / epsilon

    # Without rounding and draws it would be this; ε falls about as 1/factor.
    factor = math.sqrt(max(sum(1 for _, count, _ in sizes if count), 1)) / gaussian_mu(epsilon, delta)
    least, most = factor / 1e3, factor * 1e3
    low, high, above = 0.0, math.inf, math.inf
    while high > (1 + _PRECISION) * low and factor > least:
        value = excess(factor)
        if value <= 1:
            high = factor
        else:
            low, above = factor, value
        if low > most:
            raise ValueError(f"epsilon = {epsilon}: no number of noise bits reaches it by the proven bounds")
        if high < math.inf and low > 0:
            # A little beyond where 1/factor would put it, or half-way.
            guess = low * above * (1 + _PRECISION / 2)
            factor = guess if low < guess < high / (1 + _PRECISION / 2) else math.sqrt(low * high)
        else:
            factor *= min(max(value, 0.5), 2.0) * (1 + _PRECISION if value > 1 else 1 - _PRECISION)
    return numbers(high)


def _numbers(participants: int, multiplier: float, dimension: int) -> SumParameters:
    """g and b whose noise has about the multiplier σ/sensitivity, rounding counted as part of the sensitivity."""
    levels = 1
    while levels**2 * _OVERHEAD < participants / (4 * multiplier**2) + dimension / 4 and levels < _FINEST_LEVELS:
        levels *= 2
    variance = multiplier**2 * (levels**2 + dimension / 4)
    return SumParameters(participants, levels, math.ceil(4 * variance / participants))


class _Bounds:
    """Moments of every kind of sum on one grid of orders λ, and what follows from them."""

    def __init__(self, kinds: Sequence[SumRelease], dimension: int, delta: float) -> None:
        self.kinds, self.delta = kinds, delta
        total = sum(kind.times for kind in kinds)
        self.tail = _TAIL * delta / total
        # Standard deviations of the losses of one sum, if they were Gaussian; nothing here has to be exact.
        self.spread = [
            math.sqrt((one.levels**2 + dimension / 4) / max(one.trials * one.chance * (1 - one.chance), 1e-9))
            for one, _, _ in kinds
        ]
        whole = math.sqrt(sum(kind.times * s * s for kind, s in zip(kinds, self.spread, strict=True)))
        low, high = 0.1 * min(1.0, 1 / whole), 1 + 2 * math.sqrt(-2 * math.log(self.tail)) / min(self.spread)
        # E[(P/Q)^1] under P bounds the χ²-divergence; the last row of orders is that one.
        self.orders = orders = np.append(np.geomspace(low, high, _ORDERS), 1.0)
        self.slack = slack(orders)
        self.moments = np.array(
            [vector_moments(one.trials, one.chance, one.levels, dimension, orders, self.tail) for one, _, _ in kinds]
        )

    def by_moments(self) -> float:
        """min_λ [Σ M(λ) − ln(δ − Στ) + λ ln λ − (1 + λ) ln(1 + λ)]/λ."""
        counts = np.array([kind.times for kind in self.kinds])
        return max(float(np.min(epsilon_of_moments(counts @ self.moments, self.orders, (1 - _TAIL) * self.delta))), 0.0)

    def by_profiles(self) -> float:
        """Composition of pairs that dominate the sums over secretly drawn records."""
        ends = [float(np.min(epsilon_of_moments(row, self.orders, self.tail))) for row in self.moments]
        # ln(1 + q(e^ε − 1)) after the draw.
        tops = [
            end + math.log(kind.share + (1 - kind.share) * math.exp(-end))
            for end, kind in zip(ends, self.kinds, strict=True)
        ]
        if max(tops) > 600:
            return math.inf
        step = min(_STEP * kind.share * min(s, 1.0) for kind, s in zip(self.kinds, self.spread, strict=True))
        step = max(step, max(tops) / 20_000)
        parts = []
        for k, (kind, top) in enumerate(zip(self.kinds, tops, strict=True)):
            epsilon = np.arange(math.ceil(top / step) + 2) * step
            # H at e^ε of the sum over a drawn batch is at most q·H at 1 + (e^ε − 1)/q of the sum with the record in it.
            profile = kind.share * self.profile(k, np.log1p(np.expm1(epsilon) / kind.share))
            convex = np.minimum.accumulate(_convex(np.exp(epsilon), profile))
            parts.append((connected_losses(convex, step), kind.times))
        return epsilon_at(Composition(parts), self.delta, upper=True)

    def profile(self, kind: int, epsilon: np.ndarray) -> np.ndarray:
        """Upper bound (E,) on δ at ε ≥ 0 (E,) of one sum that has the record in it, either order of neighbours."""
        moments = self.moments[kind]
        chernoff = np.exp(np.minimum((moments + self.slack - np.outer(epsilon, self.orders)).min(1), 0.0))
        # (y − α)₊ ≤ (y − c)²/(4(α − c)) for c < α, with E_Q y² ≤ e^{M(1)} and 1 − τ ≤ E_Q y ≤ 1 for good noise.
        alpha, square = np.exp(np.minimum(epsilon, 300.0)), math.exp(min(moments[-1], 300.0))
        c = alpha - np.sqrt(square - 1 + (alpha - 1) ** 2 + 1e-12)
        second = (square - 2 * c * np.where(c > 0, 1 - self.tail, 1.0) + c * c) / (4 * (alpha - c))
        return np.minimum(self.tail + np.minimum(chernoff, second), 1.0)


def _convex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values at x of the lower convex hull of the points (x, y); a convex function below the points is below it."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return np.interp(x, x[hull], y[hull])


def shuffled_plan(plan: PrivacyPlan, M: int, dimension: int) -> PrivacyPlan:
    """The private plan of an algorithm for sums, with its sums of M silos and d coordinates sent by P_vec: (ε,
    δ)-private.

    Its releases' noise is the largest standard deviation of P_vec as a silo's share.
    """
    if plan.budget.epsilon is None:
        raise ValueError(f"plan of {plan.algorithm}: has no epsilon, which a shuffled sum needs")
    for release in plan.releases:
        if release.clipping != "record":
            raise ValueError(f"summation: 'shuffled': must be ideal where clipping is {release.clipping}")
    once = _drawn_once(plan)
    if once is not None:
        sums: tuple[SumParameters, ...] = (
            _calibrated(M * once.records, dimension, plan.budget.epsilon, plan.budget.delta),
        )
    else:
        sizes = tuple((M * kind.records, kind.count, kind.records / plan.budget.n) for kind in plan.releases)
        sums = _calibrated_sums(sizes, dimension, plan.budget.epsilon, plan.budget.delta)
    releases = tuple(
        replace(
            release,
            noise=math.sqrt(parameters.variance(2.0 * release.gradients) / M) / release.records,
            sampler=release.sampler if release.sampler == "disjoint" else "subset",
        )
        for release, parameters in zip(plan.releases, sums, strict=True)
    )
    kinds = tuple((release.kind, parameters) for release, parameters in zip(releases, sums, strict=True))
    return replace(plan, releases=releases, trusted_sum=M, shuffled_sum=ShuffledSums(kinds, dimension))


def sent_bits(plan: PrivacyPlan) -> float:
    """Bits that a silo sends in the whole run, d(g + b) for each record of each message; NaN without shuffled sums."""
    sums = plan.shuffled_sum
    if sums is None:
        return math.nan
    return float(sum(one.count * one.records * sums[one.kind].bits(sums.dimension) for one in plan.releases))


def delivered_shuffled_sums(plan: PrivacyPlan) -> DeliveredEpsilon:
    """Proven ε of a plan with shuffled sums against the server, which sees the shuffled bits of every round.

    `lower`: no guarantee for these sums can be below it, if the server may ask gradients at any point.
    """
    sums, n, delta = plan.shuffled_sum, plan.budget.n, plan.budget.delta
    if sums is None:
        raise ValueError(f"plan of {plan.algorithm}: has no shuffled sum")
    once = _drawn_once(plan)
    if once is not None:
        lower, upper = sums[once.kind].epsilon(sums.dimension, delta)
        how = "each record in one sum at most"
    elif any(one.sampler != "subset" for one in plan.releases):
        # A record drawn J times is J participants; the bound of a sum covers one.
        lower, upper, how = 0.0, math.inf, "none: a record may be several participants of a sum"
    else:
        kinds = [SumRelease(sums[one.kind], one.count, one.records / n) for one in plan.releases]
        upper = composed_upper(kinds, sums.dimension, delta)
        lower = composed_lower(kinds, delta, step=min(max(1e-4, upper * 1e-4), 1e-2))
        how = f"composition of {sum(one.count for one in plan.releases)} sums over records drawn without replacement"
    how = f"seen by the server: shuffled sums P_vec, proven bound; {how}"
    return DeliveredEpsilon.between(lower, upper, how)


# Up to seconds each, and every trial asks.
_calibrated = functools.cache(calibrate)
_calibrated_sums = functools.cache(calibrated_sums)


def _drawn_once(plan: PrivacyPlan) -> Release | None:
    """The one kind of message, if its records are never drawn again in a run."""
    sent = [release for release in plan.releases if release.count]
    return sent[0] if len(sent) == len(plan.releases) == 1 and sent[0].sampler == "disjoint" else None
