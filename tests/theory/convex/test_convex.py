"""Convex paper: what ties its statements together, exact cases, and the statements that fail as printed."""

from itertools import product
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.theory import SCHEDULES, THEOREMS, AssumptionError
from silodp.theory.convex.upper import participation, unbalanced
from silodp.theory.problems.known import LinearOnBall


def value(key, **parameters):
    return THEOREMS[key](**parameters).value


@settings(max_examples=30, deadline=None)
@given(epsilon=st.floats(1e-3, 1.0), n=st.integers(1, 10_000), share=st.floats(0.001, 1.0))
def test_subsampling_short_form_lies_above_the_exact_form(epsilon, n, share):
    got = THEOREMS["convex-subsampling"](n=n, K=share * n, epsilon_local=epsilon)
    assert got.terms["exact"] <= got.value


def test_minibatch_noise_allows_batches_in_a_range_only():
    # K ≥ 2·100/(4√(2·4)) = 17.68, with ln(2/δ) = 4.
    point = {"n": 100, "R": 1, "L": 3.0, "epsilon": 2.0, "delta": 2 * exp(-4)}
    assert THEOREMS["convex-2.1-noise"](**point, K=18).terms["smallest_batch"] == 18
    for K in (17, 101):
        with pytest.raises(AssumptionError, match="batch size"):
            THEOREMS["convex-2.1-noise"](**point, K=K)


@pytest.mark.parametrize(("d", "epsilon"), [(2, 0.5), (3, 1.0), (4, 2.0)])
def test_example_transcripts_by_enumeration(d, epsilon):
    """All d^d transcripts of the corrected Algorithm 3: the worst ratio between two records is e^ε0 exactly."""
    keep, other = exp(epsilon) / (exp(epsilon) + d - 1), 1 / (exp(epsilon) + d - 1)

    def probability(record, transcript):
        return np.prod([(keep if s == record else other) if r == record else 1 / d for r, s in enumerate(transcript)])

    worst = max(probability(0, t) / probability(1, t) for t in product(range(d), repeat=d))
    terms = THEOREMS["convex-E.1-example"](d=d, epsilon0=epsilon, C=1.0).terms
    assert (log(worst), terms["transcript"]) == pytest.approx((epsilon, epsilon))
    assert terms["round"] == pytest.approx(max(log(keep * d), log(1 / (other * d))))
    printed = THEOREMS["convex-E.1-example"](d=2 * 9, epsilon0=epsilon, C=3.0, reading="printed")
    assert (printed.terms["transcript"], printed.value) == (inf, pytest.approx(sqrt(2) * 3 * epsilon))


def test_random_participation():
    # M_r = 1 or 3, each by 1/2: E[1/M] = 2/3, √E[1/M²] = √(5/9).
    M, prime = participation([1, 3], [0.5, 0.5])
    assert (M, prime) == pytest.approx((1.5, 3 / sqrt(5)))
    assert prime <= M
    assert participation([1, 3], [0.5, 0.5], reading="printed")[1] == pytest.approx(1.8)
    assert participation([7], [1.0]) == pytest.approx((7, 7))
    with pytest.raises(AssumptionError, match="random participation"):
        participation([1, 3], [0.5, 0.6])


def test_unbalanced_silos_reduce_to_the_balanced_case_and_choose_the_smaller_variance():
    same = unbalanced([50] * 4, [1.0] * 4, [1e-5] * 4, 10, [1, 4], [0.5, 0.5])
    assert same.n_min == 50
    assert same.M_tilde == pytest.approx(1.6)
    assert same.privacy_term == pytest.approx(log(25 / 1e-5) * log(2 / 1e-5) / 2500)
    # One silo of four needs ten times the privacy: with all four in a round the average, about ξ_max/4, is taken.
    unlike = unbalanced([50] * 4, [0.1, 1, 1, 1], [1e-5] * 4, 10, [4], [1.0])
    assert unlike.M_tilde == pytest.approx(4)
    assert unlike.privacy_term == pytest.approx((100 + 3) / 4 * same.privacy_term)


