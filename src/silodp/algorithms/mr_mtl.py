"""Mean-regularised multi-task learning, MR-MTL (paper: Liu, Hu, Wu and Smith 2022, arXiv 2206.07902, Algorithm A1).

Derived here: the pull to the mean is an implicit proximal step outside the clip, where the released program adds its
gradient inside; and every silo sends one noisy gradient step a round, so that K and σ are those of minibatch SGD.

N = silos, K = records a message, σ = standard deviation of noise, η = step size, λ = the pull of a silo's model w_i to
the mean w̄.
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
class OwnState(State):
    """w, the mean w̄ of the silos' models, and `own`, (G, N, d), each silo's model w_i."""

    own: Tensor  # set in each round, of the silos that take part


@dataclass(frozen=True)
class MrMtl(NoisyGradients[OwnState]):
    """v = (w_i + ηλ·w̄)/(1 + ηλ), w_i ← v − η·(noisy gradient at v), w̄ ← mean of the w_i; every silo keeps its w_i.

    Without λ it is silo-only training, with λ → ∞ minibatch SGD. Training evaluates each w_i on its own silo.

    Attributes:
        silos: N.
        phase_length: rounds over which w_i forgets what it did not share: ηλ = 1/phase_length.
        log_term, noise: as in minibatch SGD.
    """

    silos: int = 2
    phase_length: float = 1

    name = "mr_mtl"
    label = "MR-MTL"
    look = Look(18, "#2a4b8d", "h", (0, (3, 1.5)))
    proximal = False

    def start(self, weights: Tensor) -> OwnState:
        return OwnState(weights, weights[:, None].repeat(1, self.silos, 1))

    def round(self, r: int, state: OwnState, federation: Federation) -> OwnState:
        pull, own = 1 / self.phase_length, state.own.clone()

        def step(silo: int) -> Tensor:
            v = (state.own[:, silo] + pull * state.w) / (1 + pull)
            own[:, silo] = v - federation.stepsize * federation.message(v, silo, r)
            return own[:, silo]

        return OwnState(federation.average(r, step, add_up=False), own)

    def models(self, state: OwnState) -> Tensor:
        return state.own
