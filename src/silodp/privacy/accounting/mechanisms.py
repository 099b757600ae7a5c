"""The Gaussian mechanism, exactly.

μ stands for the ratio of a release's ℓ2 sensitivity to the standard deviation of its noise,
which is one over the noise multiplier; every sensitivity here is that of replacing one record.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta}: must lie strictly between 0 and 1")


def gaussian_log_profile(epsilon: np.ndarray | float, mu: float) -> np.ndarray:
    """ln δ(ε) of one Gaussian mechanism, for ε ≥ 0 of any shape, without underflow.

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang 2018, Theorem 8). With m(x) = Φ(x)/φ(x) the Mills ratio
    and a = μ/2 − ε/μ this is φ(a)·(m(a) − m(a − μ)), which keeps its digits however small δ is.
    """
    a = mu / 2 - np.asarray(epsilon, dtype=float) / mu
    below = np.minimum(a, 0.0)
    half_pi = math.sqrt(math.pi / 2)
    mills_gap = half_pi * (erfcx(-below / math.sqrt(2)) - erfcx((mu - below) / math.sqrt(2)))
    with np.errstate(divide="ignore"):
        tail = -(below**2) / 2 - _LOG_SQRT_2PI + np.log(mills_gap)
        # Above a = 0 the first term is at least 1/2 and nothing cancels.
        above = np.maximum(a, 0.0)
        body = ndtr(above) - np.exp(-(above**2) / 2 - _LOG_SQRT_2PI) * half_pi * erfcx((mu - above) / math.sqrt(2))
        return np.where(a <= 0, tail, np.log(np.maximum(body, 0.0)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest ε ≥ 0 for which a Gaussian mechanism with sensitivity over noise μ is (ε, δ)-DP."""
    check_delta(delta)
    if mu == 0:
        return 0.0
    if not 0 < mu < math.inf:
        raise ValueError(f"mu = {mu}: must be positive and finite")
    log_delta = math.log(delta)

    def excess(epsilon: float) -> float:
        return float(gaussian_log_profile(epsilon, mu)) - log_delta

    if excess(0.0) <= 0:
        return 0.0
    # δ(ε) ≤ Φ(μ/2 − ε/μ) ≤ exp(−(ε/μ − μ/2)²/2) ends the search from above.
    top = mu * mu / 2 + mu * math.sqrt(-2 * log_delta)
    return float(brentq(excess, 0.0, top, xtol=1e-14 * top, rtol=1e-14))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest μ (smallest noise) for which a Gaussian mechanism is (ε, δ)-DP: Balle and Wang 2018, Algorithm 1."""
    check_delta(delta)
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon = {epsilon}: must be finite and not negative")
    log_delta = math.log(delta)

    def excess(mu: float) -> float:
        return float(gaussian_log_profile(epsilon, mu)) - log_delta

    high = 1.0
    while excess(high) < 0:
        high *= 2
    low = high
    while excess(low) > 0:
        low /= 2
    return low if low == high else float(brentq(excess, low, high, rtol=1e-14))
