"""Minibatch SGD behind a shuffler: proven bounds on the true ε, the noise for a wanted ε, and the paper's C.

In a round M of N silos, drawn in secret, each send the noisy gradient of one of their n records, in random order. The
convex paper's proof of Theorem 4.1 with numbers: a message is (ε0, δ0)-DP by the exact Gaussian profile; M shuffled
ones by Theorem E.2 (corrected δ); a replaced record is among them with probability p = M/(Nn), so ε ↦ ln(1 + p(e^ε −
1)), δ ↦ pδ; R rounds compose numerically. The messages are no worse than a Gaussian mechanism on M of Nn records drawn
without replacement either; the smaller of the two bounds counts.
"""

import math
from typing import NamedTuple

import dp_accounting.pld.common as common
from dp_accounting.pld import privacy_loss_distribution as pld

from silodp.privacy.accounting.accountant import NOT_PRIVATE, DeliveredEpsilon, upper_of
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import draws
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.shuffling.p_vec import bisect_to_private_side
from silodp.theory.convex.privacy import shuffled_noise as theorem_4_1
from silodp.theory.convex.privacy import shuffled_round
from silodp.theory.theorem import AssumptionError

# Relative width at which the search for σ stops.
_PRECISION = 1e-4
# Smallest and largest σ/L that are tried.
_RANGE = (1e-3, 1e9)


class ShuffledNoise(NamedTuple):
    """σ in units of L, and the constant C of Theorem 4.1 that it amounts to; NaN where that theorem says nothing."""

    sigma: float
    C: float


def shuffled_epsilon(sigma: float, *, N: int, M: int, n: int, R: int, delta: float) -> float:
    """Upper bound on ε at δ of R shuffled rounds, one record a message, noise σ in units of L."""
    if not 1 <= M <= N:
        raise ValueError(f"M = {M}: must lie between 1 and N = {N}")
    sampled = {draws("without", N * n, M, sigma / 2): R}
    return min(_by_shuffling(sigma, N, M, n, R, delta), upper_of(sampled, delta))


def _by_shuffling(sigma: float, N: int, M: int, n: int, R: int, delta: float) -> float:
    """The bound of the paper's chain; ∞ outside Theorem E.2.

    Half of δ goes to the rounds' own failures: δ/(4R) each for the shuffling and for the δ0 of the messages.
    """
    share = M / (N * n)
    slack = min(delta / (4 * R * share), 0.5)
    delta0 = slack / (2 * M * (math.e + 1))
    epsilon0 = gaussian_epsilon(delta0, 2 / sigma)
    try:
        one = shuffled_round(N=M, n=1, epsilon0=epsilon0, delta0=delta0, delta=slack)
    except AssumptionError:
        return math.inf
    epsilon, failure = math.log1p(share * math.expm1(one.value)), share * one.terms["delta_tilde"]
    if failure * R >= delta:
        return math.inf
    # With the round's own ε as lattice step nothing is rounded.
    losses = pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, failure), value_discretization_interval=epsilon
    )
    return float(losses.self_compose(R).get_epsilon_for_delta(delta))


def shuffled_noise(epsilon: float, *, N: int, M: int, n: int, R: int, delta: float) -> ShuffledNoise:
    """Least σ (to 1e-4, on the private side) for which `shuffled_epsilon` is at most ε, and its C.

    The bounds hold for every N ≥ M ≥ 1; Theorem 4.1 asks for ε ≤ ln(2/δ) and M ≥ 16 ln(18RM²/(Nδ)).
    """
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon = {epsilon}: must be positive and finite")
    try:
        unit = theorem_4_1(n=n, N=N, M=M, R=R, L=1.0, epsilon=epsilon, delta=delta).terms["unit"]
    except AssumptionError:
        unit = math.nan

    def fits(sigma: float) -> bool:
        return shuffled_epsilon(sigma, N=N, M=M, n=n, R=R, delta=delta) <= epsilon

    high = 1.0
    while not fits(high):
        high *= 2
        if high > _RANGE[1]:
            raise ValueError(f"epsilon = {epsilon}: no noise up to {_RANGE[1]:g} L reaches it by the proven bounds")
    low = high / 2
    while low > _RANGE[0] and fits(low):
        high, low = low, low / 2
    _, high = bisect_to_private_side(
        fits, low, high, lambda a, b: b / a > 1 + _PRECISION, lambda a, b: math.sqrt(a * b)
    )
    return ShuffledNoise(high, high**2 / unit)


def delivered_shuffled(plan: PrivacyPlan) -> DeliveredEpsilon:
    """Bounds on the true ε of a plan with a shuffler, for the shuffled messages of all silos; the lower bound is 0."""
    shuffler, budget = plan.shuffler, plan.budget
    if shuffler is None:
        raise ValueError(f"plan of {plan.algorithm}: has no shuffler")
    release = plan.releases[0]
    if not plan.private or release.noise == 0:
        return NOT_PRIVATE
    if len(plan.releases) != 1 or release.records_drawn != 1:
        raise ValueError(f"plan of {plan.algorithm}: the bounds are for one record a message")
    upper = shuffled_epsilon(
        release.noise_multiplier * 2, N=shuffler.N, M=shuffler.M, n=budget.n, R=release.count, delta=budget.delta
    )
    return DeliveredEpsilon.between(0.0, upper, "behind a shuffler: amplification by shuffling and sampling")
