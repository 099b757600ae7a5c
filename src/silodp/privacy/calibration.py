"""The least noise that keeps a promise: noise multipliers for a wanted (ε, δ).

>>> from silodp.privacy.plan import Budget, Release
>>> budget = Budget(n=1000, rounds=25, epsilon=1.0, delta=1e-5, batch_epsilon=1.0)
>>> plan = PrivacyPlan("minibatch_sgd", budget, (Release("gradient", count=25, records=100, noise=0.05),))
>>> round(calibrated_plan(plan).noise_multiplier, 3)
2.4
"""

import dataclasses
import math
from collections.abc import Callable

from silodp.privacy.accounting.accountant import ends_of, summed_steps, upper_of
from silodp.privacy.message_counts import Counts, counts_of
from silodp.privacy.plan import PrivacyPlan

_RANGE = 1e-6, 1e9  # noise multipliers between which a solution is looked for


def noise_multiplier(
    counts_at: Callable[[float], Counts | None],
    epsilon: float,
    delta: float,
    *,
    tolerance: float = 1e-4,
    measure: Callable[[Counts | None, float], float] = upper_of,
) -> float:
    """A noise multiplier z at which `counts_at(z)` has at most `epsilon` at δ, by `measure`: the upper end.

    Promise, if ε falls as z grows: z is at most e^`tolerance` times the least, 1 + 1e-4 by default: ε at z ≤
    `epsilon` < ε at z·e^−`tolerance`. ValueError for ε or δ out of range, or no z between 1e-6 and 1e9.
    """
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon = {epsilon}: must be positive and finite")

    def excess(log_noise: float) -> float:
        """ln of upper ε over the wanted one: positive where noise is too small."""
        delivered = measure(counts_at(math.exp(log_noise)), delta)
        return math.log(delivered / epsilon) if delivered > 0 else -math.inf

    return _narrow_bracket(excess, _find_bracket(excess, epsilon), tolerance)


# ln of two noise multipliers, and the excess at each: positive at the first, not at the second.
_Bracket = tuple[float, float, float, float]


def _find_bracket(excess: Callable[[float], float], epsilon: float) -> _Bracket:
    """By strides that grow from z = 1; ValueError where the range ends before the excess changes its sign."""
    least, most = (math.log(limit) for limit in _RANGE)
    high, above = 0.0, excess(0.0)
    low, below = high, above
    stride = math.log(2)
    while above > 0:
        low, below = high, above
        high = min(high + stride, most)
        above = excess(high)
        stride *= 1.5
        if above > 0 and high == most:
            raise ValueError(f"epsilon = {epsilon}: not reached at any noise multiplier up to {_RANGE[1]:g}")
    while below <= 0:
        high, above = low, below
        low = max(low - stride, least)
        below = excess(low)
        stride *= 1.5
        if below <= 0 and low == least:
            raise ValueError(f"epsilon = {epsilon}: reached with any noise multiplier down to {_RANGE[0]:g}")
    return low, high, below, above


def _narrow_bracket(excess: Callable[[float], float], bracket: _Bracket, tolerance: float) -> float:
    """The noise multiplier at the private end of the bracket once it is no longer than `tolerance`."""
    low, high, below, above = bracket
    while high - low > tolerance:
        share = below / (below - above) if math.isfinite(above) else 0.5
        # ε falls almost like a power of the noise: aim a little to either side of the secant's zero, else halve.
        guess = low + share * (high - low)
        for point in (guess + 0.4 * tolerance, guess - 0.4 * tolerance, (low + high) / 2):
            if low < point < high and high - low > tolerance:
                value = excess(point)
                low, below, high, above = (point, value, high, above) if value > 0 else (low, below, point, value)
    return math.exp(high)


def calibrated_plan(plan: PrivacyPlan) -> PrivacyPlan:
    """The plan with the smallest noise that certifies the ε that it claims, on the private side to 1e-4.

    Noises keep their proportion. A baseline and a plan for a shuffler, which is calibrated already, stay as they are.
    """
    if not plan.private or plan.shuffler is not None:
        return plan
    smallest, epsilon = plan.noise_multiplier, plan.budget.epsilon
    assert epsilon is not None
    multiplier = noise_multiplier(
        lambda z: counts_of([plan.with_noise_times(z / smallest)]), epsilon, plan.budget.delta
    )
    return plan.with_noise_times(multiplier / smallest)


def favourable_plan(plan: PrivacyPlan) -> PrivacyPlan:
    """The plan with the least noise that no proof rules out: with less, its claim is surely false.

    Of noisy local steps a linear loss gives the lower end; other plans are calibrated, as their two ends are close.
    """
    (first, *_) = plan.releases
    if not plan.private or first.steps == 1:
        return calibrated_plan(plan)
    epsilon, n, delta = plan.budget.epsilon, plan.budget.n, plan.budget.delta
    assert epsilon is not None
    multiplier = noise_multiplier(
        lambda z: summed_steps(first.steps, first.count // first.steps, n, z),
        epsilon,
        delta,
        measure=lambda counts, delta: ends_of(counts, delta).lower,
    )
    return dataclasses.replace(plan, releases=(dataclasses.replace(first, noise=multiplier * first.sensitivity),))
