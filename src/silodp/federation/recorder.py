"""A federation that listens: what an algorithm asks of its silos over a run, held against their plans."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from silodp.federation.interface import Federation, Query
from silodp.federation.plan_check import PlanCheck
from silodp.federation.prox import no_prox
from silodp.privacy.plan import PrivacyPlan
from silodp.streams import Streams


class Recorder(Federation):
    """All silos take part in every round and send zeros; `asked` are each silo's questions, and whether for a model."""

    def __init__(self, plans: Sequence[PrivacyPlan]):
        one = torch.ones(1, dtype=torch.float64)
        self.stepsize, self.clip, self.streams, self.prox = one[:, None], one, Streams(0), no_prox
        self.releases = [{release.kind: release for release in plan.releases} for plan in plans]
        self.noise = [{kind: one * release.noise for kind, release in kinds.items()} for kinds in self.releases]
        self.check = PlanCheck([plans], one, self.noise)
        self.asked: list[list[tuple[Query, bool]]] = [[] for _ in plans]

    def answer(self, query: Query, silo: int) -> Tensor:
        return self._record(query, silo, False)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        return self._record(Query(weights, round, kind), silo, True)

    def _record(self, query: Query, silo: int, is_local: bool) -> Tensor:
        release, noise = self.releases[silo].get(query.kind), self.noise[silo].get(query.kind)
        self.check(query, [silo], [release], self.clip, [noise])
        self.asked[silo].append((query, is_local))
        return torch.zeros_like(query.weights)

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        return torch.stack([send(silo) for silo in range(len(self.releases))]).mean(0)
