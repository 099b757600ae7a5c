"""ISRL-DP Fed-SPIDER, the alternate implementation (non-convex paper, Algorithm 11)."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from silodp.algorithms.base import Algorithm, Federation, State
from silodp.privacy.plan import Budget, PrivacyPlan, Release


@dataclass(frozen=True)
class FedSpider(Algorithm):
    """Two messages a round: a corrected gradient difference after one step, then a fresh gradient after another.

    The first round only takes the first fresh gradient, so R rounds make 2R − 1 messages and 2(R − 1) steps.

    Attributes:
        fed_spider_releases: number of releases the noise is made for: "R" as printed, or the true "2R-1".
    """

    fed_spider_releases: Literal["R", "2R-1"] = "R"

    name = "fed_spider"
    label = "Fed-SPIDER"

    def plan(self, budget: Budget) -> PrivacyPlan:
        """σ₁² = 32L²R ln(2/δ)/(n²ε²) for differences, σ₂² = 8L²R ln(2/δ)/(n²ε²) for gradients (non-convex paper, H.2).

        K₁ = K₂ = ⌊n√ε/(2√R)⌋.
        """
        R = self.rounds
        releases = R if self.fed_spider_releases == "R" else 2 * R - 1
        k = budget.batch()
        return PrivacyPlan(
            self.name,
            budget,
            (
                Release("gradient", R, k, budget.noise(8 * releases * budget.log(2))),
                Release("difference", R - 1, k, budget.noise(32 * releases * budget.log(2)), gradients=2),
            ),
        )

    def start(self, weights: Tensor) -> State:
        return {"w": weights, "v": weights * 0}

    def round(self, r: int, state: State, federation: Federation) -> State:
        if r == 0:
            w0 = state["w"]
            return {"w": w0, "v": federation.average(r, lambda silo: federation.message(w0, silo, r))}
        eta, w, v = federation.stepsize, state["w"], state["v"]
        w1 = federation.prox(w - eta * v, eta)
        v1 = v + federation.average(r, lambda silo: federation.message(w1, silo, r, "difference", previous=w))
        w2 = federation.prox(w1 - eta * v1, eta)
        return {"w": w2, "v": federation.average(r, lambda silo: federation.message(w2, silo, r))}
