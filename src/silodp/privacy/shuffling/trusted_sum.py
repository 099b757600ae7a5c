"""Sums of messages that nobody sees one by one: what the SDP algorithms stand on where no shuffle protocol is run.

Each of the M silos of a round adds a share of variance s² to its mean over K records; the server sees the mean alone:
its noise is s/√M against a replace-one sensitivity of 2L/(MK) (non-convex paper, ideal of Algorithms 4 and 5).
"""

import math
from dataclasses import replace

from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.privacy.plan import PrivacyPlan, Release


def shared_noise(plan: PrivacyPlan, M: int) -> PrivacyPlan:
    """The plan with the server's view moved to the sum of M messages, at the same privacy: each silo adds σ/√M."""
    root = math.sqrt(M)
    releases = tuple(replace(release, noise=release.noise / root) for release in plan.releases)
    return replace(plan, releases=releases, trusted_sum=M)


def ideal_share(release: Release, M: int, epsilon: float, delta: float) -> Release:
    """The release with the least share of noise for which one sum over M silos is (ε, δ)-DP, whoever takes part."""
    # Rounded to the private side.
    multiplier = (1 + 1e-9) / gaussian_mu(epsilon, delta)
    return replace(release, noise=multiplier * release.sensitivity / math.sqrt(M))
