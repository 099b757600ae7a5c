"""ISRL-DP Fed-SPIDER, the alternate implementation (non-convex paper, Algorithm 11).

K₁ and K₂ = records a gradient and a difference, R = rounds, n = a silo's records, L = clip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from silodp.algorithms.base import Algorithm, Look, State, draw_random_iterate
from silodp.privacy.plan import Budget, PrivacyPlan, Release

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


@dataclass(frozen=True, eq=False)
class FedSpiderState(State):
    """The model, the estimate v of the gradient at it, and the iterate that is returned where that is a random one."""

    v: Tensor  # set in each round
    picked: Tensor | None = None  # drawn in each round but the first


@dataclass(frozen=True)
class FedSpider(Algorithm[FedSpiderState]):
    """Two messages a round: a corrected gradient difference after one step, then a fresh gradient after another.

    The first round only takes the first fresh gradient, so R rounds make 2R − 1 messages and 2(R − 1) steps.

    Attributes:
        fed_spider_releases: number of releases the noise is made for: "R" as printed, or the true "2R-1".
        random_iterate: return a uniformly random one of the 2(R − 1) iterates, as printed; else the last, as the
            experiments do.
    """

    fed_spider_releases: Literal["R", "2R-1"] = "R"
    random_iterate: bool = False

    name = "fed_spider"
    label = "Fed-SPIDER"
    look = Look(3, "#3a9a92", "v", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
    better_of = ("spider", 2)
    variants = frozenset({"clipping", "fed_spider_releases", "sampler"})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """σ₁² = 32L²R ln(2/δ)/(n²ε²) for differences, σ₂² = 8L²R ln(2/δ)/(n²ε²) for gradients (non-convex paper, H.2).

        K₁ = K₂ = ⌊n√ε/(2√R)⌋.
        Holds if the accountant bounds it by ε: with "R" the noise is made for R of the 2R − 1 messages.
        """
        R = self.rounds
        releases = R if self.fed_spider_releases == "R" else 2 * R - 1
        k = budget.batch()
        gradient = Release("gradient", R, k, budget.noise(8 * releases * budget.log(2)))
        difference = Release("difference", R - 1, k, budget.noise(32 * releases * budget.log(2)), gradients=2)
        return PrivacyPlan(self.name, budget, (gradient, difference))

    def start(self, weights: Tensor) -> FedSpiderState:
        return FedSpiderState(weights, weights * 0, weights if self.random_iterate else None)

    def round(self, r: int, state: FedSpiderState, federation: Federation) -> FedSpiderState:
        eta, w, v = federation.stepsize, state.w, state.v
        if r == 0:
            return replace(state, v=federation.mean_message(w, r, apart=True))
        w1 = federation.prox(w - eta * v, eta)
        v1 = v + federation.mean_message(w1, r, "difference", previous=w, apart=True)
        w2 = federation.prox(w1 - eta * v1, eta)
        picked = state.picked
        if picked is not None:
            middle = draw_random_iterate(federation, picked, w1, 2 * r - 1, "picked", r, 1)
            picked = draw_random_iterate(federation, middle, w2, 2 * r, "picked", r, 2)
        return FedSpiderState(w2, federation.mean_message(w2, r, apart=True), picked)

    def output(self, state: FedSpiderState) -> Tensor:
        return state.w if state.picked is None else state.picked
