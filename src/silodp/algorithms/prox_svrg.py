"""ISRL-DP FedProx-SVRG (non-convex paper, Algorithm 1).

K = records a difference, R = rounds, Q = phase length, E = epochs of a run, S = runs, n = a silo's records, L = clip,
S_r = the silos of a round, f⁰ = the smooth part of the loss, f¹ = the penalty, η = step size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from silodp.algorithms.base import Algorithm, Look, State, draw_random_iterate
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.theory.nonconvex.privacy import svrg_noise

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


@dataclass(frozen=True, eq=False)
class SVRGState(State):
    """The model, the epoch's anchor w̄ and the gradient there, and the iterate that chance has left standing."""

    anchor: Tensor  # set in the first round of each epoch
    gradient: Tensor  # likewise
    picked: Tensor  # drawn in each round


@dataclass(frozen=True)
class ProxSVRG(Algorithm[SVRGState]):
    """Epochs of Q steps: a noisy full gradient at the anchor w̄, then w ← prox_{ηf¹}(w − η·v), in every round

    v = mean over S_r of (noisy mean over K drawn records of ∇f⁰(w) − ∇f⁰(w̄)) + the anchor's gradient. A round is one
    step; the first of an epoch makes w the anchor and sends both kinds of messages. S_r is drawn anew in every round.

    Attributes:
        phase_length: Q, steps of an epoch.
        noise: "moments", "theorem", or one σ/L for both kinds of messages; see `plan`.
    """

    phase_length: int = 1
    noise: Literal["moments", "theorem"] | float = "moments"

    name = "prox_svrg"
    label = "Prox-SVRG"
    look = Look(9, "#3a9a92", "<", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
    variants = frozenset({"clipping", "sampler"})
    at_least_one: ClassVar[tuple[str, ...]] = ("rounds", "phase_length")

    @property
    def run_length(self) -> int:
        """Rounds between two restarts: all."""
        return self.rounds

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n/Q⌋ records a difference, all n for an anchor.

        "theorem": σ₁² = 256L²SE ln(2/δ) ln(5SE/δ)/(εn)², σ₂² = 1024L²SR ln(2/δ) ln(5SR/δ)/(εn)² (Theorem E.2, the
        logarithms with S as errata have it), with its conditions on ε and K. "moments": the forms that H.2 has for
        SPIDER, at half the budget for each kind: σ₁² = 32L²A ln(1/δ)/(εn)² for A anchors and σ₂² = 128L²R ln(1/δ)/(εn)²
        for R differences; at K = n both together spend ε²/(8 ln(1/δ)) of zCDP.
        Holds if ε and K are as Theorem E.2 asks ("theorem"); else if the accountant bounds it by ε.
        """
        difference, anchor = self._releases(budget)
        if budget.epsilon is not None and not isinstance(self.noise, str):
            noise = (self.noise, self.noise)
        elif budget.epsilon is not None and self.noise == "theorem":
            noise = self._theorem(budget, difference.records)
        else:
            square = 32 * budget.log()
            noise = (budget.noise(4 * square * difference.count), budget.noise(square * anchor.count))
        releases = replace(difference, noise=noise[0]), replace(anchor, noise=noise[1])
        return PrivacyPlan(self.name, budget, releases)

    def _releases(self, budget: Budget) -> tuple[Release, Release]:
        """Count and records of differences and anchors, without noise."""
        k = budget.batch_records or max(budget.n // self.phase_length, 1)
        anchors = sum(r % self.run_length % self.phase_length == 0 for r in range(self.rounds))
        difference = Release("difference", self.rounds, k, 0.0, gradients=2)
        return difference, Release("anchor", anchors, budget.n, 0.0, sampler="all")

    def _epochs(self) -> tuple[int, int, int]:
        """S, E and Q; a last epoch or restart that is cut short counts as a whole one, for which noise is larger."""
        Q = min(self.phase_length, self.run_length)
        return -(-self.rounds // self.run_length), -(-self.run_length // Q), Q

    def _theorem(self, budget: Budget, K: int) -> tuple[float, float]:
        assert budget.epsilon is not None
        S, E, Q = self._epochs()
        noise = svrg_noise(n=budget.n, S=S, E=E, Q=Q, L=1.0, epsilon=budget.epsilon, delta=budget.delta)
        least = int(noise.terms["smallest_batch"])
        if least > K:
            raise ValueError(f"K = {K}: must be at least {least} for Theorem E.2 at epsilon = {budget.epsilon:g}")
        return math.sqrt(noise.terms["sigma2_squared"]), math.sqrt(noise.terms["sigma1_squared"])

    def start(self, weights: Tensor) -> SVRGState:
        return SVRGState(weights, weights, weights * 0, weights)

    def round(self, r: int, state: SVRGState, federation: Federation) -> SVRGState:
        t = r % self.run_length
        w, anchor, gradient = state.picked if t == 0 else state.w, state.anchor, state.gradient
        if t % self.phase_length == 0:
            anchor, gradient = w, federation.mean_message(w, r, "anchor")
        v = federation.mean_message(w, r, "difference", anchor) + gradient
        picked = draw_random_iterate(federation, state.picked, w, t + 1, "picked", r)
        w = federation.prox(w - federation.stepsize * v, federation.stepsize)
        return SVRGState(w, anchor, gradient, picked)

    def output(self, state: SVRGState) -> Tensor:
        """A uniformly random one of the last run's iterates before its steps: w_0 is among them, the last is not."""
        return state.picked
