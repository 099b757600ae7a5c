"""DP-SCAFFOLD (paper: Noble, Bellet and Dieuleveut 2022, arXiv 2111.09278, Algorithm 1), with noise for ISRL-DP.

Derived here: σ and its accounting, as the paper's privacy is against a third party; equal weights of silos, as in all
algorithms here; and K local steps that share minibatch SGD's batch, so that both take as many gradients.

K = local steps of a round, R = rounds, n = a silo's records, η = step size, L = clip, b = minibatch SGD's batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from silodp.algorithms.base import Algorithm, Look, State
from silodp.privacy.plan import Budget, PrivacyPlan, Release

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


@dataclass(frozen=True, eq=False)
class ControlState(State):
    """The model x, the server's control c, and `own`, (G, N, d), each silo's control c_i."""

    control: Tensor  # set in each round
    own: Tensor  # in each round, of the silos that take part


@dataclass(frozen=True)
class DPScaffold(Algorithm[ControlState]):
    """Local steps y ← y − η(H − c_i + c), H a noisy mean of clipped gradients; x ← mean y, c_i ← mean of a round's H.

    Attributes:
        silos: N.
        phase_length: K, local steps of a round.
        warm_start: the silos of the first round begin with c_i the mean of K noisy gradients at x_0, which are K more
            releases; else with 0.
    """

    silos: int = 2
    phase_length: int = 1
    warm_start: bool = False

    name = "dp_scaffold"
    label = "DP-SCAFFOLD"
    look = Look(19, "#c8641e", ">", (0, (5, 1)))
    proximal = False
    variants = frozenset({"clipping", "sampler"})

    def plan(self, budget: Budget) -> PrivacyPlan:
        """A batch of ⌊b/K⌋ records, b that of minibatch SGD; σ² = 8L²T ln(1/δ)/(n²ε²), T = RK releases (derived).

        A warm start makes T = (R + 1)K. Batches are drawn without replacement, as in the paper.
        Holds if the accountant bounds it by ε: the form of σ² is no proof.
        """
        steps = self.phase_length
        count = (self.rounds + self.warm_start) * steps
        batch = max(budget.batch() // steps, 1)
        noise = budget.noise(8 * count * budget.log())
        return PrivacyPlan(self.name, budget, (Release("gradient", count, batch, noise, sampler="subset"),))

    def start(self, weights: Tensor) -> ControlState:
        return ControlState(weights, weights * 0, (weights * 0)[:, None].repeat(1, self.silos, 1))

    def round(self, r: int, state: ControlState, federation: Federation) -> ControlState:
        steps, x = self.phase_length, state.w
        own, control, first = state.own.clone(), state.control, (r + self.warm_start) * steps
        if self.warm_start and r == 0:

            def warm(silo: int) -> Tensor:
                own[:, silo] = sum(federation.message(x, silo, k) for k in range(steps)) / steps
                return x

            federation.average(r, warm, add_up=False)
            control = own.mean(1)
        before = own.clone()

        def train_silo(silo: int) -> Tensor:
            y, total = x, x * 0
            for k in range(first, first + steps):
                h = federation.message(y, silo, k)
                y, total = y - federation.stepsize * (h - before[:, silo] + control), total + h
            own[:, silo] = total / steps
            return y

        w = federation.average(r, train_silo, add_up=False)
        # c ← c + (1/N)Σ(c_i⁺ − c_i) over all N silos: a mean, in which silos that were not drawn have no change.
        return ControlState(w, control + (own - before).mean(1), own)
