"""Localised accelerated minibatch SGD (paper: Gao, Lowy, Zhou and Wright 2024, arXiv 2407.09690), on disjoint parts.

From notes on the paper, whose text was not at hand: phases on ⌊n/2^i⌋ new records, λ_i = λ·2^((i−1)p), the ball of
radius 2L/λ_i around the last phase's model. Derived here: p = 3, rounds in proportion to 1/√λ_i (the condition number's
root) with one stage a phase, λ = 1/(4ηR_1²), all records of a part in each of its rounds, and the exact accounting.

K = records a message, R_i = rounds of phase i, n = a silo's records, η = step size, L = clip, F̂_i = loss on part i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from silodp.algorithms.accelerated_minibatch_sgd import line_10
from silodp.algorithms.base import Algorithm, Look, State, is_over
from silodp.privacy.plan import Budget, PrivacyPlan, Release

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation

# p: by how many powers of two λ grows from phase to phase.
POWER = 3


def phase_rounds(rounds: int) -> tuple[int, ...]:
    """R_1, R_2, … ∝ 2^(−p(i−1)/2), each at least one and together `rounds`."""
    shares = [2 ** (-POWER * i / 2) for i in range(rounds)]
    later = [round(rounds * share / sum(shares)) for share in shares[1:]]
    later = [length for length in later if length]
    return (rounds - sum(later), *later)


@dataclass(frozen=True, eq=False)
class LocalisedState(State):
    """w^ag, which is the model; the sequence w of the long steps; and the model w_{i−1} that the phase began with."""

    sequence: Tensor  # set in each round
    centre: Tensor  # in the first round of each phase


@dataclass(frozen=True)
class LocalisedAccelerated(Algorithm[LocalisedState]):
    """Accelerated steps on F̂_i(w) + (λ_i/2)‖w − w_{i−1}‖² in a ball around w_{i−1}, phase after phase.

    Where a silo has no records left for a phase, its rounds change nothing.
    """

    name = "localised_accelerated"
    label = "Localised acc."
    look = Look(23, "#1b1b6b", "H", (0, (2, 1, 1, 1)))
    proximal = False
    variants = frozenset({"clipping"})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """Phase i: K = ⌊n/2^i⌋, all records of its part, and σ_i² = 8L²R_i ln(1/δ)/(K²ε²) (derived).

        A record is in one part, so that ε is the largest phase's; with these σ_i all phases have the same.
        Holds if no record is in two parts, and the accountant bounds it by ε.
        """
        releases, first = [], 0
        for i, length in enumerate(phase_rounds(self.rounds), start=1):
            size = max(budget.n // 2**i, 1)
            if first + size <= budget.n:
                noise = budget.noise(8 * length * budget.log()) * budget.n / size
                releases.append(Release(f"phase_{i}", length, size, noise, sampler="all", part=(first, size)))
            first += size
        return PrivacyPlan(self.name, budget, tuple(releases))

    def start(self, weights: Tensor) -> LocalisedState:
        return LocalisedState(weights, weights, weights)

    def round(self, r: int, state: LocalisedState, federation: Federation) -> LocalisedState:
        lengths = phase_rounds(self.rounds)
        phase = next(i for i in range(len(lengths)) if r < sum(lengths[: i + 1]))
        t = r - sum(lengths[:phase]) + 1
        kind = f"phase_{phase + 1}"
        if is_over(t - 1, federation, kind):
            return state
        ag, w, centre = (state.w, state.w, state.w) if t == 1 else (state.w, state.sequence, state.centre)
        mu = 2.0 ** (POWER * phase) / (4 * federation.stepsize * lengths[0] ** 2)
        alpha, eta = 2 / (t + 1), 2 / (t * (t + 1)) / federation.stepsize
        share = alpha * ((1 - alpha) * mu + eta) / (eta + (1 - alpha**2) * mu)
        md = (1 - share) * ag + share * w
        gradient = federation.mean_message(md, r, kind) + mu * (md - centre)
        w = line_10(w, md, gradient, alpha, eta, mu)
        reach = 2 * federation.clip[:, None] / mu / (w - centre).norm(dim=1, keepdim=True)
        w = centre + reach.clamp(max=1) * (w - centre)
        return LocalisedState(alpha * w + (1 - alpha) * ag, w, centre)
