"""Plans of runs whose sums go through P_vec, a record's clipped gradient as one participant, and what is proven.

Non-convex paper, Algorithm 7 over Algorithms 4 and 5. One sum has a proven δ(ε) (`shuffle_sums`). Where no record is
drawn twice in a run the sums compose in parallel, else by the optimal composition of (ε, δ) guarantees, which holds
for adaptive sums. That silos or records are drawn is not counted in anyone's favour (docs/errata.md).
"""

import functools
import math
from dataclasses import dataclass, replace

from silodp.privacy.accounting import DeliveredEpsilon
from silodp.privacy.plan import PrivacyPlan, Release
from silodp.privacy.shuffle_sums import SumParameters, calibrate


@dataclass(frozen=True)
class ShuffledSums:
    """How a run's sums are sent: numbers of P_vec for the M·K vectors of a round, each of d coordinates."""

    parameters: SumParameters
    dimension: int

    def bits_per_silo(self, records: int) -> int:
        """Bits that a silo sends in a round in which it draws K `records`; labels of coordinates are not counted."""
        return records * self.parameters.bits(self.dimension)


def shuffled_plan(plan: PrivacyPlan, M: int, dimension: int) -> PrivacyPlan:
    """The plan with its sums sent by P_vec, (ε, δ)-private as proven over the whole run.

    Args:
        plan: private, with one kind of message; "disjoint" records (SDP Prox-SGD).
        M: silos in a round, which all draw K records.
        dimension: d.

    Returns:
        The plan with `shuffled_sum`; its release's noise is the largest standard deviation of P_vec as a silo's share.
    """
    if plan.budget.epsilon is None:
        raise ValueError(f"plan of {plan.algorithm}: has no epsilon, which a shuffled sum needs")
    release = _sent(plan)
    if release.sampler != "disjoint":
        raise ValueError(f"summation: 'shuffled': must be ideal for {plan.algorithm}, which draws a record repeatedly")
    found = _calibrated(M * release.records, dimension, plan.budget.epsilon, plan.budget.delta)
    share = math.sqrt(found.variance(2.0 * release.gradients) / M) / release.records
    return replace(
        plan,
        releases=(replace(release, noise=share),),
        trusted_sum=M,
        shuffled_sum=ShuffledSums(found, dimension),
    )


def delivered_shuffled_sums(plan: PrivacyPlan) -> DeliveredEpsilon:
    """Proven ε of a plan with shuffled sums against the server, which sees the shuffled bits of every round.

    `lower` is a guarantee's least ε for one of the sums alone.
    """
    sums, release, delta = plan.shuffled_sum, _sent(plan), plan.budget.delta
    if sums is None:
        raise ValueError(f"plan of {plan.algorithm}: has no shuffled sum")
    lower, upper = sums.parameters.epsilon(sums.dimension, delta)
    if release.sampler == "disjoint":
        how = "each record in one sum at most"
    elif release.sampler == "all":
        upper = composed(sums, release.count, delta)
        how = f"optimal composition of {release.count} sums"
    else:
        # A record drawn J times is J participants; the bound of one sum covers one.
        upper, how = math.inf, "none: a record may be several participants of a sum"
    how = f"seen by the server: shuffled sums P_vec, proven bound; {how}"
    return DeliveredEpsilon(lower, (lower + upper) / 2, upper, how)


def composed(sums: ShuffledSums, count: int, delta: float) -> float:
    """Proven ε at δ of `count` adaptive sums: each (ε₁, δ₁)-private, composed optimally; the best of a few δ₁."""
    from dp_accounting.pld import common, privacy_loss_distribution  # slow to import

    best = math.inf
    for share in (0.1, 0.5, 1.0):
        one = share * delta / count
        epsilon = sums.parameters.epsilon(sums.dimension, one)[1]
        if math.isinf(epsilon):
            continue
        best = min(best, count * epsilon)  # basic composition: δ₁·count ≤ δ
        pair = common.DifferentialPrivacyParameters(epsilon, one)
        loss = privacy_loss_distribution.from_privacy_parameters(pair, value_discretization_interval=1e-4)
        best = min(best, float(loss.self_compose(count).get_epsilon_for_delta(delta)))
    return best


_calibrated = functools.cache(calibrate)  # half a second each, and every trial asks


def _sent(plan: PrivacyPlan) -> Release:
    sent = [release for release in plan.releases if release.count]
    if len(sent) != 1 or sent[0].clipping != "record":
        raise ValueError(f"summation: 'shuffled': must be ideal for {plan.algorithm}: it needs one kind of message")
    return sent[0]
