"""Ends of ε where no lattice resolves the losses: moments and counted draws (docs/accounting.md, "Extremes").

Every number is a closed form that keeps its relative precision however many releases there are.
"""

import math

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import binom

from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.accounting.profiles import Occurrences

_NEAR_ONE = 1 + np.geomspace(1e-15, 1.0, 121)
_REAL = np.concatenate([[3.0], np.geomspace(4.0, 1e15, 400)])
_WHOLE = np.unique(np.round(np.concatenate([np.arange(2.0, 65), np.geomspace(65, 4096, 60)])))
_MATRIX = 500  # occurrences up to which moments look at each pair of them
_TILTS = np.geomspace(1e-16, 1e3, 600)
_LEVELS = -np.log1p(-np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9]))
_MOST_DRAWS = 40
_EXACT_COUNTS = 1 << 50  # of releases: above it binomial tails lose their digits


def moment_epsilon(kinds: list[tuple[Occurrences, int]], delta: float) -> float:
    """Upper ε at δ by composition of moments (Theorem 5), or with the draws known (Lemma 6): the smaller one.

    `kinds` are (law of occurrences, how many releases); what a law leaves out is charged to δ.
    """
    delta -= sum(count * law.tail for law, count in kinds)
    if delta <= 0:
        return math.inf
    orders = np.concatenate([_NEAR_ONE, _WHOLE, _REAL])
    moments = np.sum([count * _log_moments(law) for law, count in kinds], axis=0)
    rate = orders - 1
    with np.errstate(invalid="ignore", over="ignore"):
        bounds = (moments - math.log(delta) + rate * np.log(rate) - orders * np.log(orders)) / rate
    return max(min(float(np.nanmin(bounds)), _known_draws(kinds, delta)), 0.0)


def _log_moments(law: Occurrences) -> np.ndarray:
    """ln E_Q (P/Q)^α at most, of one release, at the orders α of `_NEAR_ONE`, `_WHOLE` and `_REAL`."""
    s, p = law.shift, law.weights / math.fsum(law.weights)
    orders = np.concatenate([_NEAR_ONE, _WHOLE, _REAL])
    if p[0] == 0 and len(p) == 2:
        return orders * (orders - 1) / 2 * s * s
    with np.errstate(over="ignore", invalid="ignore"):
        second, third, fourth, eighth = (_absolute_moment(p, s, k) for k in (2, 3, 4, 8))
        once = len(p) == 2
        if once:
            second = min(second, p[1] ** 2 * np.expm1(s * s))
        a = _NEAR_ONE
        near = np.minimum((a - 1) * second, a * (a - 1) * (second / 2 + third / 6 + fourth / 3))
        a = _REAL
        times = np.arange(len(p))[:, None]
        log_double = logsumexp(a * (2 * a - 1) * (times * s) ** 2, b=p[:, None], axis=0)
        rest = np.exp((math.log(eighth) if eighth > 0 else -math.inf) / 2 + np.logaddexp(0.0, log_double) / 2)
        real = a * (a - 1) / 2 * second + a * (a - 1) * (a - 2) / 6 * (third + np.maximum(a - 3, 0) / 4 * rest)
        whole = _drawn_once(float(p[1]), s) if once else np.full(len(_WHOLE), np.inf)
    return np.nan_to_num(np.concatenate([np.log1p(near), whole, np.log1p(real)]), nan=np.inf, posinf=np.inf)


def _absolute_moment(p: np.ndarray, s: float, k: int) -> float:
    """E_Q |P/Q − 1|^k at most, of one release whose record is drawn j times with probability p_j."""
    times = np.arange(len(p))
    spread = np.maximum(times, times[:, None]) if len(p) <= _MATRIX else np.full((1, len(p)), times[-1])
    square = (k - 1) * (spread * s) ** 2
    norms = (p * times * np.sqrt(1 + square) * np.exp(square / 2)).sum(1) * s * math.sqrt(k - 1)
    # 0 · ∞, where a chance is below the smallest float and a moment above the largest, is no moment at most.
    return float(np.nan_to_num((p if len(norms) > 1 else np.ones(1)) @ norms**k, nan=np.inf, posinf=np.inf))


def _drawn_once(q: float, s: float) -> np.ndarray:
    """ln E_B (A/B)^α at the orders of `_WHOLE`, A = (1−q)N(0,1) + qN(s,1) and B = N(0,1)."""
    found = []
    for order in _WHOLE:
        k = np.arange(2, order + 1)
        log_choose = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
        square = k * (k - 1) * s * s / 2
        log_gain = np.where(square > 30, square, np.log(np.expm1(np.minimum(square, 30))))
        log_rest = (order - k) * math.log1p(-q) if q < 1 else np.where(k == order, 0.0, -math.inf)
        found.append(np.logaddexp(0.0, 1e-9 + logsumexp(log_choose + k * math.log(q) + log_rest + log_gain)))
    return np.array(found)


