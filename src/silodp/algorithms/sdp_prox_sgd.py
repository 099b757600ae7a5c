"""SDP Prox-SGD (non-convex paper, Algorithm 7), on an ideal sum in place of the shuffle protocol P_vec.

K = records a message, R = rounds, N = silos, M = silos of a round, n = a silo's records, η = step size, L = clip.
"""

from dataclasses import dataclass, replace

from silodp.algorithms.base import Look, ideal_share
from silodp.algorithms.prox_sgd import ProxSGD
from silodp.privacy.plan import Budget, PrivacyPlan


@dataclass(frozen=True)
class SDPProxSGD(ProxSGD):
    """Prox-SGD whose noise is made for the sum over the silos of a round, which is all that the server sees.

    The paper steps by η = 1/(2β), as its proof has it; Algorithm 7 prints 1/β.

    Attributes:
        silos, cohort: N and M.
        noise: "moments", the noise of Prox-SGD over √M in each silo; "theorem", the least for one sum to be
            (εN/(2M), δ)-DP, which Algorithm 7 asks of P_vec; or each silo's σ/L.
        average, mu, schedule, clip, log_term: as in Prox-SGD.
    """

    silos: int = 1
    cohort: int = 1

    name = "sdp_prox_sgd"
    look = Look(11, "#b3485a", "h", (0, (1, 1.3)))
    variants = frozenset({"clipping", "summation"})
    trust = "sum"

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n/R⌋; each silo's σ² is 1/M of what it needs alone (Algorithm 7 with a Gaussian in place of P_vec).
        Holds if the server sees sums of M silos alone, all with this noise, and the accountant bounds it by ε.
        """
        M = self.cohort
        if budget.epsilon is None or self.noise == "moments":
            return super().plan(budget).behind_sum_of(M)
        if self.noise == "theorem":
            release = ideal_share(self._release(budget), M, budget.epsilon * self.silos / (2 * M), budget.delta)
            return PrivacyPlan(self.name, budget, (release,), trusted_sum=M)
        return replace(super().plan(budget), trusted_sum=M)
