"""ISRL-DP one-pass accelerated SGD (convex paper, Theorem 2.3): Algorithm 2, every record in one message at most.

K = records a message, R = rounds, n = a silo's records, L = clip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from silodp.algorithms.accelerated_minibatch_sgd import AcceleratedMinibatchSGD, AcceleratedState
from silodp.algorithms.base import Look, gaussian_noise, is_over
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.theory.convex.privacy import one_pass_noise

if TYPE_CHECKING:
    from silodp.federation.interface import Federation

# The classical bound on the Gaussian mechanism is proven up to here.
CLASSICAL = 1.0


@dataclass(frozen=True)
class OnePassAcceleratedSGD(AcceleratedMinibatchSGD):
    """Accelerated minibatch SGD on disjoint batches: K = 1 record a round, R = n rounds, unless K is given.

    The pass is over when the smallest silo has used all its records: later rounds, if any, change nothing.

    Attributes:
        noise: σ in units of L where it is a number, for K = 1; else by the plan's formula. `log_term` has no effect.
        mu, regularisation, stages, schedule, clip: as in accelerated minibatch SGD.
    """

    name = "one_pass_accelerated_sgd"
    label = "One-pass acc. SGD"
    look = Look(6, "#9fd3e6", "X", (0, (3, 1, 1, 1)))
    schedules = frozenset({"theorem-2.3", "theorem-2.3-strong"})
    variants = frozenset({"clipping"})

    def fitted(self, n: int, batch_records: int | None) -> Self:
        return self if self.schedule else replace(self, rounds=n // (batch_records or 1))

    def plan(self, budget: Budget) -> PrivacyPlan:
        """σ² = 8L² ln(1.25/δ)/(K²ε²) for ε ≤ 1 (convex paper, Theorem 2.3, with K = 1).

        Beyond ε = 1, where that bound is not proven, the least σ for which the Gaussian mechanism is (ε, δ)-DP.
        Holds if no record is in two messages of a silo; with a given σ if the accountant bounds it by ε.
        """
        k = budget.batch_records or 1
        sigma = 0.0
        if budget.epsilon is not None and not isinstance(self.noise, str):
            sigma = self.noise * k
        elif budget.epsilon is not None and budget.epsilon <= CLASSICAL:
            sigma = math.sqrt(one_pass_noise(L=1.0, epsilon=budget.epsilon, delta=budget.delta).value)
        elif budget.epsilon is not None:
            sigma = gaussian_noise(2.0, budget.epsilon, budget.delta)
        release = Release("gradient", min(self.rounds, budget.n // k), k, sigma / k, sampler="disjoint")
        return PrivacyPlan(self.name, budget, (release,))

    def round(self, r: int, state: AcceleratedState, federation: Federation) -> AcceleratedState:
        if is_over(r, federation):
            return state
        return super().round(r, state, federation)
