"""ε of a run that was chosen: private selection with a random number of tries (Papernot and Steinke 2022, Theorem 2).

The best, by a score that each run may release, of a random number of runs at points drawn uniformly from the grid. The
number is truncated negative binomial with shape η = 0 or 1 and mean the grid's size; the better shape counts.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from silodp.privacy.accounting.accountant import Bracket
from silodp.privacy.accounting.losses import Composition, epsilon_of_moments
from silodp.privacy.message_counts import counts_of, gaussian_mu_of, laws_of
from silodp.privacy.plan import PrivacyPlan

SHAPES = 0.0, 1.0
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
    if any(plan.is_shuffled for plan in plans):
        return math.nan
    delta = plans[0].budget.delta
    laws = [_renyi(plan, delta / tries) for plan in plans]
    rdp = np.max([rdp for rdp, _ in laws], axis=0)
    # A run's loss is bounded but with this probability, and some run's with `tries` times it at most.
    left = delta - tries * max(outside for _, outside in laws)
    if not left > 0:
        return math.inf
    rates = ORDERS - 1
    moments = [rates * repeated_renyi(ORDERS, rdp, tries, shape) for shape in SHAPES]
    return max(min(float(np.min(epsilon_of_moments(each, rates, left))) for each in moments), 0.0)


def _renyi(plan: PrivacyPlan, delta: float) -> tuple[np.ndarray, float]:
    """(Rényi divergence at every order of `ORDERS`, probability of a loss that it leaves out) of a transcript."""
    counts = counts_of([plan])
    assert counts is not None
    total = ORDERS * gaussian_mu_of(counts) ** 2 / 2
    sampled = {one: count for one, count in counts.items() if one.how != "all"}
    if not sampled:
        return total, 0.0
    composition = Composition(Bracket(laws_of(sampled, plan.budget.delta, 1), delta * 1e-3).lattice().parts())
    return total + [composition.log_moment(order - 1) / (order - 1) for order in ORDERS], composition.infinite


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
