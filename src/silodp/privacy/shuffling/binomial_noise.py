"""Binomial noise on integers: the exact privacy of one shifted coordinate, and a proven bound for vectors.

B ~ Bin(n, p) is added to each coordinate of an integer vector. Whose bits of a shuffled sum are whose is hidden, so
this is all that its server sees. A neighbour's vector differs by an integer shift. In one dimension the worst shift is
the largest. In d dimensions the shift is bounded in ℓ2 before random rounding, and the bound here works with that: it
never costs d times the price of one coordinate. Proofs: docs/shuffling.md.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import binom

# Share of δ that pays for noise so far out that a neighbour could not have produced it.
_TAIL = 1e-3


def shift_delta(trials: int, p: float, shift: int, epsilon: float) -> float:
    """Smallest δ for which Bin(n, p) and shift + Bin(n, p) are (ε, δ)-close in both orders; exact.

    The likelihood ratio of the two is monotone, so the worst event is a half-line, and δ grows with the shift.
    """
    _check(trials, p)
    if shift < 0:
        raise ValueError(f"shift = {shift}: must not be negative")
    if epsilon < 0:
        raise ValueError(f"epsilon = {epsilon}: must not be negative")
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

    low, high = -1, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if log_ratio(middle) > epsilon else (low, middle - 1)
    # The best end moves by one at most where rounding decides.
    ends = np.arange(max(low - 2, -1), min(low + 2, n) + 1)
    return float(np.max(binom.cdf(ends, n, p) - math.exp(epsilon) * binom.cdf(ends - shift, n, p)))


def shift_moments(trials: int, p: float, largest: int, order: float, tail: float) -> np.ndarray | None:
    """m_k = ln E[(P(B)/P(B + k))^λ; B in the good set], the larger of ±k, for k = 0 … `largest`; None without good set.

    The good set is an interval with probability at least 1 − tail whose points every shift ±k leaves possible.
    """
    found = _log_masses(trials, p, largest, tail)
    if found is None:
        return None
    log_mass, width = found
    good = log_mass[largest : largest + width]
    moments = np.zeros(largest + 1)
    for k in range(1, largest + 1):
        for start in {largest + k, largest - k} if p != 0.5 else {largest + k}:
            exponents = good + order * (good - log_mass[start : start + len(good)])
            peak = exponents.max()
            moments[k] = max(moments[k], peak + math.log(np.exp(exponents - peak).sum()))
    return moments


def _log_masses(trials: int, p: float, largest: int, tail: float) -> tuple[np.ndarray, int] | None:
    """ln of the masses on the good set and `largest` to either side of it, and the good set's size, as above."""
    _check(trials, p)
    low, high = int(binom.ppf(tail / 2, trials, p)), int(binom.isf(tail / 2, trials, p))
    if low < largest or high + largest > trials:
        return None
    x = np.arange(low - largest, high + largest + 1)
    steps = np.log(trials - x[:-1]) - np.log(x[:-1] + 1.0) + math.log(p) - math.log1p(-p)
    # Sums of the ratios of neighbours keep the digits that differences of log-factorials lose.
    log_mass = np.concatenate(([0.0], np.cumsum(steps)))
    mode = int(np.argmax(log_mass))
    log_mass += binom.logpmf(x[mode], trials, p) - log_mass[mode]
    return log_mass, high - low + 1


