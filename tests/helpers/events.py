"""What a plan's own messages cost to one who sees each of them, and what dp-accounting's events cost."""

import math
from dataclasses import replace

from dp_accounting import dp_event

from silodp.privacy import accounting
from silodp.privacy.accounting.accountant import DeliveredEpsilon, ends_of
from silodp.privacy.message_counts import counts_of
from silodp.privacy.plan import PrivacyPlan


def delivered_epsilon(what: dp_event.DpEvent | PrivacyPlan, delta: float) -> DeliveredEpsilon:
    if not isinstance(what, PrivacyPlan):
        return accounting.delivered_epsilon(what, delta)
    above, below = (counts_of([replace(what, trusted_sum=None)], whole=whole) for whole in (math.ceil, math.floor))
    found = ends_of(above, delta)
    return found if above == below else found._replace(lower=min(found.lower, ends_of(below, delta).lower))


def upper_epsilon(what: dp_event.DpEvent | PrivacyPlan, delta: float) -> float:
    return delivered_epsilon(what, delta).upper
