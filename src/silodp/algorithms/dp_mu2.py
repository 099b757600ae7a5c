"""DP-μ²-FL: one pass with momentum of double use (paper: Reshef and Levy 2024, arXiv 2407.12396).

Derived here: the clip of a record's whole correction, in place of Lipschitz constants that a run does not know, and the
exact accounting: a record is in one message, so that the transcript is one Gaussian mechanism.

K = records a message, R = rounds, n = a silo's records, η = step size, L = clip, t = round + 1, z = a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from silodp.algorithms.base import Algorithm, Look, State, is_over
from silodp.algorithms.minibatch_sgd_correlated import one_pass
from silodp.privacy.plan import Budget, PrivacyPlan

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


@dataclass(frozen=True, eq=False)
class Mu2State(State):
    """w, the query point x_t, which is the model; the one before; the steps' sequence; and the weighted gradient q."""

    previous: Tensor  # all three set in each round, while each silo has new records
    sequence: Tensor
    q: Tensor


@dataclass(frozen=True)
class DPMu2(Algorithm[Mu2State]):
    """q ← q + mean of clip(t∇f(x_t; z) − (t − 1)∇f(x_{t−1}; z)) + noise, w ← prox(w − ηq), x the t-weighted mean of w.

    Every message has fresh noise, all of which stays in q.
    """

    name = "dp_mu2"
    label = "DP-μ²"
    look = Look(20, "#6aa84f", "p", (0, (1, 1)))
    mixing: ClassVar[tuple[float, ...]] = ()

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n/R⌋ new records a round and the least σ for ε by one Gaussian of sensitivity 2L/K (derived).
        Holds if no record is in two messages of a silo, and its weighted difference is clipped as a whole.
        """
        return PrivacyPlan(self.name, budget, (one_pass(budget, self.rounds, self.mixing, joint=True),))

    def start(self, weights: Tensor) -> Mu2State:
        return Mu2State(weights, weights, weights, weights * 0)

    def round(self, r: int, state: Mu2State, federation: Federation) -> Mu2State:
        if is_over(r, federation):
            return state
        t, x = float(r + 1), state.w
        q = state.q + federation.mean_message(x, r, previous=state.previous, factors=(t, t - 1))
        w = federation.prox(state.sequence - federation.stepsize * q, federation.stepsize * t)
        # α_t = t: the mean of w_1 … w_{t+1} with weights 1 … t + 1.
        return Mu2State(x + 2 / (t + 2) * (w - x), x, w, q)
