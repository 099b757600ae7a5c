"""ε of a run that was chosen: private selection with a random number of tries (Papernot and Steinke 2022, Theorem 2).

The best, by a score that each run may release, of a random number of runs at points drawn uniformly from the grid. The
number is truncated negative binomial with shape η = 0 or 1 and mean the grid's size; the better shape counts.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from silodp.privacy.accounting.accountant import Bracket
from silodp.privacy.accounting.composition import Composition
from silodp.privacy.person import person_laws
from silodp.privacy.plan import PrivacyPlan

SHAPES = 0.0, 1.0
# Of the numbers of runs behind lines of a ledger: the shape that costs less at every mean above 1.
SHAPE = 0.0
ORDERS = 1 + np.geomspace(1e-3, 1e4, 141)


def selection_epsilon(plans: Sequence[PrivacyPlan], tries: float) -> float:
    """Upper ε at δ of the best of a random number of runs of the plans, which are all for one silo and δ.

    A run follows any of the plans; `tries` ≥ 1 is the mean number of runs. NaN behind a shuffler or with shuffled sums,
    of which no Rényi bound is known; infinite without noise.
    """
    if not tries >= 1:
        raise ValueError(f"tries = {tries}: must be at least 1")
    if any(not plan.private or plan.assumption for plan in plans):
        return math.inf
    if any(plan.shuffler is not None or plan.shuffled_sum is not None for plan in plans):
        return math.nan
    delta = plans[0].budget.delta
    laws = [_renyi(plan, delta / tries) for plan in plans]
    rdp = np.max([rdp for rdp, _ in laws], axis=0)
    # A run's loss is bounded but with this probability, and some run's with `tries` times it at most.
    left = delta - tries * max(outside for _, outside in laws)
    return min(renyi_epsilon(ORDERS, repeated_renyi(ORDERS, rdp, tries, shape), left) for shape in SHAPES)


def selected_epsilon(history: Sequence[PrivacyPlan], delta: float, silos: int = 1, records: int = 1) -> float:
    """Upper ε at δ of all plans of a silo, one after the other, each with its `tries` (drawn with shape `SHAPE`).

    For a person with at most `records` records in each of `silos` silos. Rényi divergences add up.
    """
    return dominating_epsilon([[plan] for plan in history], delta, silos, records)


def dominating_epsilon(
    history: Sequence[Sequence[PrivacyPlan]], delta: float, silos: int = 1, records: int = 1
) -> float:
    """The same where it is not known by which plan of each sequence a silo releases: the largest divergence counts."""
    plans = {plan for choice in history for plan in choice}
    if any(not plan.private or plan.assumption or records > plan.budget.n for plan in plans):
        return math.inf
    laws = {plan: _renyi(plan, delta / (plan.tries * len(history)), silos, records) for plan in plans}
    total, left = np.zeros(len(ORDERS)), delta
    for choice in history:
        repeated = [repeated_renyi(ORDERS, laws[plan][0], plan.tries, SHAPE) for plan in choice]
        # A divergence is at most that of any higher order.
        total = total + np.minimum.accumulate(np.max(repeated, axis=0)[::-1])[::-1]
        left -= max(plan.tries * laws[plan][1] for plan in choice)
    return renyi_epsilon(ORDERS, total, left)


def _renyi(plan: PrivacyPlan, delta: float, silos: int = 1, records: int = 1) -> tuple[np.ndarray, float]:
    """(Rényi divergence at every order of `ORDERS`, probability of a loss that it leaves out) of a transcript."""
    total, outside = np.zeros(len(ORDERS)), 0.0
    sampled = []
    for law, count in person_laws(plan, silos, records):
        if law.weights[0] == 0 and len(law.weights) == 2:
            total += ORDERS * law.shift**2 / 2 * count
        else:
            sampled.append((law, count))
    if sampled:
        bracket = Bracket(sampled, delta * 1e-3)
        if bracket.far:
            return np.full(len(ORDERS), math.inf), 0.0
        composition = Composition(bracket.lattice().parts())
        total += np.array([composition.log_moment(order - 1) / (order - 1) for order in ORDERS])
        outside = composition.infinite
    return total, outside


def repeated_renyi(orders: np.ndarray, rdp: np.ndarray, mean: float, shape: float) -> np.ndarray:
    """Rényi divergence of the best of K runs, K truncated negative binomial (Papernot and Steinke 2022, Theorem 2).

    ε'(λ) = ε(λ) + (1+η)(1 − 1/λ̂)ε(λ̂) + (1+η) ln(1/γ)/λ̂ + ln E[K]/(λ − 1), at the best λ̂.
    """
    if mean == 1:
        return rdp
    gamma = stopping(mean, shape)
    extra = (1 + shape) * float(np.min((1 - 1 / orders) * rdp - math.log(gamma) / orders))
    return rdp + extra + math.log(mean) / (orders - 1)


def stopping(mean: float, shape: float) -> float:
    """γ of the truncated negative binomial with shape η and mean E[K] > 1."""
    if shape == 1:
        return 1 / mean
    # η = 0: E[K] = (1/γ − 1)/ln(1/γ); a mean closer to 1 than the root's bracket counts as the bracket's end.
    mean = max(mean, 1 + 1e-9)
    return math.exp(-brentq(lambda log: math.log(math.expm1(log) / log) - math.log(mean), 1e-9, 700.0, xtol=1e-12))


def renyi_epsilon(orders: np.ndarray, rdp: np.ndarray, delta: float) -> float:
    """ε at δ: the least of ε(λ) + ln((λ−1)/λ) − (ln δ + ln λ)/(λ − 1) over the orders, at least 0."""
    if not delta > 0:
        return math.inf
    bounds = rdp + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(float(np.min(bounds)), 0.0)
