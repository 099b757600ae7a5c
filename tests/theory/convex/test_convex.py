"""Convex paper: values worked out by hand, limits, and the statements that fail as printed."""

from itertools import product
from math import e, exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.theory import SCHEDULES, THEOREMS, AssumptionError
from silodp.theory.convex.upper import participation, unbalanced
from silodp.theory.problems.known import LinearOnBall

# δ = 2e^-4 and R = 0.8: ln(2/δ) = 4 and ln(2.5R/δ) = 4; R has to be an integer, so R = 1 gives 4 + ln 1.25.
DELTA = 2 * exp(-4)
LOGS = 4 * (4 + log(1.25))


def value(key, **parameters):
    return THEOREMS[key](**parameters).value


def test_theorem_2_1_by_hand():
    # n = 100, M = 4, LD = 3·2: statistical 272·6/(2·10) = 81.6; private 272·6/2·√(d·LOGS)/(100 ε).
    point = {"n": 100, "d": 1, "M": 4, "R": 1, "L": 3.0, "D": 2.0, "delta": DELTA}
    assert value("convex-2.1", **point, epsilon=4.0) == pytest.approx(81.6)
    assert value("convex-2.1", **point, epsilon=0.1) == pytest.approx(816 * sqrt(LOGS) / 10)
    assert value("convex-2.2", **point, epsilon=4.0) == pytest.approx(545 * 6 / 20)
    # The complete form with Ξ̃ = 0.04, d = 4: √0.16 = 0.4 leads 1/√100.
    complete = {"n": 100, "d": 4, "M_tilde": 4, "privacy_term": 0.04, "L": 3.0, "D": 2.0}
    assert value("convex-2.1-complete", **complete) == pytest.approx(816 * 0.4)


def test_strong_and_empirical_rates_by_hand():
    point = {"n": 100, "d": 2, "M": 4, "R": 1, "L": 3.0, "epsilon": 2.0, "delta": DELTA}
    noise = 2 * LOGS / 200**2
    assert value("convex-2.1-strong", **point, mu=0.5) == pytest.approx(9 / 2 * (0.01 + noise))
    assert value("convex-2.2-strong", **point, mu=0.5) == pytest.approx(9 / 2 * (0.01 + noise))
    assert value("convex-2.4-strong", **point, mu=0.5) == pytest.approx(9 / 2 * noise)
    assert value("convex-2.4", **point, D=2.0) == pytest.approx(3 * sqrt(noise))


def test_one_pass_by_hand():
    # β D²/n² = 8·4/16; 1·2·√(1·4/(4·4))/1 with δ = e^-4.
    point = {"n": 4, "d": 1, "M": 4, "L": 1.0, "D": 2.0, "epsilon": 1.0, "delta": exp(-4)}
    assert value("convex-2.3", **point, beta=8.0) == pytest.approx(2 + 1)
    # Strong: LD e^{−4·√(1/4)} + (1/2)·4/(4·4) = 2e^-2 + 1/8.
    assert value("convex-2.3-strong", **point, beta=8.0, mu=2.0) == pytest.approx(2 * exp(-2) + 1 / 8)
    # At `matching_n` both terms of (8) are equal.
    n = THEOREMS["convex-2.3"](**point, beta=8.0).terms["matching_n"]
    assert 8 * 4 / n**2 == pytest.approx(2 * sqrt(4 / (4 * n)))


def test_accelerated_rounds_by_hand():
    # N = 3, M = 2: Υ² = (1−1/2)·υ² = 2 for υ = 2; φ² = 1, K = 2, R = 2.
    point = {"n": 100, "d": 2, "M": 2, "N": 3, "R": 2, "K": 2, "L": 3.0, "beta": 4.0, "phi": 1.0, "upsilon": 2.0}
    noise = 2 * 9 * 4 * log(5 / DELTA) / 200**2
    privacy = {"epsilon": 2.0, "delta": DELTA}
    expected = 4 * 4 / 4 + 2 * sqrt((1 / 4 + noise) / 2) + 2 * sqrt(2 / 4)
    assert value("convex-D.1", **point, **privacy, D=2.0) == pytest.approx(expected)
    strong = 5 * exp(-2 * 0.5) + (1 / 4 + noise) / 2 + 2 / 4
    assert value("convex-D.1-strong", **point, **privacy, Delta=5.0, mu=1.0) == pytest.approx(strong)
    everyone = point | {"M": 3}
    assert THEOREMS["convex-D.1"](**everyone, **privacy, D=2.0).terms["heterogeneity"] == 0


