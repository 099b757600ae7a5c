"""Slots: the messages that a silo's plan has, in the order in which the algorithm asks for them.

They are found by running the algorithm on a federation that answers 0. What a question may not choose (round, kind,
factors, whether there are two points) stands here; the wire carries a slot's number and weights alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from silodp.algorithms.base import Algorithm
from silodp.federation.interface import Federation, Query
from silodp.federation.plan_check import PlanCheck
from silodp.federation.prox import no_prox
from silodp.federation.streams import Streams
from silodp.privacy.plan import PrivacyPlan


@dataclass(frozen=True)
class Slot:
    """One message: its round and kind, whether its question has two points, their factors, whether it is a model."""

    round: int
    kind: str
    has_pair: bool = False
    factors: tuple[float, float] | None = None
    is_local: bool = False


class _Recorder(Federation):
    """All silos take part in every round; answers are 0, and every question is held against the plans."""

    def __init__(self, plans: list[PrivacyPlan]):
        one = torch.ones(1, dtype=torch.float64)
        self.stepsize, self.clip, self.streams, self.prox = one[:, None], one, Streams(0), no_prox
        self.releases = [{release.kind: release for release in plan.releases} for plan in plans]
        noise = [{kind: one * release.noise for kind, release in kinds.items()} for kinds in self.releases]
        self.noise, self.check = noise, PlanCheck([plans], one, noise)
        self.slots: list[list[Slot]] = [[] for _ in plans]

    def answer(self, query: Query, silo: int) -> Tensor:
        return self._record(query, silo, False)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        return self._record(Query(weights, round, kind), silo, True)

    def _record(self, query: Query, silo: int, is_local: bool) -> Tensor:
        release, noise = self.releases[silo].get(query.kind), self.noise[silo].get(query.kind)
        self.check(query, [silo], [release], self.clip, [noise])
        has_pair = query.previous is not None
        self.slots[silo].append(Slot(query.round, query.kind, has_pair, query.factors, is_local))
        return torch.zeros_like(query.weights)

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        return torch.stack([send(silo) for silo in range(len(self.releases))]).mean(0)


def slots_of(algorithm: Algorithm, plans: list[PrivacyPlan]) -> list[list[Slot]]:
    """Each silo's slots; BrokenPlan where the algorithm asks for what its plan does not have."""
    recorder = _Recorder(plans)
    state = algorithm.start(torch.zeros(1, 1, dtype=torch.float64))
    for r in range(algorithm.rounds):
        state = algorithm.round(r, state, recorder)
    return recorder.slots


def is_ordered(plan: PrivacyPlan) -> bool:
    """Whether messages depend on earlier ones, by the order of records; slots are then asked in order."""
    return any(kind.sampler == "disjoint" or kind.part is not None for kind in plan.releases)
