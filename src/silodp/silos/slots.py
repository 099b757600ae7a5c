"""Slots: the messages that a silo's plan has, in the order in which the algorithm asks for them.

They are found by running the algorithm on a federation that answers 0. What a question may not choose (round, kind,
factors, whether there are two points) stands here; the wire carries a slot's number and weights alone.
"""

from dataclasses import dataclass

import torch

from silodp.algorithms.base import Algorithm
from silodp.federation.recorder import Recorder
from silodp.privacy.plan import PrivacyPlan


@dataclass(frozen=True)
class Slot:
    """One message: its round and kind, whether its question has two points, their factors, whether it is a model."""

    round: int
    kind: str
    has_pair: bool = False
    factors: tuple[float, float] | None = None
    is_local: bool = False


def slots_of(algorithm: Algorithm, plans: list[PrivacyPlan]) -> list[list[Slot]]:
    """Each silo's slots; BrokenPlan where the algorithm asks for what its plan does not have."""
    recorder, state = Recorder(plans), algorithm.start(torch.zeros(1, 1, dtype=torch.float64))
    for r in range(algorithm.rounds):
        state = algorithm.round(r, state, recorder)
    return [
        [Slot(asked.round, asked.kind, asked.previous is not None, asked.factors, local) for asked, local in of]
        for of in recorder.asked
    ]


def is_ordered(plan: PrivacyPlan) -> bool:
    """Whether messages depend on earlier ones, by the order of records; slots are then asked in order."""
    return any(kind.sampler == "disjoint" or kind.part is not None for kind in plan.releases)