def test_shuffled_upper_bound_by_hand():
    point = {"n": 10, "d": 1, "N": 1000, "M": 1000, "R": 5, "L": 2.0, "epsilon": 1.0, "delta": 0.01}
    logs = log(5 * 1000 / 0.01) * log(500) * log(100)
    assert value("convex-4.1", **point, D=3.0) == pytest.approx(6 * (0.01 + sqrt(logs) / 10**4))
    assert value("convex-4.1-strong", **point, mu=0.5) == pytest.approx(8 * (1e-4 + logs / 10**8))
    unit = 4 * 5 * 1000 * logs / 10**8
    noise = THEOREMS["convex-4.1-noise"](n=10, N=1000, M=1000, R=5, L=2.0, epsilon=1.0, delta=0.01, C=3.0)
    assert (noise.value, noise.terms["unit"]) == pytest.approx((3 * unit, unit))


def test_noise_by_hand():
    # 256·9·1·LOGS/(100·2)² and K ≥ 2·100/(4√8) = 17.68.
    got = THEOREMS["convex-2.1-noise"](n=100, R=1, L=3.0, epsilon=2.0, delta=DELTA)
    assert got.value == pytest.approx(2304 * LOGS / 40_000)
    assert got.terms["smallest_batch"] == 18
    with pytest.raises(AssumptionError, match="batch size"):
        THEOREMS["convex-2.1-noise"](n=100, R=1, L=3.0, epsilon=2.0, delta=DELTA, K=17)
    with pytest.raises(AssumptionError, match=r"epsilon = 4.1 .* at most ln\(2/δ\) = 4"):
        THEOREMS["convex-2.1-noise"](n=100, R=1, L=3.0, epsilon=4.1, delta=DELTA)
    # Moments form: 8·9·4·5/(100·2)², K in (100√(2/(8·4·5)), 100√(2/16)] for δ = e^-5, R = 4.
    got = THEOREMS["convex-2.1-moments"](n=100, R=4, L=3.0, epsilon=2.0, delta=exp(-5))
    assert got.value == pytest.approx(72 * 20 / 40_000)
    assert (got.terms["K_above"], got.terms["K_at_most"]) == pytest.approx((100 * sqrt(1 / 80), 100 * sqrt(1 / 8)))
    assert value("convex-2.3-noise", L=2.0, epsilon=0.5, delta=1.25 * exp(-2)) == pytest.approx(8 * 4 * 2 / 0.25)
    assert value("convex-gaussian", sensitivity=3.0, epsilon=0.5, delta=1.25 * exp(-2)) == pytest.approx(3 * 2 / 0.5)


def test_theorem_noise_is_the_gaussian_mechanism_of_a_round():
    """256L²R… equals 32L² ln(1.25/δ̃)/(nε̃)² with ε̃ = ε/(2√(2R ln(2/δ))), δ̃ = δ/(2R)."""
    n, R, epsilon, delta = 500, 20, 1.5, 1e-5
    local, failure = epsilon / (2 * sqrt(2 * R * log(2 / delta))), delta / (2 * R)
    assert value("convex-2.1-noise", n=n, R=R, L=1.0, epsilon=epsilon, delta=delta) == pytest.approx(
        32 * log(1.25 / failure) / (n * local) ** 2
    )


@settings(max_examples=50, deadline=None)
@given(epsilon=st.floats(1e-3, 1.0), n=st.integers(1, 10_000), share=st.floats(0.001, 1.0))
def test_subsampling_short_form_lies_above_the_exact_one(epsilon, n, share):
    got = THEOREMS["convex-subsampling"](n=n, K=share * n, epsilon_local=epsilon)
    assert got.terms["exact"] <= got.value
    assert got.value == pytest.approx(2 * epsilon * share)


def test_user_level_by_hand():
    # n = 3, ε = ln 2, δ = 0.01: 3 ln 2; printed 3·4·0.01; exact 0.01(1+2+4).
    got = THEOREMS["convex-C.2"](n=3, epsilon=log(2), delta=0.01)
    assert (got.value, got.terms["delta"], got.terms["delta_exact"]) == pytest.approx((3 * log(2), 0.12, 0.07))
    one = THEOREMS["convex-C.2"](n=1, epsilon=0.3, delta=0.01)
    assert (one.value, one.terms["delta"]) == (0.3, 0.01)
    assert value("convex-C.1", epsilon=0.3, delta=0.01) == 0.3


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


