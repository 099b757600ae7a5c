"""ISRL-DP local SGD, the noisy form of federated averaging, and the same without noise: a baseline of both papers.

K = steps of a round, a record each, R = rounds, n = a silo's records, η = step size, L = clip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from silodp.algorithms.base import Algorithm, Look, State
from silodp.privacy.plan import Budget, PrivacyPlan, Release

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.federation.interface import Federation


@dataclass(frozen=True)
class LocalSGD(Algorithm[State]):
    """Each silo makes K one-record steps w ← w − η(clipped gradient + noise) from the broadcast model.

    The server averages the silos' models.

    Args:
        noise_at: each "step", as in the papers; each "contracted_step", which cannot expand distances; or, after
            contracted steps without noise, the "end" of the round, where √K of a step's noise is added once.
    """

    name = "local_sgd"
    label = "Local SGD"
    look = Look(1, "#d9a62e", "^", (0, (5, 1.5, 1.2, 1.5)))
    proximal = False
    variants = frozenset({"noise_at"})

    noise_at: Literal["step", "contracted_step", "end"] = "step"

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n√ε/(2√R)⌋ steps a round and σ² = 8L²KR ln(1/δ)/(n²ε²); each of the KR steps is a release.
        Holds if the accountant bounds it by ε; of contracted steps if none expands distances.
        """
        steps = budget.batch()
        noise = budget.noise(8 * steps * self.rounds * budget.log())
        contracted = self.noise_at == "contracted_step"
        release = Release("step", steps * self.rounds, 1, noise, steps=steps, contracted=contracted)
        if self.noise_at == "end":
            release = Release("model", self.rounds, steps, noise / math.sqrt(steps), contracted=True)
        return PrivacyPlan(self.name, budget, (release,))

    def start(self, weights: Tensor) -> State:
        return State(weights)

    def round(self, r: int, state: State, federation: Federation) -> State:
        # Models are averaged whatever `server_update` says: a sum of models is not a model.
        kind = "model" if self.noise_at == "end" else "step"
        return State(federation.mean_local_model(state.w, r, kind))
