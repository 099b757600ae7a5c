"""The lower end where few draws decide, which no lattice resolves: counted draws (docs/accounting.md, "Few draws")."""

import math

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import binom

from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import Occurrences

_TILTS = np.geomspace(1e-16, 1e3, 600)
_LEVELS = -np.log1p(-np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9]))
_MOST_DRAWS = 40
_EXACT_COUNTS = 1 << 50  # of releases: above it binomial tails lose their digits


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
