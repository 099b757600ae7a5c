"""The federation that is trained on, with a canary in its first silo, and what it sends.

The canary record pulls a message one way; its replacement pulls it the other way with the n − 1 other records. Draws,
clipping and noise are the trainer's, at its N, n and K; only records and queries are made up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from silodp.algorithms.base import Algorithm
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.simulated import SiloFederation
from silodp.models.base import Steps
from silodp.models.linear import Linear
from silodp.privacy.plan import PrivacyPlan
from silodp.streams import Streams

# L, far below any crafted gradient, so that every clip bites.
CLIP = 0.1
# Weights at which runs in turn are asked; the last are far beyond where training goes.
SCALES = 1.0, 1e7
# The second feature of a record over its first: by its sign the canary differs from the others.
_SIDE = 32.0


@dataclass(frozen=True)
class WideModel(Linear):
    """A linear model of d weights on records of two features; the others are 0, and not stored."""

    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        return self._widen_rows(super().clipped_gradient_sum(weights[:, :2], x, y, clip))

    def _compiled_steps(self, weights: Tensor, steps: Steps) -> Tensor | None:
        return super()._compiled_steps(weights, steps._replace(x=self._widen_rows(steps.x)))

    def _widen_rows(self, rows: Tensor) -> Tensor:
        return functional.pad(rows, (0, self.size - 2))


class SentMessage(NamedTuple):
    """What left the silos at once: a message's kind, whose it is or whose sum, and the content (G, d)."""

    kind: str
    silos: tuple[int, ...]
    content: np.ndarray


class WatchedFederation(SiloFederation):
    """`SiloFederation` of all silos, asked at weights where the canary shows; it keeps what is sent.

    An algorithm receives zeros. BrokenPlan: it asks for what the plans do not have.

    Args:
        plans: `plans[g][i]` is the plan of silo i at point g.
        messages: the mechanism under test: the trainer's, or another.
        d: coordinates of the model, 2 or more.
        scale: how large the weights are.
        canary: whether the first silo holds the canary; else its replacement.
        noisy: whether noise is added; without, the same streams give the same messages but for their noise.
        apart: whether messages are made one by one, however small they are.
    """

    def __init__(
        self,
        plans: list[list[PrivacyPlan]],
        messages: type[Messages],
        streams: Streams,
        d: int,
        dtype: torch.dtype,
        scale: float,
        *,
        canary: bool = True,
        noisy: bool = True,
        apart: bool = False,
    ):
        silos = [_records(plan.budget.n, canary and silo == 0, dtype) for silo, plan in enumerate(plans[0])]
        clip = torch.full((len(plans),), CLIP, dtype=dtype)
        stepsize = torch.tensor([scale * _stepsize(point) for point in plans], dtype=dtype)
        super().__init__(messages(WideModel(d), silos, streams), plans, stepsize, clip, len(silos), streams)
        if noisy:
            self.hold_to_plans()
        else:
            self.noise = [{kind: deviation * 0 for kind, deviation in kinds.items()} for kinds in self.noise]
        if apart:
            self.together = frozenset()
        self.weights = torch.zeros((len(plans), d), dtype=dtype)
        self.weights[:, 0] = scale
        self.sent: list[SentMessage] = []

    def play(self, algorithm: Algorithm, messages: float, draws: float) -> list[SentMessage]:
        """What is sent in the algorithm's rounds, until enough messages or draws and all of their kinds are seen."""
        state = algorithm.start(self.weights)
        kinds = {release.kind for release in self.plans[0][0].releases if release.count}
        for r in range(algorithm.rounds):
            state = algorithm.round(r, state, self)
            enough = messages_of(self.sent) >= messages or len(self.sent) * self.weights.shape[1] >= draws
            if enough and {sent.kind for sent in self.sent} == kinds:
                break
        return self.sent

    def answer(self, query: Query, silo: int) -> Tensor:
        return self._note_message(query.kind, (silo,), super().answer(self._asked(query), silo))

    def mean(self, query: Query) -> Tensor:
        before = len(self.sent)
        mean = super().mean(self._asked(query))
        if len(self.sent) > before:
            return mean
        everyone = tuple(range(len(self.releases)))  # made in one pass: the sum alone is seen
        return self._note_message(query.kind, everyone, mean * len(everyone))

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        asked = self._rows(weights)
        moved = (asked - super().local_model(asked, silo, round, kind)) / self.stepsize
        return self._note_message(kind, (silo,), moved / self.releases[silo][kind].records)

    def _asked(self, query: Query) -> Query:
        # A difference starts from where every gradient is turned round.
        previous = None if query.previous is None else -self._rows(query.previous)
        return replace(query, weights=self._rows(query.weights), previous=previous)

    def _rows(self, weights: Tensor) -> Tensor:
        return self.weights[:1].expand(len(weights), -1)

    def _note_message(self, kind: str, silos: tuple[int, ...], content: Tensor) -> Tensor:
        self.sent.append(SentMessage(kind, silos, content.numpy().astype(float)))
        return torch.zeros_like(content)


def messages_of(sent: Sequence[SentMessage]) -> int:
    """How many messages were made for what was sent."""
    return sum(len(one.silos) for one in sent)


def _records(n: int, canary: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """(x, y) of a silo: the gradient (⟨w, x⟩)x at the weights (w₁, 0, …) is along ±x."""
    x = torch.tensor([[1.0, -_SIDE]], dtype=dtype).repeat(n, 1)
    if canary:
        x[0, 1] = _SIDE
    return x, torch.zeros(n, dtype=dtype)


def _stepsize(plans: Sequence[PrivacyPlan]) -> float:
    """η of local steps at weights of 1, so small that no gradient turns round on the way."""
    reach = [
        CLIP * (release.records_drawn + 6 * release.noise * math.sqrt(release.records_drawn))
        for plan in plans
        for release in plan.releases
        if release.has_local_steps
    ]
    return 0.1 / (_SIDE * max(reach, default=1.0))


def occurrence(plan: PrivacyPlan, kind: str) -> float:
    """How far a message moves with the canary for each time that it was drawn."""
    release = plan[kind]
    return 2 * CLIP * release.gradients / release.records * _SIDE / math.hypot(1, _SIDE)


def deviation(plans: Sequence[PrivacyPlan], sent: SentMessage) -> float:
    """The planned standard deviation of what was sent, each coordinate: σ of a message, √Σσ² of a sum."""
    releases: list[Any] = [plans[silo][sent.kind] for silo in sent.silos]
    return CLIP * math.sqrt(sum(release.noise**2 * release.steps for release in releases))
