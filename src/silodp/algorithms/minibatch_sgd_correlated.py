"""One-pass minibatch SGD (convex paper, Algorithm 1) with noise that is correlated over a silo's rounds.

The matrix mechanism of Kairouz et al. 2021 (DP-FTRL) and Choquette-Choo et al. 2023, in each silo by itself; the banded
inverse square root is BISR (arXiv 2505.12128). That each silo mixes its own noise, and the plan, are derived here.

K = records a message, R = rounds, n = a silo's records, η = step size, C = the inverse of how draws z_t are mixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from silodp.algorithms.base import Algorithm, Look, State, gaussian_noise, is_over
from silodp.privacy.plan import Budget, PrivacyPlan, Release, whitening

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


def inverse_root(terms: int) -> tuple[float, ...]:
    """b_0, …, b_{terms−1} of (1 − x)^½, the inverse square root of prefix sums: b_0 = 1, b_j = (j − 3/2)/j·b_{j−1}."""
    row = [1.0]
    for j in range(1, terms):
        row.append((j - 1.5) / j * row[-1])
    return tuple(row)


def one_pass(budget: Budget, rounds: int, mixing: tuple[float, ...] = (), joint: bool = False) -> Release:
    """R messages of K = ⌊n/R⌋ new records, σ the least for ε: one Gaussian of sensitivity 2/K times C's longest column.

    Where n < R, the first n rounds have a record each.
    """
    k = max(budget.n // rounds, 1)
    count = min(rounds, budget.n)
    column = whitening(mixing, count) if mixing else (1.0,)
    noise = 0.0
    if budget.epsilon is not None:
        noise = gaussian_noise(2 / k * sum(c * c for c in column) ** 0.5, budget.epsilon, budget.delta)
    return Release("gradient", count, k, noise, sampler="disjoint", mixing=mixing, joint=joint)


@dataclass(frozen=True)
class MinibatchSGDCorrelated(Algorithm[State]):
    """w ← prox(w − η·mean of noisy gradients of new records), a silo's noise b_0 z_t + b_1 z_{t−1} + …, b of (1 − x)^½.

    Later noise takes back a part of earlier noise, so that sums of gradients, which are what w is made of, carry less.

    Attributes:
        terms: of b; as many as rounds are the full inverse square root, fewer its band (BISR).
    """

    terms: int = 16

    name = "minibatch_sgd_correlated"
    label = "MB-SGD correlated"
    look = Look(17, "#3f7d4e", "d", (0, (6, 1, 1, 1)))
    variants = frozenset({"clipping"})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n/R⌋ and the least σ for ε: (2/K)·‖first column of C‖/μ(ε, δ), as a record is in one message (derived).

        C times all messages is C·G + σZ, G the gradients: one record moves it by 2/K times a column of C.
        Holds if no record is in two messages of a silo.
        """
        return PrivacyPlan(self.name, budget, (one_pass(budget, self.rounds, inverse_root(self.terms)),))

    def start(self, weights: Tensor) -> State:
        return State(weights)

    def round(self, r: int, state: State, federation: Federation) -> State:
        if is_over(r, federation):
            return state
        gradient = federation.mean_message(state.w, r)
        return State(federation.prox(state.w - federation.stepsize * gradient, federation.stepsize))
