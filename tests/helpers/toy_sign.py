"""Sign SGD of noisy gradients: a toy of no paper."""

from dataclasses import dataclass

from silodp.algorithms.base import Algorithm, State
from silodp.privacy.plan import PrivacyPlan, Release

SCALE = 0.5


@dataclass(frozen=True)
class ToySign(Algorithm[State]):
    """w ← w − η·c·sign g, g the mean of the silos' noisy gradients.

    Attributes:
        damping: c, of a step.
    """

    damping: float = 0.5

    name = "toy_sign"
    label = "Toy sign SGD"
    proximal = False

    def __post_init__(self):
        super().__post_init__()
        if self.damping > 1:
            raise ValueError(f"damping = {self.damping}: must be at most 1")

    def plan(self, budget):
        """K from the budget, σ = L·8√R ln(1/δ)/(nε). Holds if the accountant bounds it by ε."""
        sigma = budget.noise(8 * self.rounds * budget.log(1)) if budget.epsilon else 0.0
        return PrivacyPlan(self.name, budget, (Release("gradient", self.rounds, budget.batch(), sigma),))

    def start(self, weights):
        return State(weights)

    def round(self, r, state, federation):
        step = SCALE * self.damping * federation.mean_message(state.w, r).sign()
        return State(state.w - federation.stepsize * step)
