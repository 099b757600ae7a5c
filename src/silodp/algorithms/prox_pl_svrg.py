"""ISRL-DP FedProx-PL-SVRG (non-convex paper, Algorithm 2): Prox-SVRG with restarts, for proximal-PL losses.

R = rounds, S = restarts.
"""

from dataclasses import dataclass

from silodp.algorithms.base import Look
from silodp.algorithms.prox_svrg import ProxSVRG


@dataclass(frozen=True)
class ProxPLSVRG(ProxSVRG):
    """S runs of Prox-SVRG, ⌈R/S⌉ rounds each (the last may be shorter), each from a random iterate of the one before.

    Attributes:
        restarts: S.
        phase_length, noise: as in Prox-SVRG.
    """

    restarts: int = 2

    name = "prox_pl_svrg"
    label = "Prox-PL-SVRG"
    look = Look(10, "#d9a62e", ">", (0, (5, 1.5, 1.2, 1.5)))
    at_least_one = ("rounds", "phase_length", "restarts")

    @property
    def run_length(self) -> int:
        """Rounds between two restarts."""
        return -(-self.rounds // self.restarts)
