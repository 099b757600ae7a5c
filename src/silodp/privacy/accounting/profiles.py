"""What one noisy minibatch can reveal about one record: bounds that hold for every silo, data set and loss.

The replaced record is among the drawn J times with probability p_J, and each occurrence moves the mean by at most
`shift` standard deviations of the noise. The argument stands in docs/accounting.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom, hypergeom

from silodp.privacy.accounting.mechanisms import gaussian_log_profile

_NEWTON_STEPS = 50
_NEWTON_CLOSE = 1e-12  # relative to the root; steps shrink quadratically, so the last is far below


@dataclass(frozen=True)
class Occurrences:
    """The law of how often the replaced record is drawn, and how far each time moves the mean.

    `weights` (J_max + 1,) are the probabilities of 0, …, J_max occurrences, `tail` that of more; `shift` is one
    occurrence's sensitivity over the noise's standard deviation.
    """

    weights: np.ndarray
    tail: float
    shift: float

    @property
    def times(self) -> np.ndarray:
        """(J_max,) the occurrences 1, …, J_max."""
        return np.arange(1, len(self.weights))

    @cached_property
    def log_weights(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)


def gaussian_occurrences(mu: float) -> Occurrences:
    """Every record always takes part once: the Gaussian mechanism with sensitivity over noise μ."""
    return Occurrences(np.array([0.0, 1.0]), 0.0, mu)


def at_most_once(share: float, noise_multiplier: float) -> Occurrences:
    """The record is drawn with probability `share`, and never twice: K/n for K of n without replacement."""
    return Occurrences(np.array([1 - share, share]), 0.0, 1 / noise_multiplier)


def with_replacement(records: int, drawn: int, noise_multiplier: float, tail: float, together: int = 1) -> Occurrences:
    """K of n records drawn with replacement: J ~ Bin(K, m/n), cut where more occurrences have probability ≤ `tail`.

    `together` is m, records that are replaced together (one person's); J then counts draws of any of them.
    """
    mean, share = drawn * together / records, together / records
    times = np.arange(min(drawn, math.ceil(mean + 40 * math.sqrt(mean) + 400)) + 1)
    beyond = binom.sf(times, float(drawn), share)
    last = max(int(np.argmax(beyond <= tail)), 1)
    return Occurrences(binom.pmf(times[: last + 1], float(drawn), share), float(beyond[last]), 1 / noise_multiplier)


def without_replacement(records: int, drawn: int, noise_multiplier: float, together: int) -> Occurrences:
    """K of n records drawn without replacement, m of them replaced together: J is hypergeometric."""
    weights = hypergeom.pmf(np.arange(min(drawn, together) + 1), records, together, drawn)
    return Occurrences(weights, 0.0, 1 / noise_multiplier)


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
