"""Noise of SDP FedProx-SPIDER for batches smaller than a silo: what sampling amplifies is given back to the noise."""

from math import log, sqrt

import pytest

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.privacy.plan import Budget


@pytest.mark.parametrize("records", [1000, 250])
def test_the_theorems_budget_grows_with_n_over_k(records):
    """ε̃ = εnN/(4MK√(2R ln(1/δ))) for a difference of sensitivity 4L/K, shared by M silos (Algorithm 10, line 12)."""
    n, N, M, R, q, epsilon, delta = 1000, 40, 20, 16, 4, 0.5, 1e-6
    options = {"rounds": R, "phase_length": q, "silos": N, "cohort": M, "noise": "theorem"}
    plan = (
        ALGORITHMS["sdp_fedprox_spider"]
        .with_options(options)
        .plan(Budget(n, R, epsilon, delta, 4.0, batch_records=records))
    )
    release = plan["difference"]
    assert release.records == records
    budget = epsilon * n * N / (4 * M * records * sqrt(2 * R * log(1 / delta)))
    wanted = release.sensitivity / gaussian_mu(budget, delta / (2 * R)) / sqrt(M)
    assert release.noise == pytest.approx(wanted, rel=1e-6)
