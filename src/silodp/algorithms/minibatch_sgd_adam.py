"""ISRL-DP minibatch SGD (convex paper, Algorithm 1) with Adam at the server (Kingma and Ba 2015, Algorithm 1).

η = step size, β₁ and β₂ = decays of the means.
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
class AdamState(State):
    """The model, and the running means of gradients and of their squares."""

    first: Tensor  # both set in each round
    second: Tensor


@dataclass(frozen=True)
class MinibatchSGDAdam(NoisyGradients[AdamState]):
    """w ← prox(w − η·m̂/(√v̂ + 1e-8)), m̂ and v̂ Adam's means of minibatch SGD's noisy mean gradients.

    Attributes:
        log_term, noise: as in minibatch SGD.
        beta1, beta2: β₁ and β₂ of the two means.
    """

    beta1: float = 0.9
    beta2: float = 0.99

    name = "minibatch_sgd_adam"
    label = "MB-SGD Adam"
    look = Look(16, "#d88fb5", "<", (0, (2, 1)))

    def start(self, weights: Tensor) -> AdamState:
        return AdamState(weights, weights * 0, weights * 0)

    def round(self, r: int, state: AdamState, federation: Federation) -> AdamState:
        g = federation.mean_message(state.w, r)
        m = self.beta1 * state.first + (1 - self.beta1) * g
        v = self.beta2 * state.second + (1 - self.beta2) * g**2
        unbiased = m / (1 - self.beta1 ** (r + 1)), v / (1 - self.beta2 ** (r + 1))
        move = federation.stepsize * unbiased[0] / (unbiased[1].sqrt() + 1e-8)
        return AdamState(federation.prox(state.w - move, federation.stepsize), m, v)
