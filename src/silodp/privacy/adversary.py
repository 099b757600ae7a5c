"""Delivered ε of a plan against the adversary that its claim is about."""

from silodp.privacy.accounting.accountant import DeliveredEpsilon, delivered_epsilon
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
    return delivered_epsilon(plan, plan.budget.delta) if plan.trusted_sum is None else delivered_sum(plan)