def test_theorem_2_1_fails_as_printed_for_small_beta():
    """Constant records on the linear instance: R is 1, the output w_0 = 0 has risk LD, the bound is 0.27 LD.

    The mean of w_1 … w_R, run on the same schedule without noise, meets the bound.
    """
    n, M, d, epsilon, delta = 10_000, 100, 1, 1.0, 1e-8
    plan = {"n": n, "M": M, "d": d, "L": 1.0, "D": 1.0, "beta": 1e-6, "epsilon": epsilon, "delta": delta, "K": n}
    printed = SCHEDULES["theorem-2.1"](**plan, reading="printed")
    assert (printed.rounds, printed.first_iterate) == (1, 0)
    bound = value("convex-2.1", n=n, d=d, M=M, R=1, L=1.0, D=1.0, epsilon=epsilon, delta=delta)
    problem = LinearOnBall(d, bias=1.0)
    assert problem.excess_population_risk(np.zeros(d)) == pytest.approx(1.0)
    assert bound == pytest.approx(272 / sqrt(M * n))
    assert bound < 0.28
    right = SCHEDULES["theorem-2.1"](**plan)
    step = right.steps[0] * problem.gradients(np.zeros(d), problem.draw(1, np.random.default_rng(0)))[0]
    first = np.clip(-step, -1, 1)
    assert problem.excess_population_risk(first) <= bound


@settings(max_examples=50, deadline=None)
@given(n=st.integers(10, 10**6), d=st.integers(1, 1000), M=st.integers(1, 1000), epsilon=st.floats(0.05, 5),
       beta=st.floats(1e-6, 1e4))  # fmt: skip
def test_272_covers_the_sum_of_stability_and_shifted_empirical_risk(n, d, M, epsilon, beta):
    """Lemma D.2 + the shifted Lemma D.4 at the schedule's own R, K, η, with φ = L: never above Theorem 2.1's bound."""
    delta = 1e-6
    plan = SCHEDULES["theorem-2.1"](n=n, d=d, M=M, L=1.0, D=1.0, beta=beta, epsilon=epsilon, delta=delta)
    shared = {"M": M, "R": plan.rounds, "beta": beta, "eta": plan.step}
    stability = value("convex-lemma-D.2", n=n, L=1.0, **shared)
    empirical = value("convex-lemma-D.4-shifted", d=d, N=M, K=plan.batch, D=1.0, sigma=sqrt(plan.sigma2), phi=1.0,
                      upsilon=0.0, **shared)  # fmt: skip
    total = value("convex-lemma-D.1", stability=stability, empirical=empirical)
    bound = value("convex-2.1", n=n, d=d, M=M, R=plan.rounds, L=1.0, D=1.0, epsilon=epsilon, delta=delta)
    assert total <= bound


def test_lemma_d4_as_printed_is_below_the_risk_of_the_first_iterate():
    """η = 10, R = 1, no noise, constant gradient of norm 1: w_0 = 0 has risk 1, the printed bound is 0.1."""
    point = {"d": 1, "N": 4, "M": 4, "R": 1, "K": 1, "D": 1.0, "beta": 0.025, "eta": 10.0, "sigma": 0.0}
    still = {"phi": 0.0, "upsilon": 0.0}
    assert value("convex-lemma-D.4", **point, **still, gradient=1.0, reading="printed") == pytest.approx(0.1)
    assert value("convex-lemma-D.4", **point, **still, gradient=1.0) >= 1.0


