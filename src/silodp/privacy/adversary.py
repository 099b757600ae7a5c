"""Delivered ε of a plan against the adversary that its claim is about."""

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