def rounded_moment(moments: np.ndarray, dimension: int, radius: float) -> float:
    """Upper bound on Σ_j ln E exp(m(|Δ_j|)) over real shifts v, ‖v‖₂ ≤ radius, v_j rounded at random to Δ_j next to it.

    ln E exp(m(|Δ_j|)) ≤ a v_j² + β(a) for any a, so the sum is at most a·radius² + dβ(a); a is chosen numerically.
    """
    k = np.arange(len(moments) - 1)
    rise = np.maximum(np.diff(moments), 0.0)
    growth = np.expm1(np.minimum(rise, 50.0))

    def total(log_a: float) -> float:
        a = math.exp(log_a)
        # Between k and k + 1 the moment less a v² is concave in f = v − k; its stationary point is a quadratic's root.
        half, rest = 1 + k * growth, 2 * a * k - growth
        with np.errstate(divide="ignore", invalid="ignore"):
            root = (-a * half + np.sqrt(np.maximum((a * half) ** 2 - 2 * a * growth * rest, 0.0))) / (2 * a * growth)
        f = np.clip(np.nan_to_num(root, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
        between = moments[:-1] + np.log1p(f * growth) - a * (k + f) ** 2
        # Where the moment rises by e^50 within a step its upper end at the lower place is bound enough.
        beta = float(np.max(np.where(rise < 50, between, moments[:-1] + rise - a * k**2)))
        beta = max(beta, float(moments[-1] - a * len(k) ** 2), 0.0)
        return a * radius**2 + dimension * beta

    # Nothing above max m_k/k² + (what one unit of rounding adds) can help.
    steepest = math.log(max(float(np.max(moments[1:] / np.arange(1, len(moments)) ** 2)), 1e-300))
    found = minimize_scalar(total, bounds=(steepest - 2, steepest + 6), method="bounded", options={"xatol": 1e-4})
    return float(min(found.fun, total(steepest), total(steepest + 1e-3)))


def vector_delta(trials: int, p: float, levels: int, dimension: int, epsilon: float, tail: float) -> float:
    """Proven δ of d coordinates, each with noise Bin(n, p), for a change of at most `levels` in ℓ2 before rounding.

    Args:
        trials: n, noise bits of all participants in one coordinate.
        p: probability of a noise bit.
        levels: g, bound on a change in ℓ2 and so in every coordinate, in units of the rounding.
        dimension: d.
        epsilon: ε ≥ 0.
        tail: δ that may be spent on improbable noise; a thousandth of the wanted δ is a good choice.

    Returns:
        min over λ of e^{M(λ) − λε} λ^λ/(1+λ)^{1+λ} + tail, at most 1; M bounds the log-moment of the losses.
    """
    if dimension == 1:
        return shift_delta(trials, p, levels, epsilon)
    spread = trials * p * (1 - p)
    if spread == 0:
        return 1.0

    def log_bound(log_order: float) -> float:
        order = math.exp(log_order)
        moments = shift_moments(trials, p, levels, order, tail / dimension)
        if moments is None:
            return 0.0
        total = rounded_moment(moments, dimension, float(levels))
        return total - order * epsilon + order * math.log(order) - (1 + order) * math.log1p(order)

    # For Gaussian losses of variance s the best λ is near ε/s − 1/2; s here counts the rounding.
    loss = (levels**2 + dimension / 4) / spread
    centre = math.log(max(epsilon / loss - 0.5, 1.0))
    found = minimize_scalar(log_bound, bounds=(centre - 2, centre + 2), method="bounded", options={"xatol": 0.05})
    return min(1.0, math.exp(min(float(found.fun), 0.0)) + tail)


def vector_moments(trials: int, p: float, levels: int, dimension: int, orders: np.ndarray, tail: float) -> np.ndarray:
    """M(λ) ≥ ln E[e^{λℓ}; good noise] for each λ, ℓ the privacy loss of a sum of vectors; ∞ where no noise is good.

    Args:
        trials, p, levels, dimension: as in `vector_delta`.
        orders: (Λ,) λ > 0.
        tail: of noise that is not good, in all coordinates together, whatever the vectors.

    Returns:
        (Λ,) for either order of any neighbours.
    """
    found = _log_masses(trials, p, levels, tail / dimension)
    if found is None:
        return np.full(len(orders), np.inf)
    log_mass, width = found
    good = log_mass[levels : levels + width]
    moments = np.zeros((len(orders), levels + 1))
    for k in range(1, levels + 1):
        for start in {levels + k, levels - k} if p != 0.5 else {levels + k}:
            exponents = good + orders[:, None] * (good - log_mass[start : start + width])
            peak = exponents.max(1)
            total = peak + np.log(np.exp(exponents - peak[:, None]).sum(1))
            moments[:, k] = np.maximum(moments[:, k], total)
    # One coordinate's rounded shifts are whole numbers up to g.
    return moments.max(1) if dimension == 1 else _rounded_moments(moments, dimension, float(levels))


# Places of a around the largest m_k/k², in logarithms.
_PLACES = np.array([-0.5, -0.2, -0.1, -0.05, 0, 1e-3, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 4])


def _rounded_moments(moments: np.ndarray, dimension: int, radius: float) -> np.ndarray:
    """`rounded_moment` of each row (Λ, g + 1), with a from a few places in place of a search; (Λ,)."""
    k = np.arange(moments.shape[1] - 1)
    rise = np.maximum(np.diff(moments), 0.0)
    growth = np.expm1(np.minimum(rise, 50.0))[:, None]
    steepest = np.maximum(np.max(moments[:, 1:] / np.arange(1, len(k) + 1) ** 2, axis=1), 1e-300)
    a = (steepest[:, None] * np.exp(_PLACES))[..., None]
    half, rest = 1 + k * growth, 2 * a * k - growth
    with np.errstate(divide="ignore", invalid="ignore"):
        root = (-a * half + np.sqrt(np.maximum((a * half) ** 2 - 2 * a * growth * rest, 0.0))) / (2 * a * growth)
    f = np.clip(np.nan_to_num(root, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    low = moments[:, None, :-1]
    between = low + np.log1p(f * growth) - a * (k + f) ** 2
    beta = np.where(rise[:, None] < 50, between, low + rise[:, None] - a * k**2).max(2)
    beta = np.maximum(beta, np.maximum(moments[:, -1:] - a[..., 0] * len(k) ** 2, 0.0))
    return np.min(a[..., 0] * radius**2 + dimension * beta, axis=1)


def _check(trials: int, p: float) -> None:
    if trials < 0:
        raise ValueError(f"trials = {trials}: must not be negative")
    if not 0 < p < 1:
        raise ValueError(f"p = {p}: must lie strictly between 0 and 1")
