"""ISRL-DP FedProx-SPIDER (non-convex paper, Algorithm 3).

K₁ and K₂ = records a gradient and a difference, R = rounds, q = phase length, n = a silo's records, L = clip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from silodp.algorithms.base import Algorithm, Look, State, draw_random_iterate
from silodp.algorithms.minibatch_sgd import MinibatchSGD
from silodp.privacy.plan import Budget, PrivacyPlan, Release

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


@dataclass(frozen=True, eq=False)
class SpiderState(State):
    """The model, the one before it, the estimate h of the gradient there, and a random iterate if that is returned."""

    previous: Tensor  # set in each round
    h: Tensor  # anew in the first round of each phase, corrected in the others
    picked: Tensor | None = None  # drawn in each round


@dataclass(frozen=True)
class FedProxSpider(Algorithm[SpiderState]):
    """A fresh noisy gradient every q rounds; in between, the estimate is corrected by noisy gradient differences.

    Attributes:
        phase_length: q. With q = 1 every round takes a fresh gradient, which is minibatch SGD.
        random_iterate: return a uniformly random one of w_1 … w_R, as the algorithm is printed; else the last, as the
            experiments do.
        spider_q1_noise: noise at q = 1: the algorithm's "own" formula, that of "minibatch" SGD, or the "released"
            program's, which lacks max(R/q, 1).
        log_term: log of minibatch SGD's noise, used by spider_q1_noise = "minibatch".
        smoothness: β, where it is known: then a difference's noise is scaled by min(β‖w_r − w_{r−1}‖/(2L), 1), as in
            the algorithm; without it (the experiments) the factor is 1, that is σ₂ = ∞. Such noise is private only
            where every record's loss is β-smooth, which no clipping sees to, so that its plan proves nothing.
    """

    phase_length: int = 1
    random_iterate: bool = False
    spider_q1_noise: Literal["own", "minibatch", "released"] = "own"
    log_term: Literal["1/delta", "2/delta"] = "1/delta"
    smoothness: float | None = None

    name = "fedprox_spider"
    label = "FedProx-SPIDER"
    look = Look(2, "#004488", "s")
    # The better of the two is the paper's SPIDER (non-convex paper, Appendix H).
    better_of: ClassVar[tuple[str, int] | None] = ("spider", 1)
    variants = frozenset({"clipping", "log_term", "sampler", "spider_q1_noise"})
    at_least_one = ("rounds", "phase_length")

    def plan(self, budget: Budget) -> PrivacyPlan:
        """σ₁² = 16L² ln(1/δ) max(R/q, 1)/(n²ε²), σ̂₂² = 64L²R ln(1/δ)/(n²ε²) (non-convex paper, H.2 and Theorem 3.1).

        K₁ = ⌊n√ε/2·min(1, √(q/R))⌋ and K₂ = ⌊n√ε/(2√R)⌋, as the released program has them.
        Holds if the accountant bounds it by ε; with `smoothness` only if every record's loss is β-smooth.
        """
        R, q = self.rounds, self.phase_length
        fresh = -(-R // q)
        released = q == 1 and self.spider_q1_noise == "released"
        own = budget.noise(16 * budget.log() * (1 if released else max(R / q, 1)))
        if q == 1 and self.spider_q1_noise == "minibatch":
            own = MinibatchSGD(R, self.log_term).plan(budget)["gradient"].noise
        gradient = Release("gradient", fresh, budget.batch(phase=q), own)
        difference = Release("difference", R - fresh, budget.batch(), budget.noise(64 * R * budget.log()), gradients=2)
        assumption = "" if self.smoothness is None else f"every record's loss is {self.smoothness:g}-smooth"
        return PrivacyPlan(self.name, budget, (gradient, difference), assumption=assumption)

    def start(self, weights: Tensor) -> SpiderState:
        return SpiderState(weights, weights, weights * 0, weights if self.random_iterate else None)

    def round(self, r: int, state: SpiderState, federation: Federation) -> SpiderState:
        w, previous = state.w, state.previous
        if r % self.phase_length == 0:
            h = federation.mean_message(w, r)
        else:
            factor = None
            if self.smoothness is not None:
                factor = (self.smoothness * (w - previous).norm(dim=1) / (2 * federation.clip)).clamp(max=1)
            h = state.h + federation.mean_message(w, r, "difference", previous, factor)
        after, picked = federation.prox(w - federation.stepsize * h, federation.stepsize), state.picked
        if picked is not None:
            picked = draw_random_iterate(federation, picked, after, r + 1, "picked", r)
        return SpiderState(after, w, h, picked)

    def output(self, state: SpiderState) -> Tensor:
        return state.w if state.picked is None else state.picked
