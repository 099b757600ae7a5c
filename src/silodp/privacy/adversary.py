"""Bounds on the true ε of a plan against the adversary that its claim is about."""

import math

from silodp.privacy.accounting.accountant import DeliveredEpsilon, delivered_epsilon, end_of_round_epsilon
from silodp.privacy.accounting.last_iterate import last_iterate_epsilon
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.shuffling.shuffled_gaussian import delivered_shuffled
from silodp.privacy.shuffling.shuffled_plan import delivered_shuffled_sums
from silodp.privacy.shuffling.trusted_sum import delivered_sum


def delivered(plan: PrivacyPlan) -> DeliveredEpsilon:
    """What the claim's adversary is held to: it sees a silo's messages, shuffled ones, or sums of all silos'."""
    if plan.shuffler is not None:
        return delivered_shuffled(plan)
    if plan.shuffled_sum is not None:
        return delivered_shuffled_sums(plan)
    if plan.trusted_sum is not None:
        return delivered_sum(plan)
    if plan.private and plan.releases[0].contracted and plan.releases[0].steps > 1:
        return _last_iterates(plan)
    return delivered_epsilon(plan, plan.budget.delta)


def _last_iterates(plan: PrivacyPlan) -> DeliveredEpsilon:
    """Of noisy local steps that cannot expand distances: only the last iterate of a round is seen."""
    (release,) = plan.releases
    arguments = release.steps, release.count // release.steps, plan.budget.n, plan.noise_multiplier, plan.budget.delta
    lower, _, composed, _ = end_of_round_epsilon(*arguments)
    upper = min(composed, last_iterate_epsilon(*arguments))
    return DeliveredEpsilon(lower, (lower + upper) / 2, upper, "last local iterate of contracted steps")


def reached(plan: PrivacyPlan, result: DeliveredEpsilon, everyone: bool) -> float:
    """ε that some neighbouring silos reach at the claim's δ: what can violate a claim; NaN where none is proven.

    Args:
        result: what `delivered` gives for the plan.
        everyone: whether all silos take part in every round. Where M < N, `result` counts a silo that is drawn in all
            rounds, which is rare, and nothing is proven from below about one that is not.
    """
    guarded = plan.shuffler is not None or plan.shuffled_sum is not None or plan.trusted_sum is not None
    (first, *_) = plan.releases
    # The order in which disjoint batches use the records is random and secret, which the plan does not count. Nothing
    # is known of noise that no accountant covers.
    secret = first.sampler == "disjoint" or first.part is not None
    uncounted = first.clipping != "record" or secret or math.isinf(result.upper)
    if guarded or not everyone or uncounted:
        return math.nan
    if first.steps == 1 or first.contracted:
        return result.lower
    # Of local SGD only the model after a round's steps is seen.
    n, delta = plan.budget.n, plan.budget.delta
    return end_of_round_epsilon(first.steps, first.count // first.steps, n, plan.noise_multiplier, delta).lower
