"""ISRL-DP Prox-SGD, the noisy distributed proximal gradient method (non-convex paper, Algorithm 6).

K = records a message, R = rounds, n = a silo's records, η = step size, L = clip, β = smoothness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from silodp.algorithms.base import Look, gaussian_noise, is_over
from silodp.algorithms.minibatch_sgd import AveragedState, MinibatchSGD
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.theory.nonconvex.privacy import prox_sgd_noise

if TYPE_CHECKING:
    from silodp.federation.interface import Federation


@dataclass(frozen=True)
class ProxSGD(MinibatchSGD):
    """w ← prox_{ηf¹}(w − η·mean of the silos' noisy gradients), each on ⌊n/R⌋ records that are used once.

    The paper steps by η = 1/(2β). Where a silo has fewer than R records, rounds after its last record change nothing.

    Attributes:
        noise: "moments", the least σ by the exact Gaussian mechanism; "theorem", σ² = 16L² ln(1/δ)/(εK)²; or σ/L.
        average, mu: the weighted average over iterates, as in minibatch SGD; the paper returns the last iterate.
        schedule, clip, log_term: of no effect.
    """

    name = "prox_sgd"
    label = "Prox-SGD"
    look = Look(8, "#b3485a", "h", (0, (5, 1.8)))
    schedules = frozenset()
    variants = frozenset({"clipping"})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n/R⌋ and σ² = 16L² ln(1/δ)/(ε²K²) for ε ≤ 2 ln(1/δ) (Theorem E.1 with Proposition D.2), or less.

        As every record is in one message at most, σ is what one Gaussian mechanism of sensitivity 2L/K needs.
        Holds if a record is in one message; "theorem": and ε ≤ 2 ln(1/δ); a given σ: and the accountant bounds it by ε.
        """
        release = self._release(budget)
        sigma = 0.0
        if budget.epsilon is not None and not isinstance(self.noise, str):
            sigma = self.noise
        elif budget.epsilon is not None and self.noise == "theorem":
            printed = prox_sgd_noise(K=release.records, L=1.0, epsilon=budget.epsilon, delta=budget.delta)
            sigma = math.sqrt(printed.value)
        elif budget.epsilon is not None:
            sigma = gaussian_noise(release.sensitivity, budget.epsilon, budget.delta)
        return PrivacyPlan(self.name, budget, (replace(release, noise=sigma),))

    def _release(self, budget: Budget) -> Release:
        """Count and records of the messages, without noise."""
        k = budget.batch_records or max(budget.n // self.rounds, 1)
        return Release("gradient", min(self.rounds, budget.n // k), k, 0.0, sampler="disjoint")

    def round(self, r: int, state: AveragedState, federation: Federation) -> AveragedState:
        if is_over(r, federation):
            return state
        return super().round(r, state, federation)
