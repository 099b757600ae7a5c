"""A privacy plan, made once and complete: guard, training, table and audit take the same object.

An algorithm's plan becomes what a silo does by the protocol's choices: what is clipped, who adds up, which noise.
"""

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from silodp.privacy.plan import Budget, Clipping, PrivacyPlan

if TYPE_CHECKING:
    from silodp.algorithms.base import Algorithm


@dataclass(frozen=True)
class Protocol:
    """What a plan depends on beside algorithm and budget.

    Attributes:
        clipping: what is scaled to norm at most L.
        shuffled: M and d, where sums go through the shuffle protocol P_vec.
        noise: "paper"; "calibrated", the least that certifies ε; or "favourable", the least that no proof rules out.
        sampler: "subset" for batches of distinct records, else as the algorithm draws them.
    """

    clipping: Clipping = "record"
    tensors: int = 1
    shuffled: tuple[int, int] | None = None
    noise: str = "paper"
    sampler: str = "replacement"


@functools.cache
def complete_plan(algorithm: "Algorithm", budget: Budget, protocol: Protocol) -> PrivacyPlan:
    """The plan of a silo, cached, as calibrating can take seconds.

    ValueError: a theorem's conditions fail at this budget, or no noise fits.
    """
    plan = algorithm.plan(budget)
    clipped = (replace(release, clipping=protocol.clipping, tensors=protocol.tensors) for release in plan.releases)
    plan = replace(plan, releases=tuple(clipped))
    if protocol.sampler == "subset":
        plan = plan.without_repeats
    if protocol.shuffled is not None and plan.private:
        from silodp.privacy.shuffling.shuffled_plan import shuffled_plan  # slow to import

        return shuffled_plan(plan, *protocol.shuffled)
    if protocol.noise == "paper":
        return plan
    from silodp.privacy import calibration  # slow to import

    return (calibration.favourable_plan if protocol.noise == "favourable" else calibration.calibrated_plan)(plan)
