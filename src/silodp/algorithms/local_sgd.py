"""ISRL-DP local SGD, the noisy form of federated averaging, and the same without noise: a baseline of both papers."""

from dataclasses import dataclass

from silodp.algorithms.base import Algorithm, Federation, State
from silodp.privacy.plan import Budget, PrivacyPlan, Release


@dataclass(frozen=True)
class LocalSGD(Algorithm):
    """Each silo makes K one-record steps w ← w − η(clipped gradient + noise) from the broadcast model.

    The server averages the silos' models.
    """

    name = "local_sgd"
    label = "Local SGD"

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n√ε/(2√R)⌋ steps a round and σ² = 8L²KR ln(1/δ)/(n²ε²); each of the KR steps is a release."""
        steps = budget.batch()
        noise = budget.noise(8 * steps * self.rounds * budget.log())
        return PrivacyPlan(self.name, budget, (Release("step", steps * self.rounds, 1, noise, steps=steps),))

    def round(self, r: int, state: State, federation: Federation) -> State:
        w = state["w"]
        # Models are averaged whatever `server_update` says: a sum of models is not a model.
        return {"w": federation.average(r, lambda silo: federation.local_model(w, silo, r), add_up=False)}
