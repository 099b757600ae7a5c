"""dp-accounting's events, read as counted messages."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from silodp.privacy.plan import PrivacyPlan

if TYPE_CHECKING:
    from dp_accounting import dp_event

    from silodp.privacy.accounting.accountant import DeliveredEpsilon
    from silodp.privacy.message_counts import Counts

_HOW = {
    "GaussianDpEvent": "all",
    "SampledWithReplacementDpEvent": "with",
    "SampledWithoutReplacementDpEvent": "without",
}


def delivered_epsilon(event: "dp_event.DpEvent | PrivacyPlan", delta: float) -> "DeliveredEpsilon":
    """Both ends of ε at δ of an event's composed releases, or of a plan: (lower, estimate, upper, method).

    Supported: Gaussian, Gaussian on records drawn with or without replacement, their compositions, no-op and
    non-private. A noise multiplier is σ over the replace-one sensitivity of one occurrence (2L/K for a clipped mean).
    ValueError for anything else, and for values out of range.
    """
    from silodp.privacy.accounting.accountant import ends_of
    from silodp.privacy.true_epsilon import ends  # which is made of the files beside this one

    if isinstance(event, PrivacyPlan):
        return ends([replace(event, budget=replace(event.budget, delta=delta))])
    counts: Counts = {}
    return ends_of(counts if _count_event(event, 1, counts) else None, delta)


def _count_event(event: Any, count: int, counts: "Counts") -> bool:
    """Adds the event's messages to `counts`; False if one of them is not private."""
    from silodp.privacy.message_counts import draws

    name, inner = type(event).__name__, getattr(event, "event", event)
    if name in ("NoOpDpEvent", "NonPrivateDpEvent"):
        return name == "NoOpDpEvent" or count == 0
    if name == "SelfComposedDpEvent":
        if event.count < 0 or event.count != int(event.count):
            raise ValueError(f"composition count = {event.count}: must be a whole number, at least 0")
        return _count_event(inner, count * int(event.count), counts)
    if name == "ComposedDpEvent":
        return all([_count_event(part, count, counts) for part in event.events])  # every part is to be checked
    if name not in _HOW or type(inner).__name__ != "GaussianDpEvent":
        raise ValueError(f"event {name}({type(inner).__name__}): only Gaussian releases are supported")
    n, K = (1, 1) if inner is event else (event.source_dataset_size, event.sample_size)
    z = float(inner.noise_multiplier)
    if K and count:
        one = draws(_HOW[name], n, K, z)  # type: ignore[arg-type]
        if math.isfinite(z):
            counts[one] = counts.get(one, 0) + count
    return z > 0 or not K