def test_lemmas_by_hand():
    assert value("convex-lemma-D.1", stability=0.5, empirical=0.25) == 0.75
    # 2·9·5·0.5/(10·3); the proof's own 9·0.5·6/30.
    got = THEOREMS["convex-lemma-D.2"](n=10, M=3, R=5, L=3.0, beta=1.0, eta=0.5)
    assert (got.value, got.terms["from_proof"]) == pytest.approx((1.5, 0.9))
    assert value("convex-lemma-D.2-strong", n=10, M=3, L=3.0, beta=1.0, mu=0.5, eta=0.5) == pytest.approx(36 / 14.5)
    # N = 3, M = 2: φ²/(MK) = 4/(2·2); (1/2)·υ²/2 = 9/4; 5·σ²/2 = 2.5.
    noise = {"d": 5, "N": 3, "M": 2, "K": 2, "phi": 2.0, "upsilon": 3.0, "sigma": 1.0}
    assert value("convex-lemma-D.5", **noise) == pytest.approx(1 + 2.25 + 2.5)
    # D²/(ηR) = 4/(0.25·8) = 2; 2η(1 + 2.25 + 1.25 + ‖∇‖² = 4) = 0.5·8.5.
    shared = noise | {"R": 8, "D": 2.0, "beta": 1.0, "eta": 0.25}
    assert value("convex-lemma-D.4", **shared, gradient=2.0) == pytest.approx(2 + 4.25)
    # Shifted: 1 + 5.75/(2(4−1)).
    assert value("convex-lemma-D.4-shifted", **shared) == pytest.approx(1 + 5.75 / 6)
    assert value("convex-lemma-D.9", L=3.0, beta=2.0) == pytest.approx(9 / 4)
    assert THEOREMS["convex-lemma-D.9"](L=3.0, beta=2.0, reading="printed").terms["lipschitz"] == 6
    got = THEOREMS["convex-lemma-D.10"](R=4, D=2.0, beta=8.0, V=3.0)
    assert (got.value, got.terms["regularisation"]) == pytest.approx((8 * 4 / 16 + 3, 3 / 8))
    assert value("convex-lemma-D.11", R=4, Delta=2.0, beta=4.0, mu=1.0, V=3.0) == pytest.approx(2 * exp(-2) + 9 / 4)


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


def test_lower_bounds_by_hand():
    # n = 4, N = 10⁴: √(nN) = 200; √d/(εn√N) = 2/(0.5·4·100) = 0.01; LD = 6.
    local = {"n": 4, "d": 4, "N": 10_000, "L": 3.0, "D": 2.0, "epsilon": 0.5, "delta": 1e-12}
    assert value("convex-3.1", **local) == pytest.approx(6 * (0.005 + 0.01))
    assert value("convex-E.4", **local) == pytest.approx(0.06)
    assert value("convex-3.1-strong", **local, mu=1.5) == pytest.approx(9 / (1.5 * 40_000) + 6e-4)
    assert value("convex-E.4-strong", **local) == pytest.approx(6e-4)
    # Central: √d/(εnN) = 2/(0.5·40000) = 1e-4.
    assert value("convex-E.3", **local) == pytest.approx(6 * (0.005 + 1e-4))
    assert value("convex-E.5", **local) == pytest.approx(6e-4)
    assert value("convex-E.3-strong", **local, mu=1.5) == pytest.approx(9 / 60_000 + 6e-8)
    assert value("convex-E.5-strong", **local) == pytest.approx(6e-8)
    # min{1, ·}: a tiny ε leaves the trivial bound LD.
    assert value("convex-E.4", **(local | {"epsilon": 1e-9})) == 6
    assert value("convex-nonprivate", n=4, N=25, phi=3.0, D=2.0) == pytest.approx(0.6)
    assert value("convex-nonprivate-strong", n=4, N=25, phi=3.0, mu=0.5) == pytest.approx(0.18)
    with pytest.raises(AssumptionError, match="L-Lipschitz loss on the ball"):
        value("convex-3.1-strong", **local, mu=1.6)


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 1000), d=st.integers(1, 1000), N=st.integers(2, 10**5), epsilon=st.floats(0.01, 1))
def test_trust_costs_root_n_each(n, d, N, epsilon):
    terms = THEOREMS["convex-models"](n=n, d=d, N=N, epsilon=epsilon).terms
    assert terms["isrl"] / terms["central"] == pytest.approx(sqrt(N))
    assert terms["local"] / terms["isrl"] == pytest.approx(sqrt(n))


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


def test_privacy_for_free_threshold():
    point = {"d": 5, "R": 10, "epsilon": 1.0, "delta": 1e-6}
    needed = value("convex-free", n=100, **point)
    assert needed == pytest.approx(5 * log(25e6) * log(2e6))
    bound = THEOREMS["convex-2.1"](n=round(needed), M=10, L=1.0, D=1.0, **point).terms
    assert bound["statistical"] == pytest.approx(bound["private"], rel=1e-3)


