"""SDP FedProx-SPIDER (non-convex paper, Algorithm 10), on an ideal sum in place of the shuffle protocol P_vec.

K = records a message, R = rounds, q = phase length, N = silos, M = silos of a round, n = a silo's records, L = clip.
"""

from dataclasses import dataclass, replace
from typing import Literal

from silodp.algorithms.base import Look, ideal_share
from silodp.algorithms.fedprox_spider import FedProxSpider
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.theory.nonconvex.privacy import shuffled_spider_budget


@dataclass(frozen=True)
class SDPFedProxSpider(FedProxSpider):
    """FedProx-SPIDER whose noise is made for the sums over the silos of a round, which are all that the server sees.

    Attributes:
        silos, cohort: N and M.
        noise: "moments", the noise of FedProx-SPIDER over √M in each silo; "theorem", the least for each sum to be as
            private as Algorithm 10 asks of P_vec; or each silo's σ/L, one for both kinds of messages.
        phase_length, random_iterate, spider_q1_noise, log_term, smoothness: as in FedProx-SPIDER.
    """

    silos: int = 1
    cohort: int = 1
    noise: Literal["moments", "theorem"] | float = "moments"

    name = "sdp_fedprox_spider"
    look = Look(14, "#004488", "s", (0, (1, 1.3)))
    variants = frozenset({"clipping", "log_term", "sampler", "spider_q1_noise", "summation"})
    trust = "sum"
    better_of = None

    def plan(self, budget: Budget) -> PrivacyPlan:
        """K as FedProx-SPIDER; each silo's σ² is 1/M of what it needs alone (Algorithm 10, a Gaussian for P_vec).

        "theorem": ε̃ = εnN/(4MK√(2R ln(1/δ))) and δ̃ = δ/(2R) for a difference; √q of that ε and qδ̃ for a fresh
        gradient, as errata have it.
        Holds if the server sees sums of M silos alone, all with this noise, and the accountant bounds it by ε.
        """
        M, alone = self.cohort, super().plan(budget)
        if budget.epsilon is None or self.noise == "moments":
            return alone.behind_sum_of(M)
        if self.noise != "theorem":
            sigma = self.noise
            return replace(alone, releases=tuple(replace(kind, noise=sigma) for kind in alone.releases), trusted_sum=M)
        share = shuffled_spider_budget(
            N=self.silos, M=M, R=self.rounds, q=self.phase_length, epsilon=budget.epsilon, delta=budget.delta
        )
        gradient, difference = alone.releases
        delta_fresh = min(share.terms["delta_fresh"], budget.delta / 2)
        releases = (
            ideal_share(gradient, M, share.terms["fresh"] * budget.n / gradient.records, delta_fresh),
            ideal_share(difference, M, share.value * budget.n / difference.records, share.terms["delta"]),
        )
        return replace(alone, releases=releases, trusted_sum=M)
