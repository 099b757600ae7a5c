"""ISRL-DP minibatch SGD (convex paper, Algorithm 1) with heavy-ball momentum at the server (Polyak 1964).

η = step size, β = decay of the velocity v, S_r = the silos of round r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from silodp.algorithms.base import Look, State
from silodp.algorithms.minibatch_sgd import NoisyGradients

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


@dataclass(frozen=True, eq=False)
class MomentumState(State):
    """The model and the velocity v."""

    velocity: Tensor  # set in each round


@dataclass(frozen=True)
class MinibatchSGDMomentum(NoisyGradients[MomentumState]):
    """v ← βv + (1 − β)·mean over S_r of the noisy gradients, w ← prox(w − ηv): minibatch SGD's messages.

    Attributes:
        log_term, noise: as in minibatch SGD.
        beta: β.
    """

    beta: float = 0.9

    name = "minibatch_sgd_momentum"
    label = "MB-SGD momentum"
    look = Look(15, "#8a6d1c", "v", (0, (4, 1)))

    def start(self, weights: Tensor) -> MomentumState:
        return MomentumState(weights, weights * 0)

    def round(self, r: int, state: MomentumState, federation: Federation) -> MomentumState:
        v = self.beta * state.velocity + (1 - self.beta) * federation.mean_message(state.w, r)
        return MomentumState(federation.prox(state.w - federation.stepsize * v, federation.stepsize), v)
