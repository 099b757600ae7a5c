"""Binomial noise on integers: the exact privacy of one shifted coordinate, and a proven bound for vectors.

B ~ Bin(n, p) is added to each coordinate of an integer vector; a neighbour's vector differs by an integer shift. In d
dimensions the shift is bounded in ℓ2 before random rounding. Proofs: docs/proofs/p_vec.md.
"""

import bisect
import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import binom

from silodp.privacy.accounting.losses import slack

# Share of δ that pays for noise so far out that a neighbour could not have produced it.
_TAIL = 1e-3


def shift_delta(trials: int, p: float, shift: int, epsilon: float) -> float:
    """Smallest δ for which Bin(n, p) and shift + Bin(n, p) are (ε, δ)-close in both orders; exact.

    The likelihood ratio of the two is monotone, so the worst event is a half-line, and δ grows with the shift.
    """
    if shift == 0:
        return 0.0
    if trials == 0:
        return 1.0
    # P(B ≤ t) − e^ε P(B + k ≤ t); the other order is this one with p and 1 − p exchanged.
    return max(_half_line(trials, chance, shift, epsilon) for chance in {p, 1 - p})


def _half_line(n: int, p: float, shift: int, epsilon: float) -> float:
    def log_ratio(x: int) -> float:
        """ln P(B = x)/P(B = x − k), decreasing in x; ∞ below k."""
        if x < shift:
            return math.inf
        y = x - shift
        binomials = gammaln(y + 1) + gammaln(n - y + 1) - gammaln(x + 1) - gammaln(n - x + 1)
        return float(binomials) + shift * (math.log(p) - math.log1p(-p))

    low = bisect.bisect_left(range(n + 1), True, key=lambda x: log_ratio(x) <= epsilon) - 1
    # The best end moves by one at most where rounding decides.
    ends = np.arange(max(low - 2, -1), min(low + 2, n) + 1)
    return float(np.max(binom.cdf(ends, n, p) - math.exp(epsilon) * binom.cdf(ends - shift, n, p)))


def rounded_moment(moments: np.ndarray, dimension: int, radius: float) -> float:
    """Bound on Σ_j E φ(rounded v_j) for ‖v‖ ≤ radius, φ(k) = moments[k]: min over a of a·radius² + d·β(a)."""

    def total(log_a: float) -> float:
        return float(_rounded_totals(moments[None], np.array([[math.exp(log_a)]]), dimension, radius)[0, 0])

    # Nothing above max m_k/k² + (what one unit of rounding adds) can help.
    steepest = math.log(max(float(np.max(moments[1:] / np.arange(1, len(moments)) ** 2)), 1e-300))
    best = minimize_scalar(total, bounds=(steepest - 2, steepest + 6), method="bounded", options={"xatol": 1e-4})
    return float(min(best.fun, total(steepest), total(steepest + 1e-3)))


