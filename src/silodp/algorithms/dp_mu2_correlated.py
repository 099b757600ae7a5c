"""DP-μ² with noise between fresh and difference: the banded inverse square root (paper: BISR, arXiv 2505.12128).

That the two are put together is derived here.
"""

from dataclasses import dataclass

from silodp.algorithms.base import Look
from silodp.algorithms.dp_mu2 import DPMu2
from silodp.algorithms.minibatch_sgd_correlated import inverse_root


@dataclass(frozen=True)
class DPMu2Correlated(DPMu2):
    """DP-μ² with the noise of `minibatch_sgd_correlated`, 16 terms."""

    name = "dp_mu2_correlated"
    label = "DP-μ² correlated"
    look = Look(22, "#7a3b2e", "8", (0, (4, 1, 2, 1)))
    mixing = inverse_root(16)
