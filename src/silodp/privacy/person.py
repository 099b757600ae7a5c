"""ε of a person: what the plan of a silo means for somebody whose records lie in several silos, or several in one.

All records of the person are replaced together and count together in a message (Theorem 1 of docs/accounting.md); the
transcripts of s silos compose.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from silodp.privacy.accounting.accountant import Bracket
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.accounting.profiles import Occurrences, gaussian_occurrences, with_replacement, without_replacement
from silodp.privacy.plan import PrivacyPlan, Release

# Share of δ that occurrences left out of the laws may cost.
_NEGLIGIBLE = 1e-6


def person_epsilon(plan: PrivacyPlan, silos: int = 1, records: int = 1) -> float:
    """Upper ε at the plan's δ for replacing all records of one person: at most m `records` in each of `silos` silos.

    NaN behind a shuffler or with shuffled sums; infinite without noise; ValueError for impossible numbers.
    """
    if silos < 1 or not 1 <= records <= plan.budget.n:
        limits = f"must be at least 1, records at most n = {plan.budget.n}"
        raise ValueError(f"silos = {silos}, records = {records}: {limits}")
    if not plan.private or plan.assumption:
        return math.inf
    if plan.shuffler is not None or plan.shuffled_sum is not None:
        return math.nan
    return composed_epsilon([plan], plan.budget.delta, silos, records)


def composed_epsilon(plans: Sequence[PrivacyPlan], delta: float, silos: int = 1, records: int = 1) -> float:
    """The same for all `plans` of a silo together, one after the other, at δ; infinite for all records of a silo."""
    if any(not plan.private or plan.assumption or records > plan.budget.n for plan in plans):
        return math.inf
    kinds = _pooled([law for plan in plans for law in person_laws(plan, silos, records)])
    if all(len(law.weights) == 2 and law.weights[0] == 0 for law, _ in kinds):
        return gaussian_epsilon(delta, math.sqrt(sum(count * law.shift**2 for law, count in kinds)))
    return Bracket(kinds, delta).upper()


def persons_epsilon(plans: Sequence[PrivacyPlan], silos: int = 1, records: int = 1) -> float:
    """Upper ε for replacing all records of one person, where each silo has one of `plans` and which is not known.

    Different plans are each taken at δ_i/s, and s times the largest ε holds at max δ_i by basic composition (Dwork,
    Rothblum, Vadhan 2010). Infinite for a person with all records of a silo, and for different plans behind a trusted
    sum: there the s silos share one noise, so their transcripts do not compose.
    """
    if records >= min(plan.budget.n for plan in plans) > 1:
        return math.inf
    plans = list(dict.fromkeys(plans))
    if silos == 1 or len(plans) == 1:
        return float(np.max([person_epsilon(plan, silos, records) for plan in plans]))
    if any(plan.trusted_sum is not None for plan in plans):
        return math.inf
    smaller = [replace(plan, budget=replace(plan.budget, delta=plan.budget.delta / silos)) for plan in plans]
    return silos * float(np.max([person_epsilon(plan, 1, records) for plan in smaller]))


def person_laws(plan: PrivacyPlan, silos: int, records: int) -> list[tuple[Occurrences, int]]:
    """(law of the person's occurrences in a message, how many such messages) of every kind; plain Gaussians pooled."""
    seen, M = plan.as_seen_by_adversary, plan.trusted_sum
    # Behind a trusted sum one message holds the batches of all silos that take part.
    messages, batches = (silos, 1) if M is None else (1, min(silos, M))
    kinds = [
        (law, count * messages)
        for release in seen.releases
        if release.count
        for law, count in _laws(plan, release, batches, records)
    ]
    return _pooled(kinds)


def _pooled(kinds: list[tuple[Occurrences, int]]) -> list[tuple[Occurrences, int]]:
    square = sum(count * law.shift**2 for law, count in kinds if law.weights[0] == 0 and len(law.weights) == 2)
    pooled = [(gaussian_occurrences(math.sqrt(square)), 1)] if square else []
    return pooled + [(law, count) for law, count in kinds if law.weights[0] > 0 or len(law.weights) > 2]


def _laws(plan: PrivacyPlan, release: Release, batches: int, records: int) -> Iterator[tuple[Occurrences, int]]:
    """A kind of messages that each hold `batches` batches, as laws of occurrences."""
    n, K, z, delta = plan.budget.n, release.records, release.noise_multiplier, plan.budget.delta
    if release.clipping == "batch_mean":
        # A clipped mean moves once, however many of the person's records are in it; one mean a batch.
        drawn = 1 - (1 - records / n) ** K if release.sampler == "replacement" else 1.0
        weights = functools.reduce(np.convolve, [np.array([1 - drawn, drawn])] * batches)
        law = Occurrences(weights, 0.0, 1 / z) if drawn < 1 else gaussian_occurrences(batches / z)
        yield law, release.count if release.sampler != "disjoint" else min(records, release.count)
    elif release.sampler == "disjoint":
        # Spread over messages the records count √Σ J², which is at most what they count in one.
        yield gaussian_occurrences(batches * min(records, K * release.count) / z), 1
    elif release.sampler == "all":
        yield gaussian_occurrences(batches * records / z), release.count
    elif release.sampler == "subset":
        # Drawn independently in each batch. Theorem 1 asks that draws given k of them can be among those given j ≥ k:
        # so it is within a batch, and between batches as these laws are log-concave (Efron 1965).
        law = without_replacement(n, K, z, records)
        yield replace(law, weights=functools.reduce(np.convolve, [law.weights] * batches)), release.count
    else:
        tail = _NEGLIGIBLE * delta / release.count
        yield with_replacement(n, batches * K, z, tail, records), release.count
