"""SDP Prox-PL-SVRG (non-convex paper, Algorithm 9), on an ideal sum in place of the shuffle protocol P_vec.

S = restarts.
"""

from dataclasses import dataclass

from silodp.algorithms.base import Look
from silodp.algorithms.prox_pl_svrg import ProxPLSVRG
from silodp.algorithms.sdp_prox_svrg import SDPProxSVRG


@dataclass(frozen=True)
class SDPProxPLSVRG(SDPProxSVRG, ProxPLSVRG):
    """S runs of SDP Prox-SVRG, each from a random iterate of the one before.

    With "theorem" noise each run gets (ε/(2√(2S ln(2/δ))), δ/(2S)) of the budget; Algorithm 9 prints it without the
    logarithm, which advanced composition needs.

    Attributes:
        restarts, silos, cohort, phase_length, noise: as in Prox-PL-SVRG and SDP Prox-SVRG.
    """

    name = "sdp_prox_pl_svrg"
    look = Look(13, "#d9a62e", ">", (0, (1, 1.3)))
