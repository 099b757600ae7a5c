"""What all charges of a ledger cost together.

Nobody knows in which silo of another line a record lies, so a record may be behind any one plan of each line.
"""

import math
from collections.abc import Sequence

from dp_accounting import ComposedDpEvent

from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.person import composed_epsilon
from silodp.privacy.plan import PrivacyPlan
from silodp.privacy.selection import dominating_epsilon, selected_epsilon

# Distinct choices of a plan from each line that are composed one by one.
MOST_CHOICES = 1000


def total(charges: Sequence[Sequence[PrivacyPlan]], silos: int = 1, records: int = 1) -> tuple[float, float]:
    """(ε, δ) of all charges together, for a person with at most `records` records in each of `silos` silos.

    The largest ε over all choices of one plan from each charge, at the largest δ. A choice and each part of it that has
    plans of smaller δ alone compose by the accountant, so that one more charge never lowers a total. Above
    `MOST_CHOICES` choices Rényi divergences are taken at the largest of each charge's plans, at the smallest δ.
    """
    charges = [tuple(dict.fromkeys(plans)) for plans in charges]
    deltas = {plan.budget.delta for plans in charges for plan in plans}
    # A person's silos compose as one silo with more releases where they are alike, else by basic composition at δ/s.
    parts = silos if any(len(plans) > 1 for plans in charges) else 1
    alike = silos // parts
    if parts > 1 and any(plan.tries > 1 or plan.trusted_sum for plans in charges for plan in plans):
        # What is chosen among runs of all silos, or summed over them, does not compose silo by silo.
        return math.inf, max(deltas)
    choices = _choices(charges)
    if choices is None:
        return parts * dominating_epsilon(charges, min(deltas) / parts, alike, records), max(deltas)
    histories = {
        (tuple(plan for plan in choice if plan.budget.delta <= delta), delta)
        for choice in choices
        for delta in {plan.budget.delta for plan in choice}
    }
    each = (parts * _composed(history, delta / parts, alike, records) for history, delta in histories)
    return max(each, default=0.0), max(deltas, default=0.0)


def _choices(charges: Sequence[Sequence[PrivacyPlan]]) -> list[tuple[PrivacyPlan, ...]] | None:
    """Every choice of one plan from each charge, in any order; None for more than `MOST_CHOICES`."""
    numbers: dict[PrivacyPlan, int] = {}
    found: set[tuple[int, ...]] = {()}
    for plans in charges:
        of = [numbers.setdefault(plan, len(numbers)) for plan in plans]
        found = {tuple(sorted((*choice, number))) for choice in found for number in of}
        if len(found) > MOST_CHOICES:
            return None
    plans = list(numbers)
    return [tuple(plans[number] for number in choice) for choice in found]


def _composed(history: Sequence[PrivacyPlan], delta: float, silos: int, records: int) -> float:
    """Rényi divergences add up; so do ε of each selection and of all else, at equal shares of δ."""
    selected, rest = ([plan for plan in history if (plan.tries > 1) == kind] for kind in (True, False))
    if not selected:
        return _upper(rest, delta, silos, records)
    share = delta / (len(selected) + bool(rest))
    apart = sum(selected_epsilon([plan], share, silos, records) for plan in selected)
    apart += _upper(rest, share, silos, records) if rest else 0.0
    return min(selected_epsilon(history, delta, silos, records), apart)


def _upper(history: Sequence[PrivacyPlan], delta: float, silos: int, records: int) -> float:
    if (silos, records) != (1, 1):
        return composed_epsilon(history, delta, silos, records)
    return delivered_epsilon(ComposedDpEvent([plan.as_seen_by_adversary.event for plan in history]), delta).upper
