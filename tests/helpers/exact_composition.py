"""The best ε that composition can grant: what k releases of one (ε0, δ0) spend together, exactly."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln


def composed_delta(count: int, epsilon0: float, delta0: float, epsilon: float) -> float:
    """Smallest δ at which every composition of `count` (ε0, δ0)-DP releases is (ε, δ)-DP.

    Reached by randomised response that fails with probability δ0 (Kairouz, Oh, Viswanath 2015, Theorem 3.3):
    1 − (1−δ0)^k (1 − Σ_i P(i)(1 − e^(ε−ℓ_i))₊), losses ℓ_i = (k−2i)ε0 with the binomial law P of k honest answers.
    """
    i = np.arange(count + 1)
    losses = (count - 2 * i) * epsilon0
    logs = gammaln(count + 1) - gammaln(i + 1) - gammaln(count - i + 1)
    logs += (count - i) * epsilon0 - count * np.logaddexp(0.0, epsilon0)
    above = losses > epsilon
    pure = float(np.sum(np.exp(logs[above]) * -np.expm1(epsilon - losses[above])))
    kept = count * math.log1p(-delta0)
    return -math.expm1(kept) + math.exp(kept) * pure


def composed_epsilon(count: int, epsilon0: float, delta0: float, delta: float) -> float:
    """Smallest ε at which every composition of `count` (ε0, δ0)-DP releases is (ε, δ)-DP; at most count·ε0.

    No composition theorem can grant less: what exceeds a claim here exceeds it. ∞ where δ is used up by δ0 alone.
    """
    most = count * epsilon0
    if composed_delta(count, epsilon0, delta0, most) > delta:
        return math.inf
    if composed_delta(count, epsilon0, delta0, 0.0) <= delta:
        return 0.0
    return float(brentq(lambda epsilon: composed_delta(count, epsilon0, delta0, epsilon) - delta, 0.0, most))
