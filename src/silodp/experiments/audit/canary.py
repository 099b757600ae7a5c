"""Silos made to be told apart: a canary record, its replacement, and a server that asks for the most telling messages.

The record pulls a message one way, its replacement pulls it the other way with the n − 1 other records, which is the
pair of neighbouring silos behind the accountant's lower end (docs/accounting.md). Gradients, clipping, draws and noise
are those of training; only records and queries are crafted, as an adversary may.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from silodp.algorithms.base import Algorithm, Federation
from silodp.messages import Messages
from silodp.models import MODELS, Model
from silodp.privacy.plan import PrivacyPlan
from silodp.rng import Streams

Records = tuple[Tensor, Tensor]

# The canary's features over another record's: its gradient outweighs a whole batch where only that is clipped.
_LOUD = 1e3
# L, far below any block of a crafted gradient, so that every clip bites.
CLIP = 0.1


@dataclass(frozen=True)
class Canary:
    """Two silos that differ in record 0, and the queries at which that shows most.

    Attributes:
        model: whose gradients are sent.
        silos: with the canary, and with its replacement.
        weights: (d,) where gradients are asked for: +g at the canary, −g at all others.
        previous: (d,) where a difference is taken from, with −g at the canary; None if the model has no such point.
        stepsize: of local steps, small enough that they stay where gradients do not change.
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
    return Canary(MODELS["linear"](2, None), ((mirrored, y), (x, y)), weights, -weights, 1e-6)


def perceptron_canary(n: int) -> Canary:
    """For gradients and local steps: four tensors that all pull one way, so that clipping each by itself shows.

    One hidden unit that is 1 whatever x is, and logits that are 0: the gradient turns round with the label.
    """
    model = MODELS["perceptron"](1, 2, hidden=1)
    x = torch.full((n, 1), 1e3, dtype=torch.float64)
    x[0] *= _LOUD
    y = torch.zeros(n, dtype=torch.int64)
    other = y.clone()
    other[0] = 1
    #                         hidden weight, bias; output weights; output biases
    weights = torch.tensor([0.0, 1.0, 1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    return Canary(model, ((x, other), (x, y)), weights, None, 1e-10)


def canary_for(plan: PrivacyPlan) -> Canary:
    """The canary that suits what a plan releases."""
    differences = any(release.gradients > 1 for release in plan.releases if release.count)
    return linear_canary(plan.budget.n) if differences else perceptron_canary(plan.budget.n)


class Server(Federation):
    """An adversarial server of one silo: it asks at the canary's weights and keeps what it is sent.

    To the algorithm it shows zeros, so that all of a run's rounds can be played from the same state.

    Args:
        canary: records and queries.
        world: 0, the silo with the canary; 1, with its replacement.
        plans: one for each point of the stack, of the one silo.
        messages: makes a `Messages` of model, silos and streams.
    """

    def __init__(self, canary: Canary, world: int, plans: list[PrivacyPlan], messages: type[Messages]):
        self.canary, self.silo, self.make = canary, canary.silos[world], messages
        points = len(plans)
        full = torch.full((points,), canary.stepsize, dtype=torch.float64)
        clip = torch.full((points,), CLIP, dtype=torch.float64)
        nothing = Streams(0)
        super().__init__(
            messages(canary.model, [self.silo], nothing), [[plan] for plan in plans], full, clip, 1, nothing
        )
        self.query = canary.weights.repeat(points, 1)
        self.seen: list[tuple[str, Tensor]] = []

    def play(self, algorithm: Algorithm, streams: Streams) -> list[tuple[str, Tensor]]:
        """One run of the algorithm on fresh draws: kind and content (G, d) of messages that can show the canary."""
        self.messages, self.seen = self.make(self.canary.model, [self.silo], streams), []
        state = algorithm.start(self.query)
        for r in self._rounds(algorithm, streams):
            state = algorithm.round(r, state, self)
        return self.seen

    def _rounds(self, algorithm: Algorithm, streams: Streams) -> range:
        """All rounds; of disjoint batches the canary's own, as nothing is claimed for the secrecy of their order."""
        release = next(iter(self.releases[0].values()))
        if release.sampler != "disjoint":
            return range(algorithm.rounds)
        # The stream that `Messages` takes the order from.
        place = int(np.flatnonzero(streams.generator("order", 0).permutation(len(self.silo[0])) == 0)[0])
        turn = place // release.drawn
        return range(turn, turn + 1) if turn < release.count else range(0)

    def message(
        self,
        weights: Tensor,
        silo: int,
        round: int,
        kind: str = "gradient",
        previous: Tensor | None = None,
        noise_factor: Tensor | None = None,
    ) -> Tensor:
        if noise_factor is not None:
            raise ValueError(f"message {kind}: noise that follows the smoothness of a loss is not audited")
        before = None
        if previous is not None:
            if self.canary.previous is None:
                raise ValueError(f"message {kind}: this canary has no point to take a difference from")
            before = self.canary.previous.repeat(len(self.query), 1)
        self.seen.append((kind, super().message(self.query, silo, round, kind, before)))
        return torch.zeros_like(weights)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        model = super().local_model(self.query, silo, round, kind)
        self.seen.append((kind, (self.query - model) / self.stepsize))
        return weights
