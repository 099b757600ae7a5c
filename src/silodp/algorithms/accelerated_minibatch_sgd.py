"""ISRL-DP accelerated minibatch SGD (convex paper, Algorithm 2 and Appendix D.4): plain, regularised, multi-stage.

K = records a message, R = rounds, n = a silo's records, η = step size, L = clip, υ, μ = constants of a stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from silodp.algorithms.base import Look, State
from silodp.algorithms.minibatch_sgd import NoisyGradients, gradient_noise
from silodp.privacy.plan import Budget, PrivacyPlan

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation
    from silodp.theory.convex.schedules import Schedule, Stage


@dataclass(frozen=True, eq=False)
class AcceleratedState(State):
    """w^ag, which is the model, and the sequence w of the long steps."""

    sequence: Tensor  # set in each round, to w^ag at the start of each stage


@dataclass(frozen=True)
class AcceleratedMinibatchSGD(NoisyGradients[AcceleratedState]):
    """Three sequences: gradients are taken at w^md, w moves by long steps, w^ag averages and is the model.

    With α_r = 2/(r+1) and η_r = 4υ/(r(r+1)), r = 1, 2, …. A step size η stands for υ = 1/(2η): then the first step is
    one of plain SGD with η, and η = 1/(4β) gives υ = 2β, the smallest υ that Appendix D.4 allows.

    Attributes:
        log_term, noise, clip: as in minibatch SGD, whose messages these are.
        mu: μ of the steps where the loss is strongly convex.
        regularisation: λ of (λ/2)‖w‖², added by the server to make a convex loss strongly convex; μ grows by it.
        stages: multi-stage form: each starts from the model of the stage before, with its rounds, υ and μ. Empty: one
            stage, υ from the step size.
        schedule: what a theorem prescribes for K, σ², λ and the stages.
    """

    mu: float = 0.0
    regularisation: float = 0.0
    stages: tuple[Stage, ...] = ()
    schedule: Schedule | None = None
    clip: float | None = None

    name = "accelerated_minibatch_sgd"
    label = "Acc. MB-SGD"
    look = Look(5, "#30102f", "D", (0, (1.2, 1.2)))
    schedules = frozenset({"theorem-D.1", "theorem-D.1-strong", "theorem-2.4", "theorem-2.4-strong"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule is not None:
            object.__setattr__(self, "stages", self.schedule.stages)
            object.__setattr__(self, "regularisation", self.schedule.regularisation)
        if min(self.mu, self.regularisation) < 0:
            raise ValueError(f"mu = {self.mu}, lambda = {self.regularisation}: must not be negative")
        total = sum(stage.rounds for stage in self.stages)
        if self.stages and total != self.rounds:
            raise ValueError(f"rounds = {self.rounds}: the stages have {total}, must be the same")

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K and σ² of minibatch SGD: one gradient message a round (convex paper, Theorem D.1).
        Holds if ε and K are as the theorem asks ("theorem", `schedule`); else if the accountant bounds it by ε.
        """
        release = gradient_noise(budget, self.rounds, self.log_term, self.noise, self.schedule, self.clip)
        return PrivacyPlan(self.name, budget, (release,))

    def start(self, weights: Tensor) -> AcceleratedState:
        return AcceleratedState(weights, weights)

    def round(self, r: int, state: AcceleratedState, federation: Federation) -> AcceleratedState:
        t, upsilon, mu = self._stage_of_round(r, federation)
        ag = state.w
        w = ag if t == 1 else state.sequence
        alpha, eta = 2 / (t + 1), 4 * upsilon / (t * (t + 1))
        share = alpha * ((1 - alpha) * mu + eta) / (eta + (1 - alpha**2) * mu)
        md = (1 - share) * ag + share * w
        gradient = federation.mean_message(md, r) + self.regularisation * md
        w = federation.prox(line_10(w, md, gradient, alpha, eta, mu), alpha / (mu + eta))
        return AcceleratedState(alpha * w + (1 - alpha) * ag, w)

    def _stage_of_round(self, r: int, federation: Federation) -> tuple[int, Tensor, float]:
        """Round r's number in its stage (from 1), and the stage's υ and μ."""
        for stage in self.stages:
            if r < stage.rounds:
                return r + 1, federation.stepsize.new_full(federation.stepsize.shape, stage.upsilon), stage.mu
            r -= stage.rounds
        return r + 1, 1 / (2 * federation.stepsize), self.mu + self.regularisation


def line_10(w: Tensor, md: Tensor, gradient: Tensor, alpha: float, eta: Tensor, mu: Tensor | float) -> Tensor:
    """argmin_v α[⟨g, v⟩ + (μ/2)‖w^md − v‖²] + [(1−α)μ + η]/2·‖w − v‖², before projection.

    The objective is (μ+η)/2·‖v − this‖² and a constant, so projecting this point gives the minimiser over W.
    """
    return (alpha * mu * md + ((1 - alpha) * mu + eta) * w - alpha * gradient) / (mu + eta)
