"""DP-μ² whose noise takes back that of the message before (paper: Reshef and Levy 2025, arXiv 2506.02563).

s = a silo's weighted correction, y = its noise, q = their sum, t = round + 1.
"""

from dataclasses import dataclass

from silodp.algorithms.base import Look
from silodp.algorithms.dp_mu2 import DPMu2


@dataclass(frozen=True)
class DPMu2Difference(DPMu2):
    """A silo sends s + y − Y, Y its noise at its last participation: the sum q carries one draw a silo, not t."""

    name = "dp_mu2_difference"
    label = "DP-μ² difference"
    look = Look(21, "#2f6f62", "*", (0, (7, 1.5)))
    mixing = (1.0, -1.0)