def _rounded_totals(moments: np.ndarray, a: np.ndarray, dimension: int, radius: float) -> np.ndarray:
    """a·radius² + d·β(a) for each row of moments (Λ, g + 1) and each of its a (Λ, A); (Λ, A)."""
    k = np.arange(moments.shape[1] - 1)
    rise = np.maximum(np.diff(moments), 0.0)[:, None]
    growth = np.expm1(np.minimum(rise, 50.0))
    at = a[..., None]
    # Between k and k + 1 the moment less a v² is concave in f = v − k; its stationary point is a quadratic's root.
    half, rest = 1 + k * growth, 2 * at * k - growth
    with np.errstate(divide="ignore", invalid="ignore"):
        root = (-at * half + np.sqrt(np.maximum((at * half) ** 2 - 2 * at * growth * rest, 0.0))) / (2 * at * growth)
    f = np.clip(np.nan_to_num(root, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    low = moments[:, None, :-1]
    between = low + np.log1p(f * growth) - at * (k + f) ** 2
    # Where the moment rises by e^50 within a step its upper end at the lower place is bound enough.
    beta = np.where(rise < 50, between, low + rise - at * k**2).max(2)
    beta = np.maximum(beta, np.maximum(moments[:, -1:] - a * len(k) ** 2, 0.0))
    return a * radius**2 + dimension * beta


def vector_delta(trials: int, p: float, levels: int, dimension: int, epsilon: float, tail: float) -> float:
    """Proven δ of d coordinates, each with noise Bin(n, p), for a change of at most `levels` in ℓ2 before rounding.

    `tail` is the δ that may be spent on improbable noise. The result is min over λ of e^{M(λ) − λε} λ^λ/(1+λ)^{1+λ} +
    tail, at most 1; M bounds the log-moment of the losses.
    """
    if dimension == 1:
        return shift_delta(trials, p, levels, epsilon)
    spread = trials * p * (1 - p)
    if spread == 0:
        return 1.0

    def log_bound(log_order: float) -> float:
        order = math.exp(log_order)
        moments = shift_moments(trials, p, levels, np.array([order]), tail / dimension)
        if moments is None:
            return 0.0
        total = rounded_moment(moments[0], dimension, float(levels))
        return total - order * epsilon + slack(order)

    # For Gaussian losses of variance s the best λ is near ε/s − 1/2; s here counts the rounding.
    loss = (levels**2 + dimension / 4) / spread
    centre = math.log(max(epsilon / loss - 0.5, 1.0))
    found = minimize_scalar(log_bound, bounds=(centre - 2, centre + 2), method="bounded", options={"xatol": 0.05})
    return min(1.0, math.exp(min(float(found.fun), 0.0)) + tail)


def vector_moments(trials: int, p: float, levels: int, dimension: int, orders: np.ndarray, tail: float) -> np.ndarray:
    """M(λ) ≥ ln E[e^{λℓ}; good noise] for `orders` λ (Λ,), ℓ the loss of a sum of vectors; ∞ where no noise is good.

    For either order of any neighbours; `tail` is the probability of noise that is not good, in all coordinates
    together.
    """
    moments = shift_moments(trials, p, levels, orders, tail / dimension)
    if moments is None:
        return np.full(len(orders), np.inf)
    if dimension == 1:  # whose rounded shifts are whole numbers up to g
        return moments.max(1)
    steepest = np.maximum(np.max(moments[:, 1:] / np.arange(1, levels + 1) ** 2, axis=1), 1e-300)
    return _rounded_totals(moments, steepest[:, None] * np.exp(_PLACES), dimension, float(levels)).min(1)


def shift_moments(trials: int, p: float, largest: int, orders: np.ndarray, tail: float) -> np.ndarray | None:
    """m_k = ln E[(P(B)/P(B + k))^λ; B in the good set], the larger of ±k, (Λ, largest + 1); None without good set.

    The good set is an interval with probability at least 1 − tail whose points every shift ±k leaves possible.
    """
    low, high = int(binom.ppf(tail / 2, trials, p)), int(binom.isf(tail / 2, trials, p))
    if low < largest or high + largest > trials:
        return None
    # ln of the masses on the good set and `largest` to either side of it. Sums of the ratios of neighbours keep the
    # digits that differences of log-factorials lose.
    x = np.arange(low - largest, high + largest + 1)
    steps = np.log(trials - x[:-1]) - np.log(x[:-1] + 1.0) + math.log(p) - math.log1p(-p)
    log_mass = np.concatenate(([0.0], np.cumsum(steps)))
    mode = int(np.argmax(log_mass))
    log_mass += binom.logpmf(x[mode], trials, p) - log_mass[mode]
    good = log_mass[largest : largest + high - low + 1]
    moments = np.zeros((len(orders), largest + 1))
    for k in range(1, largest + 1):
        for start in {largest + k, largest - k} if p != 0.5 else {largest + k}:
            exponents = good + orders[:, None] * (good - log_mass[start : start + len(good)])
            peak = exponents.max(1)
            total = peak + np.log(np.exp(exponents - peak[:, None]).sum(1))
            moments[:, k] = np.maximum(moments[:, k], total)
    return moments


# Places of a around the largest m_k/k², in logarithms.
_PLACES = np.array([-0.5, -0.2, -0.1, -0.05, 0, 1e-3, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 4])