def test_shuffled_round_by_hand():
    # n = 1, ε0 = ln 3, N = 6400, ln(4/δ) = 12: e^ε0 = 3; 8√(36/6400) + 24/6400 = 0.6 + 0.00375; (3−1)/(3+1) = 1/2.
    delta = 4 * exp(-12)
    got = THEOREMS["convex-E.2"](N=6400, n=1, epsilon0=log(3), delta0=1e-15, delta=delta)
    assert got.value == pytest.approx(log(1 + 0.60375 / 2))
    excess = 2 * 6400 * 1e-15
    assert got.terms["delta_tilde"] == pytest.approx(delta + (1 + 0.60375 / 2 + 1) * excess)
    printed = THEOREMS["convex-E.2"](N=6400, n=1, epsilon0=log(3), delta0=1e-15, delta=delta, reading="printed")
    assert printed.value == got.value
    assert printed.terms["delta_tilde"] == pytest.approx(delta + excess)
    # n = 2: the group pays e^{2ε0} = 9 and the δ-part doubles twice over: 2·N·2·3.
    two = THEOREMS["convex-E.2"](N=6400, n=2, epsilon0=log(3), delta0=1e-15, delta=delta)
    assert two.terms["clones"] == pytest.approx(8 * sqrt(9 * 12 / 6400) + 72 / 6400)


def test_seven_n_n_delta0_is_too_small():
    """Printed: δ̃_r ≤ 7Nnδ0 at ε0 ≤ 1/n. With the factor e^ε+1 ≥ 2 it is 1 + 4e^{(n−1)/n}, 11.8 for n = 1000."""
    N, n, delta0 = 10**6, 1000, 1e-16
    share = N * n * delta0
    right = THEOREMS["convex-E.2"](N=N, n=n, epsilon0=1 / n, delta0=delta0, delta=share).terms["delta_tilde"]
    printed = THEOREMS["convex-E.2"](N=N, n=n, epsilon0=1 / n, delta0=delta0, delta=share, reading="printed")
    assert printed.terms["delta_tilde"] <= 7 * share
    assert right / share == pytest.approx(1 + 4 * exp(1 - 1 / n), rel=1e-2)
    assert right > 11 * share


def test_shuffled_rounds_follow_the_root_of_rounds_and_silos():
    point = {"n": 10, "epsilon0": 1e-4, "delta0": 1e-18}
    one = THEOREMS["convex-E.1-corollary"](N=10**4, R=4, **point)
    more = THEOREMS["convex-E.1-corollary"](N=10**4, R=16, **point)
    wide = THEOREMS["convex-E.1-corollary"](N=4 * 10**4, R=4, **point)
    assert more.value / one.value == pytest.approx(2, rel=0.05)
    assert wide.value / one.value == pytest.approx(0.5, rel=0.1)
    assert one.terms["epsilon_round"] == THEOREMS["convex-E.2"](N=10**4, delta=10**5 * 1e-18, **point).value


@pytest.mark.parametrize(("d", "epsilon"), [(2, 0.5), (3, 1.0), (4, 2.0)])
def test_example_transcripts_by_enumeration(d, epsilon):
    """All d^d transcripts of the corrected Algorithm 3: the worst ratio between two records is e^ε0 exactly."""
    keep, other = exp(epsilon) / (exp(epsilon) + d - 1), 1 / (exp(epsilon) + d - 1)

    def probability(record, transcript):
        return np.prod([(keep if s == record else other) if r == record else 1 / d for r, s in enumerate(transcript)])

    worst = max(probability(0, t) / probability(1, t) for t in product(range(d), repeat=d))
    got = THEOREMS["convex-E.1-example"](d=d, epsilon0=epsilon, C=1.0)
    assert log(worst) == pytest.approx(epsilon)
    assert got.terms["transcript"] == pytest.approx(epsilon)
    assert got.terms["round"] == pytest.approx(max(log(keep * d), log(1 / (other * d))))


def test_example_as_printed_gives_the_record_away():
    printed = THEOREMS["convex-E.1-example"](d=18, epsilon0=1.0, C=3.0, reading="printed")
    assert printed.terms["transcript"] == inf
    assert printed.value == pytest.approx(sqrt(2) * 3)
    # Corrected, d = 2C² is enough for C = 3 but not for C = 1: ln((e+1)/2)·√2 = 0.877 < 1.
    assert value("convex-E.1-example", d=18, epsilon0=1.0, C=3.0) > 3
    assert value("convex-E.1-example", d=2, epsilon0=1.0, C=1.0) == pytest.approx(sqrt(2) * log((e + 1) / 2))
    assert value("convex-E.1-example", d=10**6, epsilon0=1.0, C=1.0) == pytest.approx(1000, rel=1e-3)


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
    bound = value("convex-lemma-D.4-shifted", d=d, N=1, M=1, R=R, K=1, D=1.0, beta=0.1, eta=step, sigma=sigma, phi=0.0,
                  upsilon=0.0)  # fmt: skip
    assert risks.mean() + 4 * risks.std() / 20 <= bound
