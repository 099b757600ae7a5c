"""ε by round: what the messages up to the end of each round give, so that a reader sees where the budget goes."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from torch import Tensor

from silodp.algorithms.base import Algorithm
from silodp.federation.prox import Prox, no_prox
from silodp.federation.query import Query
from silodp.federation.rng import Streams
from silodp.federation.server import Federation
from silodp.privacy.adversary import delivered
from silodp.privacy.plan import PrivacyPlan


class _Listening(Federation):
    """A federation of one silo that sends zeros and keeps the kinds of messages that it sends."""

    def __init__(self, plan: PrivacyPlan) -> None:
        self.sent: list[str] = []
        self.prox: Prox = no_prox
        self.stepsize, self.clip, self.streams = torch.ones(1, 1), torch.ones(1), Streams(0)
        self.releases = [{release.kind: release for release in plan.releases}]

    def answer(self, query: Query, silo: int) -> Tensor:
        self.sent.append(query.kind)
        return torch.zeros_like(query.weights)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        self.sent += [kind] * self.releases[0][kind].steps
        return weights

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        return send(0)


def sent_by_round(algorithm: Algorithm, plan: PrivacyPlan) -> list[dict[str, int]]:
    """For every round: how many messages of each kind a silo has sent when it is over, having taken part in all."""
    federation, totals = _Listening(plan), []
    state = algorithm.start(torch.zeros(1, 1))
    for r in range(algorithm.rounds):
        state = algorithm.round(r, state, federation)
        totals.append({kind: federation.sent.count(kind) for kind in federation.releases[0]})
    return totals


def epsilon_by_round(
    algorithm: Algorithm, plan: PrivacyPlan, rounds: Iterable[int] | None = None
) -> list[tuple[int, float]]:
    """(round, ε at the plan's δ of all messages up to its end), upper ends; `rounds` from 1 on, default all."""
    totals = sent_by_round(algorithm, plan)
    numbers = range(1, algorithm.rounds + 1) if rounds is None else rounds
    return [(number, _epsilon(plan, tuple(totals[number - 1].values()))) for number in numbers]


@functools.cache
def _epsilon(plan: PrivacyPlan, sent: tuple[int, ...]) -> float:
    """Upper ε of the plan with no more messages of each kind than were sent; 0 before the first."""
    cut = zip(plan.releases, sent, strict=True)
    releases = tuple(replace(release, count=min(count, release.count)) for release, count in cut)
    if not any(release.count for release in releases):
        return 0.0
    return delivered(replace(plan, releases=releases)).upper