def _known_draws(kinds: list[tuple[Occurrences, int]], delta: float) -> float:
    """Upper ε as if all draws were known: of a sum of squares that is exceeded with probability δ/2 at most."""
    largest = max(law.shift * law.times[-1] for law, _ in kinds)
    tilts = _TILTS / largest**2
    total = np.zeros(len(tilts))
    for law, count in kinds:
        square = (np.arange(len(law.weights)) * law.shift) ** 2
        with np.errstate(over="ignore"):
            total += count * np.log1p(np.expm1(tilts[:, None] * square) @ law.weights)
    bound = float(np.min((total + math.log(2 / delta)) / tilts))
    most = sum(count * (float(law.times[-1]) * law.shift) ** 2 for law, count in kinds)
    return min(gaussian_epsilon(delta / 2, math.sqrt(bound)), gaussian_epsilon(delta, math.sqrt(most)))


def drawn_epsilon(kinds: list[tuple[Occurrences, int]], delta: float) -> float:
    """Lower ε at δ of the plain pair: from the sum of all releases, or from how many of them are large.

    With probability π the record is drawn k times or more, and then the sum is a Gaussian release. It grows as δ falls.
    """
    best = max(_of_sum(kinds, delta), 0.0)
    for law, count in kinds:
        if law.weights[0] > 0 and count <= _EXACT_COUNTS:
            best = max(best, _of_large(law, count, delta))
    return best


def _of_sum(kinds: list[tuple[Occurrences, int]], delta: float) -> float:
    squares, sampled = 0.0, []
    for law, count in kinds:
        if law.weights[0] == 0 and len(law.weights) == 2:
            squares += count * law.shift**2
        else:
            sampled.append((law, count))
    # ln P(J_1 + … + J_R < k) ≤ R ln E e^(−tJ) + tk for every t.
    fewest = []
    for law, count in sampled:
        times = np.arange(len(law.weights))
        gain = -count * np.log1p(np.expm1(-_TILTS[:, None] * times) @ law.weights)
        least = np.max((gain[:, None] - _LEVELS) / _TILTS[:, None], axis=0)
        chances = -np.expm1(-_LEVELS)
        none = -np.expm1(count * np.log1p(-np.sum(law.weights[1:])))
        fewest.append((np.append(least, 1.0), np.append(chances, none), law.shift, count))
    best = gaussian_epsilon(delta, math.sqrt(squares)) if squares else 0.0
    for level in range(len(_LEVELS) + 1 if sampled else 0):
        chance, square = 1.0, squares
        for least, chances, shift, count in fewest:
            if least[level] > 0:
                chance *= float(chances[level])
                square += (shift * float(least[level])) ** 2 / count
        if delta < chance and square > 0:
            best = max(best, math.log(chance) + gaussian_epsilon(delta / chance, math.sqrt(square)))
    return best


def _of_large(law: Occurrences, count: int, delta: float) -> float:
    """From the event that c releases or more lie above t standard deviations: e^ε ≥ (P(event) − δ)/Q(event)."""
    reach = float(law.shift) * np.arange(1, min(len(law.weights), _MOST_DRAWS))
    near = np.concatenate([reach + gap for gap in (-6.0, -3.0, -2.0, -1.0, 0.0)])
    t = np.unique(np.concatenate([np.linspace(0.0, 40.0, 161), near[near > 0]]))
    means = np.arange(len(law.weights))[:, None] * law.shift
    log_p = logsumexp(log_ndtr(means - t), b=law.weights[:, None], axis=0)
    c = np.arange(1, min(count, _MOST_DRAWS) + 1)[:, None]
    hit = binom.sf(c - 1, count, np.exp(log_p)) * (1 - 1e-9)
    log_ways = gammaln(count + 1) - gammaln(c + 1) - gammaln(count - c + 1) if count < 1e6 else c * math.log(count)
    log_miss = log_ways + c * log_ndtr(-t)
    with np.errstate(divide="ignore"):
        exact = np.log(binom.sf(c - 1, count, np.exp(log_ndtr(-t))))
        log_miss = np.where(exact > -600, np.minimum(exact, log_miss), np.minimum(log_miss, 0.0))
        return float(np.max(np.log(np.maximum(hit - delta, 0.0)) - log_miss))
