"""ISRL-DP minibatch SGD (convex paper, Algorithm 1), and the same without noise as a baseline."""

from dataclasses import dataclass
from typing import Literal

from silodp.algorithms.base import Algorithm, Federation, State
from silodp.privacy.plan import Budget, PrivacyPlan, Release


@dataclass(frozen=True)
class MinibatchSGD(Algorithm):
    """w ← prox(w − η·mean over S_r of the silos' noisy minibatch gradients).

    Attributes:
        log_term: log in the moments-form noise; the non-convex experiments print ln(2/δ), the convex ones ln(1/δ).
    """

    log_term: Literal["1/delta", "2/delta"] = "1/delta"

    name = "minibatch_sgd"
    label = "MB-SGD"

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n√ε/(2√R)⌋ and σ² = 8L²R ln(·/δ)/(n²ε²) (convex paper, remark after Theorem 2.1)."""
        log = budget.log(float(self.log_term[0]))
        noise = budget.noise(8 * self.rounds * log)
        return PrivacyPlan(self.name, budget, (Release("gradient", self.rounds, budget.batch(), noise),))

    def round(self, r: int, state: State, federation: Federation) -> State:
        w = state["w"]
        gradient = federation.average(r, lambda silo: federation.message(w, silo, r))
        return {"w": federation.prox(w - federation.stepsize * gradient, federation.stepsize)}
