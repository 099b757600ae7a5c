"""ε of a person: what silos' plans mean for somebody whose records lie in several silos, or several in one.

All records of the person are replaced together and count together in a message (Theorem 1 of docs/accounting.md); the
transcripts of s silos compose. A person who is one record has that record's ε.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from silodp.privacy.message_counts import RECORD, Whom
from silodp.privacy.plan import PrivacyPlan, at_largest_delta
from silodp.privacy.true_epsilon import upper_end


def person_epsilon(plan: PrivacyPlan, whom: Whom) -> float:
    """Upper ε at the plan's δ for replacing all records of one person; ValueError for impossible numbers.

    NaN where a shuffler or shuffled sums hide several records; infinite without noise.
    """
    if whom.silos < 1 or not 1 <= whom.records <= plan.budget.n:
        limits = f"must be at least 1, records at most n = {plan.budget.n}"
        raise ValueError(f"silos = {whom.silos}, records = {whom.records}: {limits}")
    return upper_end([plan], whom)


def persons_epsilon(plans: Sequence[PrivacyPlan], whom: Whom) -> float:
    """Upper ε for replacing all records of one person, where each silo has one of `plans` and which is not known.

    Different plans are each taken at δ_i/s, and s times the largest ε holds at max δ_i by basic composition (Dwork,
    Rothblum, Vadhan 2010). Infinite for a person with all records of a silo, and for different plans behind a trusted
    sum: there the s silos share one noise, so their transcripts do not compose.
    """
    silos, records = whom
    if records >= min(plan.budget.n for plan in plans) > 1:
        return math.inf
    plans = at_largest_delta(plans) if whom == RECORD else list(dict.fromkeys(plans))
    if silos == 1 or len(plans) == 1:
        return float(np.max([person_epsilon(plan, whom) for plan in plans]))
    if any(plan.trusted_sum is not None for plan in plans):
        return math.inf
    smaller = [replace(plan, budget=replace(plan.budget, delta=plan.budget.delta / silos)) for plan in plans]
    return silos * float(np.max([person_epsilon(plan, Whom(1, records)) for plan in smaller]))
