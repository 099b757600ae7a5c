"""How often the records in question are in each message of a plan, how far each time moves it, and what that reveals.

The one way from plans to ε: for a record or a person, of a run or of all lines of a ledger. What a message reveals is
bounded for every silo, data set and loss (docs/accounting.md).
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom, hypergeom

from silodp.privacy.accounting.mechanisms import gaussian_log_profile
from silodp.privacy.plan import PrivacyPlan, Release, check_messages

# Share of δ that occurrences left out of the laws may cost.
_NEGLIGIBLE = 1e-6
# Noise multipliers of messages on all records, and of messages on drawn ones; K/n with replacement, at most.
_PLAIN, _SAMPLED, _OVERDRAWN = (1e-100, 1e100), (1e-6, 1e12), 64

_NEWTON_STEPS = 50
_NEWTON_CLOSE = 1e-12  # relative to the root; steps shrink quadratically, so the last is far below

How = Literal["all", "with", "without"]


@dataclass(frozen=True)
class Occurrences:
    """The law of how often the records in question are drawn, and how far each time moves the mean.

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


class Whom(NamedTuple):
    """Whose records are replaced together: at most `records` in each of `silos` silos."""

    silos: int = 1
    records: int = 1


RECORD = Whom()


class Draws(NamedTuple):
    """A kind of message: K of n records drawn "with" or "without" replacement, m of them in question, in b batches.

    z is σ over what one occurrence moves. "all": always once, with z for all records and batches together.
    """

    how: How
    n: int
    K: float
    z: float
    m: int = 1
    b: int = 1

    def law(self, tail: float) -> Occurrences:
        """Its law of occurrences, if not "all", which may leave out the probability `tail`."""
        if self.how == "with":
            return with_replacement(self.n, self.b * int(self.K), self.z, tail, self.m)
        if self.m == self.b == 1:
            return at_most_once(self.K / self.n, self.z)
        # Drawn independently in each batch. Theorem 1 asks that draws given k of them can be among those given j ≥ k:
        # so it is within a batch, and between batches as these laws are log-concave (Efron 1965).
        law = without_replacement(self.n, int(self.K), self.z, self.m)
        return replace(law, weights=functools.reduce(np.convolve, [law.weights] * self.b))


# Kinds of messages, and how many of each.
Counts = dict[Draws, int]


def draws(how: How, n: int, K: float, z: float, m: int = 1, b: int = 1) -> Draws:
    """The simplest form of the draws; ValueError for what the accountant cannot count."""
    if n < 1 or not K > 0 or (how != "with" and n < K):
        raise ValueError(f"sample of {K} out of {n} records: needs 0 ≤ K ≤ n and n ≥ 1 (K > n only replaced)")
    if _OVERDRAWN * n < K:
        raise ValueError(f"sample of {K} out of {n} records: must be at most {_OVERDRAWN} n with replacement")
    if how != "all" and n == m:
        how, z = "all", z / (b * K)
    elif how == "without" and n == K:
        how, z = "all", z / (b * m)
    elif how == "with" and K == m == b == 1:
        how = "without"
    least, most = _PLAIN if how == "all" else _SAMPLED
    if 0 < z < least or most < z < math.inf or not z >= 0:
        raise ValueError(f"noise multiplier = {z}: must be 0, infinite or in [{least:g}, {most:g}]")
    return Draws("all", 1, 1, z) if how == "all" else Draws(how, n, K, z, m, b)


def counts_of(
    plans: Sequence[PrivacyPlan], whom: Whom = RECORD, whole: Callable[[float], int] = math.ceil
) -> Counts | None:
    """All messages of one silo's runs by the plans, each as the adversary sees it; None where nothing is proven.

    `whole` rounds a chance that is no whole number of records out of n to one: up for ε from above.
    """
    counts: Counts = {}
    for plan in plans:
        if not plan.private or plan.assumption or whom.records > plan.budget.n:
            return None
        # Behind a trusted sum one message holds the batches of all silos that take part.
        M = plan.trusted_sum
        messages, batches = (whom.silos, 1) if M is None else (1, min(whom.silos, M))
        for release in _counted(plan.as_seen_by_adversary, whom):
            for one, count in _draws_of(plan.budget.n, release, batches, whom.records, whole):
                if one.z == 0:
                    return None
                if math.isfinite(one.z):
                    counts[one] = counts.get(one, 0) + count * messages
    return counts


def _counted(plan: PrivacyPlan, whom: Whom) -> list[Release]:
    """The kinds that are sent; of parts, which share no record, one record counts in the part that tells most alone."""
    sent = [release for release in plan.releases if release.count]
    parts = [release for release in sent if release.part is not None]
    worst = max(parts, key=lambda part: part.count / part.noise_multiplier**2, default=None)
    return [release for release in sent if release.part is None or whom != RECORD or release is worst]


def _draws_of(
    n: int, release: Release, batches: int, records: int, whole: Callable[[float], int]
) -> Iterator[tuple[Draws, int]]:
    K, z, count = release.records, release.noise_multiplier, release.count
    mean_clipped = release.clipping == "batch_mean"  # a message that moves once, however many of the records are in it
    if release.sampler == "disjoint":
        # Spread over messages the records count √Σ J², which is at most what they count in one.
        moved, times = (1, min(records, count)) if mean_clipped else (min(records, K * count), 1)
        yield draws("all", 1, 1, z / (batches * moved)), times
    elif release.sampler == "all":
        yield draws("all", 1, 1, z / (batches * (1 if mean_clipped else records))), count
    elif mean_clipped and release.sampler == "replacement":
        # As one record that is drawn without replacement, with the probability that any of them is.
        drawn = whole(n * -math.expm1(K * math.log1p(-records / n))) if records < n else n
        if drawn:
            yield draws("without", n, drawn, z, 1, batches), count
    elif mean_clipped and records > 1:
        yield draws("all", 1, 1, z / batches), count
    else:
        how: How = "without" if release.sampler == "subset" else "with"
        yield draws(how, n, K, z, records, batches), count


def laws_of(counts: Counts, delta: float, silos: int = 0) -> list[tuple[Occurrences, int]]:
    """(law of occurrences, how many messages) of every kind; plain Gaussians are pooled, which is exact.

    All laws together leave out a negligible share of δ; of several `silos` each kind leaves it out in each.
    """
    mu, total = gaussian_mu_of(counts), max(sum(counts.values()), 1)
    pooled = [(gaussian_occurrences(mu), 1)] if mu > 0 else []
    check_messages(total)
    drawn = [(one, count) for one, count in counts.items() if one.how != "all"]
    return pooled + [
        (one.law(_NEGLIGIBLE * delta / (count // silos if silos else total)), count) for one, count in drawn
    ]


def gaussian_mu_of(counts: Counts) -> float:
    """μ of all messages on all records together: √Σ 1/z²."""
    return math.sqrt(sum(count / one.z**2 for one, count in counts.items() if one.how == "all"))


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
