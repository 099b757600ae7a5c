"""What sums over silos deliver, and what drawing silos does not."""

import math

import numpy as np
import pytest
from events import delivered_epsilon
from scipy import stats

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting.mechanisms import gaussian_epsilon, gaussian_log_profile, gaussian_mu
from silodp.privacy.plan import Budget
from silodp.privacy.true_epsilon import ends

BUDGET = Budget(100, 20, 2.0, 1e-4, 16.0)


def made(name, budget=BUDGET, **options):
    return ALGORITHMS[name].with_options({"rounds": budget.rounds, "phase_length": 5} | options).plan(budget)


@pytest.mark.parametrize("name", ["prox_sgd", "prox_svrg", "prox_pl_svrg", "fedprox_spider"])
def test_a_sum_delivers_what_the_isrl_dp_form_delivers_and_a_message_by_itself_less(name):
    summed = made(f"sdp_{name}", silos=25, cohort=16)
    alone, found = delivered_epsilon(made(name), 1e-4), ends([summed])
    assert found.upper == pytest.approx(alone.upper, rel=1e-6)
    assert found.method.startswith("seen by the server: Gaussian sums over 16 silos; ")
    assert delivered_epsilon(summed, 1e-4).lower > 2 * found.upper


def test_the_budget_that_algorithm_7_hands_to_a_sum():
    """(εN/(2M), δ): half the claim when all silos take part, more than the claim when fewer than half do."""
    for M, epsilon in ((10, 1.0), (5, 2.0), (2, 5.0)):
        plan = made("sdp_prox_sgd", noise="theorem", silos=10, cohort=M)
        assert ends([plan]).upper == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("name", ["sdp_prox_svrg", "sdp_prox_pl_svrg", "sdp_fedprox_spider"])
def test_the_budgets_of_algorithms_8_to_10_hold_when_all_silos_take_part(name):
    plan = made(name, noise="theorem", silos=10, cohort=10)
    assert 0 < ends([plan]).upper <= 2.0


def test_each_sum_of_algorithm_8_is_as_private_as_its_budget():
    """ε̃ = εn/(8K√(4EQ ln(2/δ))), δ̃ = δ/(2EQ) at M = N, E = 4, Q = 5, K = 20; K → n for anchors."""
    plan = made("sdp_prox_svrg", noise="theorem", silos=10, cohort=10).as_seen_by_adversary
    root = 8 * math.sqrt(80 * math.log(2e4))
    for kind, records in (("difference", 20), ("anchor", 100)):
        epsilon = gaussian_epsilon(1e-4 / 40, 1 / plan[kind].noise_multiplier)
        assert epsilon == pytest.approx(2 * 100 / (records * root), rel=1e-6)


def test_drawing_silos_does_not_amplify_where_the_sum_tells_who_was_drawn():
    """One of N = 10 silos a round at (εN/(2M), δ) = (1, 1e-6), for a claim of ε = 0.2, which Theorem E.1 allows.

    K = 40 gradients of silo 0 are L, those of all other silos −L, and one of silo 0 is replaced by −L: densities of the
    sum, in units of its noise. δ(ε) is a tenth of the single sum's, a thousand times the claimed δ.
    """
    epsilon, delta, N, K = 0.2, 1e-6, 10, 40
    mu = gaussian_mu(epsilon * N / 2, delta)
    apart = np.linspace(-K * mu / 2 - 12, K * mu / 2 + 12, 400_001)
    width = apart[1] - apart[0]
    others = (N - 1) / N * stats.norm.pdf(apart, -K * mu / 2)
    one = others + stats.norm.pdf(apart, K * mu / 2) / N
    other = others + stats.norm.pdf(apart, K * mu / 2 - mu) / N
    spent = np.maximum(one - math.exp(epsilon) * other, 0).sum() * width
    assert spent > 1000 * delta
    # The limit, when the silos are told apart for certain.
    assert math.exp(gaussian_log_profile(epsilon, mu)) / N > 1000 * delta


@pytest.mark.parametrize("records", [1000, 250])
def test_the_theorems_budget_grows_with_n_over_k(records):
    """ε̃ = εnN/(4MK√(2R ln(1/δ))) for a difference of sensitivity 4L/K, shared by M silos (Algorithm 10, line 12)."""
    n, N, M, R, q, epsilon, delta = 1000, 40, 20, 16, 4, 0.5, 1e-6
    options = {"rounds": R, "phase_length": q, "silos": N, "cohort": M, "noise": "theorem"}
    method = ALGORITHMS["sdp_fedprox_spider"].with_options(options)
    release = method.plan(Budget(n, R, epsilon, delta, 4.0, batch_records=records))["difference"]
    assert release.records == records
    budget = epsilon * n * N / (4 * M * records * math.sqrt(2 * R * math.log(1 / delta)))
    wanted = release.sensitivity / gaussian_mu(budget, delta / (2 * R)) / math.sqrt(M)
    assert release.noise == pytest.approx(wanted, rel=1e-6)
