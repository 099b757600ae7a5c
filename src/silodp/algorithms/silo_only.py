"""Each silo by itself: minibatch SGD (convex paper, Algorithm 1) on one silo, what federating has to be better than."""

from __future__ import annotations

from dataclasses import dataclass

from silodp.algorithms.base import Look
from silodp.algorithms.minibatch_sgd import MinibatchSGD
from silodp.privacy.plan import Budget, PrivacyPlan


@dataclass(frozen=True)
class SiloOnly(MinibatchSGD):
    """Every silo trains a model of its own, w_i ← prox(w_i − η·its noisy minibatch gradient), in all R rounds.

    Training makes a federation of each silo alone; loss and error are the means over silos of each silo's own model on
    its own records. A server that publishes all models has seen what it sees of MB-SGD: the guarantee is the same.

    Attributes:
        log_term, noise, average, mu, schedule, clip: as `MinibatchSGD` has them.
    """

    name = "silo_only"
    label = "silo-only"
    look = Look(4, "#6b4a9c", "P", (0, (8, 2)))
    alone = True
    schedules = frozenset()

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K and σ² of minibatch SGD: what a silo releases does not depend on who else takes part."""
        return super().plan(budget)
