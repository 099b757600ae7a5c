"""Shuffled minibatch SGD (convex paper, Theorem 4.1): Algorithm 1 behind a trusted shuffler, one record a message.

K = records a message, R = rounds, N = silos, M = silos of a round, L = clip.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from silodp.algorithms.base import Look
from silodp.algorithms.minibatch_sgd import MinibatchSGD
from silodp.privacy.plan import Budget, PrivacyPlan, Release, Shuffler

if TYPE_CHECKING:
    from silodp.privacy.shuffling.shuffled_gaussian import ShuffledNoise


@cache
def calibrated(epsilon: float, N: int, M: int, n: int, R: int, delta: float) -> "ShuffledNoise":
    """A search of a second that plans of one setting share."""
    # Loads dp_accounting, which who reads the names of all algorithms need not.
    from silodp.privacy.shuffling.shuffled_gaussian import shuffled_noise

    return shuffled_noise(epsilon, N=N, M=M, n=n, R=R, delta=delta)


@dataclass(frozen=True)
class ShuffledMinibatchSGD(MinibatchSGD):
    """Minibatch SGD whose noise is made for what the server sees: M messages in random order.

    Attributes:
        silos, cohort: N and M.
        noise: σ in units of L where it is a number; else calibrated. `log_term` and `schedule` have no effect.
        average, mu, clip: as in minibatch SGD.
    """

    silos: int = 1
    cohort: int = 1

    name = "shuffled_minibatch_sgd"
    label = "Shuffled MB-SGD"
    look = Look(7, "#30102f", "D", (0, (1.2, 1.2)))
    schedules = frozenset()
    variants = frozenset({"clipping"})
    trust = "shuffler"

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = 1, as in the theorem's proof, and the σ that proven bounds ask for in place of its hidden constant.
        Holds if the shuffler is trusted and draws silos in secret; a given σ: and the accountant bounds it by ε.
        """
        sigma = 0.0
        if budget.epsilon is not None and not isinstance(self.noise, str):
            sigma = self.noise
        elif budget.epsilon is not None:
            sigma = self.calibrated(budget).sigma
        release = Release("gradient", self.rounds, 1, sigma)
        return PrivacyPlan(self.name, budget, (release,), Shuffler(self.silos, self.cohort))

    def calibrated(self, budget: Budget) -> "ShuffledNoise":
        """σ/L for the budget, and the C of Theorem 4.1 that it amounts to."""
        assert budget.epsilon is not None
        return calibrated(budget.epsilon, self.silos, self.cohort, budget.n, self.rounds, budget.delta)
