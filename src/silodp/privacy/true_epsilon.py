"""Both ends of the true ε of a silo's transcript at δ, from below and from above (proofs: docs/accounting.md).

Guarantee: (ε, δ)-DP under replacing one record of one silo, against an adversary who sees every release and knows all
other records (adaptive composition). Records are drawn afresh and in secret for every release; that silos are drawn
earns no credit. Noise is treated as exact real Gaussian noise. The upper end holds for every silo, data set and loss
with clipped gradients; two neighbouring silos that can be written down reach the lower one.
"""

import math
from collections.abc import Sequence

from silodp.privacy.accounting.accountant import (
    DeliveredEpsilon,
    end_of_round_epsilon,
    ends_of,
    summed_steps,
    upper_of,
)
from silodp.privacy.accounting.last_iterate import last_iterate_epsilon
from silodp.privacy.message_counts import RECORD, Whom, counts_of
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.shuffling.shuffled_gaussian import delivered_shuffled
from silodp.privacy.shuffling.shuffled_plan import delivered_shuffled_sums


def ends(plans: Sequence[PrivacyPlan], whom: Whom = RECORD) -> DeliveredEpsilon:
    """Both ends at the plans' largest δ for what the adversary of their claim sees of one silo's runs by all of them.

    A single plan may be one that a shuffler or P_vec hides, or whose last local iterates alone are seen.
    """
    (first, *more), delta = plans, max(plan.budget.delta for plan in plans)
    if first.is_shuffled:
        return delivered_shuffled_sums(first) if first.shuffler is None else delivered_shuffled(first)
    if not more and whom == RECORD and first.sees_last_iterates:
        (step,) = first.releases
        arguments = step.steps, step.count // step.steps, first.budget.n, step.noise_multiplier, delta
        bracket = end_of_round_epsilon(*arguments)
        upper = min(bracket.upper, last_iterate_epsilon(*arguments))
        return DeliveredEpsilon.between(bracket.lower, upper, "last local iterate of contracted steps")
    counts, below = counts_of(plans, whom), counts_of(plans, whom, math.floor)
    found = ends_of(counts, delta)
    if below != counts:
        found = found._replace(lower=min(found.lower, ends_of(below, delta).lower))
    if first.trusted_sum is None:
        return found
    return found._replace(method=f"seen by the server: Gaussian sums over {first.trusted_sum} silos; {found.method}")


def upper_end(plans: Sequence[PrivacyPlan], whom: Whom = RECORD) -> float:
    """The upper one of `ends` alone, which is what a promise needs and takes less time.

    NaN for more than a record behind a shuffler or with shuffled sums: of that nothing is proven.
    """
    (first, *more), delta = plans, max(plan.budget.delta for plan in plans)
    if first.is_shuffled and whom != RECORD:
        return math.nan
    if first.is_shuffled or (not more and whom == RECORD and first.sees_last_iterates):
        return ends(plans).upper
    silos = 1 if first.trusted_sum is not None else whom.silos
    return upper_of(counts_of(plans, whom), delta, 0 if whom == RECORD else silos)


def refuting_epsilon(plan: PrivacyPlan, result: DeliveredEpsilon, everyone: bool) -> float:
    """ε that some neighbouring silos reach at the claim's δ: the lower end that refutes a claim; NaN if none is proven.

    Args:
        result: what `ends` gives for the plan.
        everyone: whether all silos take part in every round. Where M < N, `result` counts a silo that is drawn in all
            rounds, which is rare, and nothing is proven from below about one that is not.
    """
    (first, *_) = plan.releases
    # The order in which disjoint batches use the records is random and secret, which the plan does not count. Nothing
    # is known of noise that no accountant covers.
    secret = first.sampler == "disjoint" or first.part is not None
    uncounted = first.clipping != "record" or secret or math.isinf(result.upper)
    if plan.is_shuffled or plan.trusted_sum is not None or not everyone or uncounted:
        return math.nan
    if first.steps == 1 or first.contracted:
        return result.lower
    # Of local SGD only the model after a round's steps is seen.
    counts = summed_steps(first.steps, first.count // first.steps, plan.budget.n, plan.noise_multiplier)
    return ends_of(counts, plan.budget.delta).lower
