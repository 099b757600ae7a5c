"""SDP Prox-SVRG (non-convex paper, Algorithm 8), on an ideal sum in place of the shuffle protocol P_vec.

K = records a difference, Q = phase length, E = epochs, N = silos, M = silos of a round, n = a silo's records, L = clip.
"""

from dataclasses import dataclass, replace
from typing import Any

from silodp.algorithms.base import Look, ideal_share
from silodp.algorithms.prox_svrg import ProxSVRG
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.theory.nonconvex.privacy import shuffled_svrg_budget


@dataclass(frozen=True)
class SDPProxSVRG(ProxSVRG):
    """Prox-SVRG whose noise is made for the sums over the silos of a round, which are all that the server sees.

    Attributes:
        silos, cohort: N and M.
        noise: "moments", the noise of Prox-SVRG over √M in each silo; "theorem", the least for each sum to be as
            private as Algorithm 8 asks of P_vec; or each silo's σ/L, one for both kinds of messages.
        phase_length: Q, steps of an epoch.
    """

    silos: int = 1
    cohort: int = 1

    name = "sdp_prox_svrg"
    look = Look(12, "#3a9a92", "<", (0, (1, 1.3)))
    variants = frozenset({"clipping", "sampler", "summation"})
    trust = "sum"

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K = ⌊n/Q⌋; each silo's σ² is 1/M of what it needs alone (Algorithm 8 with a Gaussian in place of P_vec).

        "theorem": ε̃ = εNn/(8MK√(4EQ ln(2/δ))) for a difference, with n for K for an anchor, δ̃ = δ/(2EQ).
        Holds if the server sees sums of M silos alone, all with this noise, and the accountant bounds it by ε.
        """
        M = self.cohort
        if budget.epsilon is None or self.noise == "moments":
            return super().plan(budget).behind_sum_of(M)
        if self.noise != "theorem":
            return replace(super().plan(budget), trusted_sum=M)
        difference, anchor = self._releases(budget)
        S, E, Q = self._epochs()
        sizes: dict[str, Any] = {"n": budget.n, "N": self.silos, "M": M, "K": difference.records}
        share = shuffled_svrg_budget(**sizes, S=S, E=E, Q=Q, epsilon=budget.epsilon, delta=budget.delta)
        releases = (
            ideal_share(difference, M, share.value, share.terms["delta"]),
            ideal_share(anchor, M, share.terms["full_batch"], share.terms["delta"]),
        )
        return PrivacyPlan(self.name, budget, releases, trusted_sum=M)