@settings(max_examples=50, deadline=None)
@given(
    n=st.integers(10, 10**6),
    d=st.integers(1, 1000),
    M=st.integers(1, 1000),
    epsilon=st.floats(0.05, 5),
    beta=st.floats(1e-6, 1e4),
)
def test_272_covers_the_sum_of_stability_and_shifted_empirical_risk(n, d, M, epsilon, beta):
    """Lemma D.2 + the shifted Lemma D.4 at the schedule's own R, K, η, with φ = L: never above Theorem 2.1's bound."""
    delta = 1e-6
    plan = SCHEDULES["theorem-2.1"](n=n, d=d, M=M, L=1.0, D=1.0, beta=beta, epsilon=epsilon, delta=delta)
    shared = {"M": M, "R": plan.rounds, "beta": beta, "eta": plan.step}
    stability = value("convex-lemma-D.2", n=n, L=1.0, **shared)
    spread = {"sigma": sqrt(plan.sigma2), "phi": 1.0, "upsilon": 0.0}
    empirical = value("convex-lemma-D.4-shifted", d=d, N=M, K=plan.batch, D=1.0, **spread, **shared)
    total = value("convex-lemma-D.1", stability=stability, empirical=empirical)
    bound = value("convex-2.1", n=n, d=d, M=M, R=plan.rounds, L=1.0, D=1.0, epsilon=epsilon, delta=delta)
    assert total <= bound


def test_message_variance_is_the_exact_one():
    """All draws of M = 2 of N = 3 silos with K = 1 of 2 records enumerated: Lemma D.5 is an equality without noise."""
    silos = np.array([[1.0, 3.0], [0.0, 0.0], [5.0, -1.0]])
    means = silos.mean(axis=1)
    outcomes = [
        (silos[a, i] + silos[b, j]) / 2 for a, b in ((0, 1), (0, 2), (1, 2)) for i, j in product((0, 1), (0, 1))
    ]
    exact = np.var(outcomes)
    phi, upsilon = sqrt(np.mean(silos.var(axis=1))), sqrt(np.mean((means - means.mean()) ** 2))
    got = value("convex-lemma-D.5", d=1, N=3, M=2, K=1, phi=phi, upsilon=upsilon, sigma=0.0)
    assert got == pytest.approx(exact)
    assert value("convex-lemma-D.5", d=1, N=1, M=1, K=1, phi=0.0, upsilon=9.0, sigma=0.0) == 0


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 10**5), d=st.integers(1, 1000), epsilon=st.floats(0.01, 10), R=st.integers(1, 1000))
def test_upper_bounds_stay_above_lower_ones_and_fall_with_data(n, d, epsilon, R):
    point = {"d": d, "L": 1.0, "D": 1.0, "epsilon": epsilon, "delta": 1e-20}
    upper = value("convex-2.1", n=n, M=1000, R=R, **point)
    assert upper >= value("convex-3.1", n=n, N=1000, **point) / 2
    assert value("convex-2.1", n=4 * n, M=1000, R=R, **point) <= upper / 2 * (1 + 1e-12)
    assert value("convex-2.1", n=n, M=4000, R=R, **point) == pytest.approx(upper / 2)
    # ε at its limit ln(2/δ): the private part is as small as the theorem lets it be.
    assert value("convex-2.1", n=n, M=1000, R=R, **(point | {"epsilon": log(2e20)})) <= upper


@pytest.mark.parametrize("sigma", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("step", [0.02, 0.25, 2.0])
def test_shifted_lemma_d4_holds_on_runs_with_the_minimiser_on_the_boundary(sigma, step):
    """Projected noisy gradient descent on constant records, 400 runs: the mean of w_1 … w_R keeps to its bound."""
    d, R, problem, generator = 3, 40, LinearOnBall(3, bias=1.0), np.random.default_rng(8)
    gradient = problem.gradients(np.zeros(d), problem.draw(1, generator))[0]
    w, mean = np.zeros((400, d)), np.zeros((400, d))
    for _ in range(R):
        w = w - step * (gradient + sigma * generator.standard_normal(w.shape))
        w /= np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True))
        mean += w / R
    risks = np.array([problem.excess_population_risk(row) for row in mean])
    point = {"d": d, "N": 1, "M": 1, "R": R, "K": 1, "D": 1.0, "beta": 0.1, "phi": 0.0, "upsilon": 0.0}
    bound = value("convex-lemma-D.4-shifted", **point, eta=step, sigma=sigma)
    assert risks.mean() + 4 * risks.std() / 20 <= bound
