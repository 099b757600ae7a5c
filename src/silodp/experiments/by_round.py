"""ε by round: what the messages up to the end of each round give, so that a reader sees where the budget goes."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from silodp.algorithms.base import Algorithm
from silodp.federation.prox import Prox, no_prox
from silodp.federation.rng import Streams
from silodp.privacy.adversary import delivered
from silodp.privacy.plan import PrivacyPlan


class _Listening:
    """A `Federation` of one silo that sends zeros and is listened to: which kinds of messages it sends."""

    def __init__(self, plan: PrivacyPlan) -> None:
        self.heard: list[str] = []
        self.prox: Prox = no_prox
        self.stepsize, self.clip, self.streams = torch.ones(1, 1), torch.ones(1), Streams(0)
        self.releases = [{release.kind: release for release in plan.releases}]

    def message(self, weights: Tensor, silo: int, round: int, kind: str = "gradient", *_: Any, **__: Any) -> Tensor:
        self.heard.append(kind)
        return torch.zeros_like(weights)

    def mean_message(self, weights: Tensor, round: int, kind: str = "gradient", *_: Any, **__: Any) -> Tensor:
        return self.message(weights, 0, round, kind)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        self.heard += [kind] * self.releases[0][kind].steps
        return weights

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        return send(0)


def sent_by_round(algorithm: Algorithm, plan: PrivacyPlan) -> list[dict[str, int]]:
    """For every round: how many messages of each kind a silo has sent when it is over, having taken part in all."""
    federation, totals = _Listening(plan), []
    state = algorithm.start(torch.zeros(1, 1))
    for r in range(algorithm.rounds):
        state = algorithm.round(r, state, federation)
        totals.append({kind: federation.heard.count(kind) for kind in federation.releases[0]})
    return totals


def epsilon_by_round(
    algorithm: Algorithm, plan: PrivacyPlan, rounds: Iterable[int] | None = None
) -> list[tuple[int, float]]:
    """(round, ε at the plan's δ of all messages up to its end), upper ends.

    Args:
        algorithm: whose rounds are counted.
        plan: of a silo, over the whole run.
        rounds: numbers from 1 on; default: all.
    """
    totals = sent_by_round(algorithm, plan)
    wanted = range(1, algorithm.rounds + 1) if rounds is None else rounds
    known: dict[tuple[int, ...], float] = {}
    found = []
    for number in wanted:
        sent = tuple(totals[number - 1].values())
        if sent not in known:
            known[sent] = _epsilon(plan, totals[number - 1])
        found.append((number, known[sent]))
    return found


def _epsilon(plan: PrivacyPlan, sent: dict[str, int]) -> float:
    """Upper ε of the plan with no more messages than were sent; 0 before the first."""
    releases = tuple(dataclasses.replace(one, count=min(sent[one.kind], one.count)) for one in plan.releases)
    if not any(release.count for release in releases):
        return 0.0
    return delivered(dataclasses.replace(plan, releases=releases)).upper
