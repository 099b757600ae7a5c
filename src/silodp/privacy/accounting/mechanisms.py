"""The Gaussian mechanism, exactly; what one noisy minibatch can reveal about one record; where a guarantee begins.

The bound holds for every silo, data set and loss. The replaced record is among the drawn J times with probability p_J,
and each occurrence moves the mean by at most `shift` standard deviations of the noise (docs/accounting.md).
μ stands for the ratio of a release's ℓ2 sensitivity to the standard deviation of its noise,
which is one over the noise multiplier; every sensitivity here is that of replacing one record.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr

from silodp.privacy.message_counts import Occurrences

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_NEWTON_STEPS = 50
_NEWTON_CLOSE = 1e-12  # relative to the root; steps shrink quadratically, so the last is far below

Number = TypeVar("Number", int, float)


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


def replace_one_profile(occurrences: Occurrences, epsilon: np.ndarray) -> np.ndarray:
    """Upper bound on δ(ε) of one release between any two neighbouring silos, for ε ≥ 0 of shape (E,).

    It holds for both orders of the neighbours; for ε < 0 use δ(−ε) = 1 − e^−ε + e^−ε·δ(ε). It is the least value of
    Σ_j p_j δ_j(α_j), δ_j the profile of a Gaussian shifted by j occurrences, over the ways to spread the mass e^ε of
    the second neighbour: α_0 = 1, and what has k occurrences may serve only j ≥ k. The optimum gives j ≥ m the ratio
    α_j = e^ε and cuts all smaller j at one common threshold t, where Σ_{1≤j<m} p_j e^{jst − j²s²/2} =
    e^ε P(J < m) − p_0. Uniform α_j give the bound of Balle, Barthe and Gaboardi (2018), never below this one.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    p, s, times = occurrences.weights, occurrences.shift, occurrences.times
    bound = np.full(len(epsilon), occurrences.tail)
    # The cut m is first guessed from above: j is worth the common threshold where j s t − j²s²/2 ≥ ε, up to the larger
    # root.
    t, _ = _threshold(occurrences, len(p), 1.0, epsilon)
    root = t + np.sqrt(np.maximum(t * t - 2 * epsilon, 0.0))
    cut = np.clip(np.floor(root / s).astype(int) + 2, 2, len(p))
    pending = np.ones(len(epsilon), dtype=bool)
    below = np.cumsum(p)
    while pending.any():
        for m in np.unique(cut[pending]):
            at = np.flatnonzero(pending & (cut == m))
            t, log_budget = _threshold(occurrences, int(m), below[m - 1], epsilon[at])
            # The block below m keeps its budget only if its last member still gets ratio ≥ e^ε; m = 2 always does.
            fits = (m == 2) | ((m - 1) * s * t - ((m - 1) * s) ** 2 / 2 >= epsilon[at])
            t, log_budget, kept = t[fits], log_budget[fits], at[fits]
            served = ndtr(times[: m - 1] * s - t[:, None]) @ p[1:m]
            bound[kept] += np.maximum(served - np.exp(log_budget + log_ndtr(-t)), 0.0)
            for j in range(m, len(p)):
                bound[kept] += p[j] * np.exp(gaussian_log_profile(epsilon[kept], j * s))
            pending[kept] = False
            cut[at[~fits]] -= 1
    return np.minimum(bound, 1.0)


def _threshold(occurrences: Occurrences, m: int, below: float, epsilon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """t with Σ_{1≤j<m} p_j e^{jst − j²s²/2} = B, and ln B, where B = e^ε·below − p_0."""
    none = occurrences.weights[0] * np.exp(-epsilon)
    log_budget = epsilon + np.log(np.maximum(below - none, np.finfo(float).tiny))
    return where_sum_is(occurrences.log_weights[1:m], np.arange(1, m) * occurrences.shift, log_budget), log_budget


def where_sum_is(log_weights: np.ndarray, jumps: np.ndarray, log_goal: np.ndarray) -> np.ndarray:
    """(E,) t with Σ_j w_j e^{c_j t − c_j²/2} = B for each B, by Newton's method in logarithms from the right.

    `log_weights` (J,) are ln w_j, −∞ for some; if for all, t = ∞. `jumps` (J,) are c_j > 0, `log_goal` (E,) ln B.
    """
    with np.errstate(invalid="ignore"):
        t = np.min((log_goal[:, None] - log_weights) / jumps + jumps / 2, axis=1)
    if len(jumps) == 1 or np.isinf(log_weights).all():
        return t
    constant = log_weights - jumps**2 / 2
    for _ in range(_NEWTON_STEPS):
        terms = constant + jumps * t[:, None]
        largest = terms.max(1, keepdims=True)
        shares = np.exp(terms - largest)
        total = shares.sum(1)
        step = (largest[:, 0] + np.log(total) - log_goal) * total / (shares @ jumps)
        t -= step
        if np.max(np.abs(step), initial=0.0) < _NEWTON_CLOSE * (1 + np.max(np.abs(t), initial=0.0)):
            break
    return t


def bisect_to_private_side(
    holds: Callable[[Number], bool],
    low: Number,
    high: Number,
    wide: Callable[[Number, Number], bool],
    middle: Callable[[Any, Any], Any] = lambda low, high: (low + high) / 2,
) -> tuple[Number, Number]:
    """An interval where `holds` turns true, not `wide` any more: `high` is on the private side, `low` is not.

    `holds` is false at `low`, true at `high`, and true from some point on; `middle` is the point to look at next.
    """
    while wide(low, high):
        point = middle(low, high)
        low, high = (low, point) if holds(point) else (point, high)
    return low, high
