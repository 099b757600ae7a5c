"""ISRL-DP minibatch SGD (convex paper, Algorithm 1) with heavy-ball momentum at the server (Polyak 1964)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from silodp.algorithms.base import Algorithm, Look, State
from silodp.algorithms.minibatch_sgd import gradient_noise
from silodp.privacy.plan import Budget, PrivacyPlan

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.server import Federation


@dataclass(frozen=True, eq=False)
class MomentumState(State):
    """The model and the velocity v."""

    velocity: Tensor


@dataclass(frozen=True)
class MinibatchSGDMomentum(Algorithm[MomentumState]):
    """v ← βv + (1 − β)·mean over S_r of the noisy gradients, w ← prox(w − ηv): minibatch SGD's messages.

    Attributes:
        log_term, noise: as in minibatch SGD.
        beta: β.
    """

    log_term: Literal["1/delta", "2/delta"] = "1/delta"
    noise: Literal["moments", "theorem"] | float = "moments"
    beta: float = 0.9

    name = "minibatch_sgd_momentum"
    label = "MB-SGD momentum"
    look = Look(15, "#8a6d1c", "v", (0, (4, 1)))
    variants = frozenset({"clipping", "log_term", "sampler"})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K and σ of minibatch SGD: what the server makes of messages costs no privacy."""
        release = gradient_noise(budget, self.rounds, self.log_term, self.noise, None, None)
        return PrivacyPlan(self.name, budget, (release,))

    def start(self, weights: Tensor) -> MomentumState:
        return MomentumState(weights, weights * 0)

    def round(self, r: int, state: MomentumState, federation: Federation) -> MomentumState:
        v = self.beta * state.velocity + (1 - self.beta) * federation.mean_message(state.w, r)
        return MomentumState(federation.prox(state.w - federation.stepsize * v, federation.stepsize), v)
