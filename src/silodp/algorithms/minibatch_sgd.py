"""ISRL-DP minibatch SGD (convex paper, Algorithm 1), and the same without noise as a baseline.

K = records a message, R = rounds, n = a silo's records, η = step size, L = clip, S_r = the silos of round r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from silodp.algorithms.base import Algorithm, Look, S, State
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.theory.convex.privacy import minibatch_noise

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation
    from silodp.theory.convex.schedules import Schedule


def gradient_noise(
    budget: Budget, rounds: int, log_term: str, noise: str | float, schedule: Schedule | None, clip: float | None
) -> Release:
    """K and σ (in units of L) of R gradient messages, as Algorithms 1 and 2 have them.

    `noise` is "moments", σ² = 8L²R ln(·/δ)/(n²ε²) with `log_term` (remark after Theorem 2.1); "theorem", σ² =
    256L²R ln(2.5R/δ)ln(2/δ)/(n²ε²) with its conditions on ε and K (Theorem 2.1); or σ/L itself. A `schedule`, made for
    L = `clip`, gives K and σ².
    """
    if schedule is not None:
        assert clip is not None
        return Release("gradient", rounds, schedule.batch, math.sqrt(schedule.sigma2) / clip)
    k = budget.batch()
    if budget.epsilon is None or noise == "moments":
        sigma = budget.noise(8 * rounds * budget.log(float(log_term[0])))
    elif noise == "theorem":
        theorem = minibatch_noise(n=budget.n, R=rounds, L=1.0, epsilon=budget.epsilon, delta=budget.delta, K=k)
        sigma = math.sqrt(theorem.value)
    else:
        sigma = float(noise)
    return Release("gradient", rounds, k, sigma)


@dataclass(frozen=True)
class NoisyGradients(Algorithm[S]):
    """Base of algorithms that send what minibatch SGD sends, one noisy minibatch gradient a round.

    Attributes:
        log_term: log in the moments-form noise; the non-convex experiments print ln(2/δ), the convex ones ln(1/δ).
        noise: "moments", "theorem", or σ in units of L; see `gradient_noise`.
    """

    log_term: Literal["1/delta", "2/delta"] = "1/delta"
    noise: Literal["moments", "theorem"] | float = "moments"

    variants = frozenset({"clipping", "log_term", "sampler"})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K and σ of minibatch SGD: what is made of messages, and of what the server sends, costs no privacy.
        Holds if ε and K are as the theorem asks ("theorem", `schedule`); else if the accountant bounds it by ε.
        """
        release = gradient_noise(budget, self.rounds, self.log_term, self.noise, None, None)
        return PrivacyPlan(self.name, budget, (release,))


@dataclass(frozen=True, eq=False)
class AveragedState(State):
    """The model, and the average of iterates where it is kept."""

    average: Tensor | None = None  # set in each round


@dataclass(frozen=True)
class MinibatchSGD(NoisyGradients[AveragedState]):
    """w ← prox(w − η·mean over S_r of the silos' noisy minibatch gradients).

    Attributes:
        log_term, noise: as in `NoisyGradients`.
        average: keep Σγ_r w_r/Σγ_r over w_1 … w_R, the paper's output.
        mu: μ in γ_r = (1−μη)^−(r+1); 0 for uniform weights.
        schedule: what a theorem prescribes for K, σ² and γ_r; R and η are then given as it has them.
        clip: L that the schedule was made for.
    """

    average: bool = False
    mu: float = 0.0
    schedule: Schedule | None = None
    clip: float | None = None

    name = "minibatch_sgd"
    label = "MB-SGD"
    look = Look(0, "#b3485a", "o", (0, (5, 1.8)))
    schedules = frozenset({"theorem-2.1", "theorem-2.1-strong", "theorem-2.2", "theorem-2.2-strong"})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n√ε/(2√R)⌋ and σ² = 8L²R ln(·/δ)/(n²ε²) (convex paper, remark after Theorem 2.1), unless told.
        Holds if ε and K are as the theorem asks ("theorem", `schedule`); else if the accountant bounds it by ε.
        """
        release = gradient_noise(budget, self.rounds, self.log_term, self.noise, self.schedule, self.clip)
        return PrivacyPlan(self.name, budget, (release,))

    def start(self, weights: Tensor) -> AveragedState:
        return AveragedState(weights, weights if self.average else None)

    def round(self, r: int, state: AveragedState, federation: Federation) -> AveragedState:
        gradient = federation.mean_message(state.w, r)
        w = federation.prox(state.w - federation.stepsize * gradient, federation.stepsize)
        if state.average is None:
            return AveragedState(w)
        share = _share(r, self.mu * federation.stepsize) if self.mu else 1 / (r + 1)
        return AveragedState(w, state.average + share * (w - state.average))

    def output(self, state: AveragedState) -> Tensor:
        return state.w if state.average is None else state.average


def _share(r: int, decay: Tensor) -> Tensor:
    """γ_r/(γ_0 + … + γ_r) = (1−q)^0/((1−q)^r + … + 1) with q = μη, which cannot overflow as γ_r can."""
    powers = (1 - decay.clamp(max=1.0)) ** (r + 1)
    return decay / (1 - powers)
