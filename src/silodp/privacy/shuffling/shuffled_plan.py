"""Plans of runs whose sums go through P_vec, a record's clipped gradient as one participant, and what is proven.

Non-convex paper, Algorithms 7 to 10 over Algorithms 4 and 5. Where no record is drawn twice in a run the sums compose
in parallel; else records are drawn without replacement in a round (`sum_composition`).
"""

import functools
import math
from dataclasses import replace

from silodp.privacy.accounting import DeliveredEpsilon
from silodp.privacy.plan import PrivacyPlan, Release
from silodp.privacy.shuffling.p_vec import ShuffledSums, SumParameters, calibrate
from silodp.privacy.shuffling.sum_composition import SumRelease, calibrated_sums, composed_lower, composed_upper


def shuffled_plan(plan: PrivacyPlan, M: int, dimension: int) -> PrivacyPlan:
    """The private plan of an algorithm for sums, with its sums of M silos and d coordinates sent by P_vec: (ε,
    δ)-private.

    Its releases' noise is the largest standard deviation of P_vec as a silo's share.
    """
    if plan.budget.epsilon is None:
        raise ValueError(f"plan of {plan.algorithm}: has no epsilon, which a shuffled sum needs")
    for release in plan.releases:
        if release.clipping != "record":
            raise ValueError(f"summation: 'shuffled': must be ideal where clipping is {release.clipping}")
    once = _drawn_once(plan)
    if once is not None:
        sums: tuple[SumParameters, ...] = (
            _calibrated(M * once.records, dimension, plan.budget.epsilon, plan.budget.delta),
        )
    else:
        sizes = tuple((M * kind.records, kind.count, kind.records / plan.budget.n) for kind in plan.releases)
        sums = _calibrated_sums(sizes, dimension, plan.budget.epsilon, plan.budget.delta)
    releases = tuple(
        replace(
            release,
            noise=math.sqrt(parameters.variance(2.0 * release.gradients) / M) / release.records,
            sampler=release.sampler if release.sampler == "disjoint" else "subset",
        )
        for release, parameters in zip(plan.releases, sums, strict=True)
    )
    kinds = tuple((release.kind, parameters) for release, parameters in zip(releases, sums, strict=True))
    return replace(plan, releases=releases, trusted_sum=M, shuffled_sum=ShuffledSums(kinds, dimension))


def sent_bits(plan: PrivacyPlan) -> float:
    """Bits that a silo sends in the whole run, d(g + b) for each record of each message; NaN without shuffled sums."""
    sums = plan.shuffled_sum
    if sums is None:
        return math.nan
    return float(sum(one.count * one.records * sums[one.kind].bits(sums.dimension) for one in plan.releases))


def delivered_shuffled_sums(plan: PrivacyPlan) -> DeliveredEpsilon:
    """Proven ε of a plan with shuffled sums against the server, which sees the shuffled bits of every round.

    `lower`: no guarantee for these sums can be below it, if the server may ask gradients at any point.
    """
    sums, n, delta = plan.shuffled_sum, plan.budget.n, plan.budget.delta
    if sums is None:
        raise ValueError(f"plan of {plan.algorithm}: has no shuffled sum")
    once = _drawn_once(plan)
    if once is not None:
        lower, upper = sums[once.kind].epsilon(sums.dimension, delta)
        how = "each record in one sum at most"
    elif any(one.sampler != "subset" for one in plan.releases):
        # A record drawn J times is J participants; the bound of a sum covers one.
        lower, upper, how = 0.0, math.inf, "none: a record may be several participants of a sum"
    else:
        kinds = [SumRelease(sums[one.kind], one.count, one.records / n) for one in plan.releases]
        upper = composed_upper(kinds, sums.dimension, delta)
        lower = composed_lower(kinds, delta, step=min(max(1e-4, upper * 1e-4), 1e-2))
        how = f"composition of {sum(one.count for one in plan.releases)} sums over records drawn without replacement"
    how = f"seen by the server: shuffled sums P_vec, proven bound; {how}"
    return DeliveredEpsilon(lower, (lower + upper) / 2, upper, how)


# Up to seconds each, and every trial asks.
_calibrated = functools.cache(calibrate)
_calibrated_sums = functools.cache(calibrated_sums)


def _drawn_once(plan: PrivacyPlan) -> Release | None:
    """The one kind of message, if its records are never drawn again in a run."""
    sent = [release for release in plan.releases if release.count]
    return sent[0] if len(sent) == len(plan.releases) == 1 and sent[0].sampler == "disjoint" else None
