"""Neighbouring silos that are easy to tell apart, and a server that queries for the most telling messages.

The canary record pulls a message one way; its replacement pulls it the other way with the n − 1 other records. That is
the pair of silos behind the accountant's lower end (docs/accounting.md). Gradients, clipping, draws and noise are those
of training; only records and queries are crafted, as an adversary may.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from silodp.algorithms.base import Algorithm
from silodp.audit.stacked_runs import StackedRuns
from silodp.federation.interface import Federation, Query
from silodp.federation.messages import Messages
from silodp.federation.plan_check import PlanCheck
from silodp.federation.prox import Prox, no_prox
from silodp.federation.simulated import SiloFederation
from silodp.federation.streams import Streams
from silodp.models.base import Model
from silodp.models.linear import Linear
from silodp.models.perceptron import Perceptron
from silodp.privacy.plan import PrivacyPlan, Release, whitening

Records = tuple[Tensor, Tensor]

# The canary's features over another record's: its gradient outweighs a whole batch where only that is clipped.
_LOUD = 1e3
# L, far below any block of a crafted gradient, so that every clip bites.
CLIP = 0.1


@dataclass(frozen=True)
class Canary:
    """Two silos that differ in record 0, and the queries at which that shows most.

    Attributes:
        silos: with the canary, and with its replacement.
        weights: (d,) of the queries: the gradient is +g at the canary, −g at all others.
        previous: (d,) that differences start from, with −g at the canary; None if the model has no such point.
        stepsize: of local steps, small enough that gradients do not change on the way.
    """

    model: Model
    silos: tuple[Records, Records]
    weights: Tensor
    previous: Tensor | None
    stepsize: float


def linear_canary(n: int) -> Canary:
    """For every kind of message: gradients (⟨w, x⟩)x at x = (1, ±c) turn round with the sign of w₁."""
    c, far = 1e3, 1e6
    x = torch.tensor([[1.0, -c]], dtype=torch.float64).repeat(n, 1)
    x[0] *= _LOUD
    mirrored = x.clone()
    mirrored[0, 1] *= -1
    y = torch.zeros(n, dtype=torch.float64)
    weights = torch.tensor([far, 0.0], dtype=torch.float64)
    return Canary(Linear.build(2, None), ((mirrored, y), (x, y)), weights, -weights, 1e-3)


def perceptron_canary(n: int) -> Canary:
    """For gradients: four tensors that all pull one way, so that clipping each by itself shows.

    One hidden unit that is 1 whatever x is, and logits that are 0: the gradient turns round with the label.
    """
    model = Perceptron.build(1, 2, hidden=1)
    x = torch.full((n, 1), 1e3, dtype=torch.float64)
    x[0] *= _LOUD
    y = torch.zeros(n, dtype=torch.int64)
    other = y.clone()
    other[0] = 1
    #                         hidden weight, bias; output weights; output biases
    weights = torch.tensor([0.0, 1.0, 1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    return Canary(model, ((x, other), (x, y)), weights, None, 1e-10)


CANARIES = (linear_canary, perceptron_canary)


def canary_for(plan: PrivacyPlan) -> Canary:
    turning = any(
        release.gradients > 1 or release.has_local_steps or release.joint for release in plan.releases if release.count
    )
    return (linear_canary if turning else perceptron_canary)(plan.budget.n)


def check_noise(algorithm: Algorithm, plans: list[PrivacyPlan]) -> None:
    if any(not release.noise > 0 for plan in plans for release in plan.releases if release.count):
        raise ValueError(f"plan of {algorithm.name}: has no noise: there is nothing to audit")


def whitened(release: Release, sent: np.ndarray) -> np.ndarray:
    """Messages of a kind (M, …) times C, so that mixed noise is independent again; as they are where it is."""
    if not release.mixing:
        return sent
    column = np.array(whitening(release.mixing, len(sent)))
    return np.stack([np.tensordot(column[t::-1], sent[: t + 1], axes=1) for t in range(len(sent))])


class SeenMessage(NamedTuple):
    """A message that the server keeps: its kind, its silo, and its content (rows of the stack, d)."""

    kind: str
    silo: int
    content: Tensor


class Server(Federation):
    """An adversarial server: it queries at the canary's weights and keeps the messages.

    The algorithm receives zeros, so that all of a run's rounds can be played from the same state. BrokenPlan: it asks
    for what the plan does not have.

    Args:
        world: 0, the first silo holds the canary; 1, its replacement.
        plans: one for each point of the stack, the same for every silo.
        runs: runs that `messages` plays at once; rows of the stack are (run, point).
        others: silos beside the first, which hold the replacement in both worlds.
        noisy: whether noise is added; without, the same streams give the same messages but for their noise.
    """

    def __init__(
        self,
        canary: Canary,
        world: int,
        plans: list[PrivacyPlan],
        messages: type[Messages],
        *,
        runs: int = 1,
        others: int = 0,
        noisy: bool = True,
    ):
        self.canary, self.make = canary, messages
        self.canary_silos = [canary.silos[world], *[canary.silos[1]] * others]
        rows, silos = len(plans) * runs, 1 + others
        full = torch.full((rows,), canary.stepsize, dtype=torch.float64)
        clip = torch.full((rows,), CLIP, dtype=torch.float64)
        nothing = Streams(0)
        each = [[plan] * silos for plan in plans] * runs
        # The silos as training has them; the server sees every message by itself.
        made = messages(canary.model, self.canary_silos, nothing)
        self.honest = SiloFederation(made, each, full, clip, silos, nothing)
        if not noisy:
            self.honest.noise = [{kind: scale * 0 for kind, scale in kinds.items()} for kinds in self.honest.noise]
        self.stepsize, self.clip, self.releases = self.honest.stepsize, self.honest.clip, self.honest.releases
        self.streams = nothing
        self.prox: Prox = no_prox
        self.query = canary.weights.repeat(rows, 1)
        self.as_seen_by_adversary: list[SeenMessage] = []

    def play(self, algorithm: Algorithm, streams: Streams) -> list[SeenMessage]:
        """The messages that can show the canary, of `runs` runs of the algorithm on fresh draws."""
        self.honest.messages, self.as_seen_by_adversary = self.make(self.canary.model, self.canary_silos, streams), []
        # At the door of the mechanism under test, which may itself be at odds with the plan.
        self.check = PlanCheck(self.honest.plans, self.clip, self.honest.noise)
        state = algorithm.start(self.query)
        for r in self._rounds(algorithm):
            state = algorithm.round(r, state, self)
        return self.as_seen_by_adversary

    def _rounds(self, algorithm: Algorithm) -> range:
        """All rounds; of disjoint batches the canary's own, as nothing is claimed for the secrecy of their order."""
        release = next(iter(self.releases[0].values()))
        if release.sampler != "disjoint":
            return range(algorithm.rounds)
        if isinstance(self.honest.messages, StackedRuns):
            return range(algorithm.rounds if release.mixing else 1)
        drawn = (self.honest.messages.draw(0, release, r) for r in range(release.count))
        turn = next((r for r, places in enumerate(drawn) if not isinstance(places, slice) and 0 in places), None)
        if turn is None:
            return range(0)
        return range(algorithm.rounds) if release.mixing else range(turn, turn + 1)

    def answer(self, query: Query, silo: int) -> Tensor:
        kind = query.kind
        if query.noise_factor is not None and self.honest.plans[0][silo].assumption:
            raise ValueError(f"message {kind}: noise that follows the smoothness of a loss is not audited")
        self._planned(query, silo)
        before = None
        if query.previous is not None:
            if self.canary.previous is None:
                raise ValueError(f"message {kind}: this canary has no point to take a difference from")
            before = self.canary.previous.repeat(len(self.query), 1)
        asked = Query(self.query, query.round, kind, before, factors=query.factors)
        self.as_seen_by_adversary.append(SeenMessage(kind, silo, self.honest.answer(asked, silo)))
        return torch.zeros_like(query.weights)

    def _planned(self, query: Query, silo: int) -> None:
        release, noise = self.releases[silo].get(query.kind), self.honest.noise[silo].get(query.kind)
        self.check(query, [silo], [release], self.clip, [noise])

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        return self.honest.average(round, send)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        self._planned(Query(weights, round, kind), silo)
        model = self.honest.local_model(self.query, silo, round, kind)
        moved = (self.query - model) / (self.canary.stepsize * self.releases[silo][kind].records)
        self.as_seen_by_adversary.append(SeenMessage(kind, silo, moved))
        return weights
