"""Non-convex paper: values worked out by hand, limits, and the statements that fail as printed."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from silodp.theory import THEOREMS, AssumptionError
from silodp.theory.nonconvex.svrg_schedule import theorem_e_2

DELTA = exp(-4)  # ln(1/δ) = 4


def value(key, **parameters):
    return THEOREMS[key](**parameters).value


def exact_delta(epsilon: float, ratio: float) -> float:
    """δ(ε) of a Gaussian mechanism with sensitivity over σ equal to `ratio`."""
    return norm.cdf(ratio / 2 - epsilon / ratio) - exp(epsilon + norm.logcdf(-ratio / 2 - epsilon / ratio))


def test_zcdp_by_hand():
    assert value("nonconvex-D.1", rho=0.25, delta=DELTA) == pytest.approx(0.25 + 2)
    # ε = 2, ln(1/δ) = 4: ρ = 4/32; back: 0.125 + √2.
    got = THEOREMS["nonconvex-D.1-short"](epsilon=2.0, delta=DELTA)
    assert (got.value, got.terms["converted"]) == pytest.approx((0.125, 0.125 + sqrt(2)))
    got = THEOREMS["nonconvex-D.2"](sensitivity=3.0, epsilon=2.0, delta=DELTA)
    assert (got.value, got.terms["rho"]) == pytest.approx((4 * 9 * 4 / 4, 0.125))
    assert value("nonconvex-lemma-D.1", R=5, rho=0.25) == 1.25
    # R = 2, δ' = e^-4: √16·0.5 + 2·0.5(e^0.5−1).
    got = THEOREMS["nonconvex-composition"](R=2, epsilon=0.5, delta=0.001, delta_slack=DELTA)
    assert got.value == pytest.approx(2 + (exp(0.5) - 1))
    assert got.terms["delta"] == pytest.approx(0.002 + DELTA)


@settings(max_examples=50, deadline=None)
@given(delta=st.floats(1e-12, 0.4), share=st.floats(0.001, 1.0))
def test_short_conversion_and_its_gaussian_hold_on_their_whole_domain(delta, share):
    epsilon = share * 2 * log(1 / delta)
    assert THEOREMS["nonconvex-D.1-short"](epsilon=epsilon, delta=delta).terms["converted"] <= epsilon
    variance = value("nonconvex-D.2", sensitivity=1.0, epsilon=epsilon, delta=delta)
    assert exact_delta(epsilon, 1 / sqrt(variance)) <= delta


@pytest.mark.parametrize(("delta", "last"), [(1e-2, 6.24), (1e-3, 6.97), (1e-5, 7.96), (1e-6, 8.33), (1e-10, 9.42)])
def test_printed_prox_sgd_noise_holds_up_to_some_epsilon_only(delta, last):
    """8L² ln(1/δ)/(ε²K²): within δ at `last`, beyond it 0.02 higher; the theorem allows ε up to min{8ln(1/δ), 15}."""
    for epsilon, holds in ((1.0, True), (last, True), (last + 0.02, False), (14.9, False)):
        sigma = sqrt(value("nonconvex-2.1-noise", K=10, L=1.0, epsilon=epsilon, delta=delta, reading="printed"))
        assert (exact_delta(epsilon, (2 / 10) / sigma) <= delta) == holds
    sigma = sqrt(value("nonconvex-2.1-noise", K=10, L=1.0, epsilon=last + 0.02, delta=delta))
    assert exact_delta(last + 0.02, 0.2 / sigma) <= delta


def test_printed_prox_sgd_noise_at_its_largest_epsilon():
    sigma = sqrt(value("nonconvex-2.1-noise", K=10, L=1.0, epsilon=15.0, delta=1e-6, reading="printed"))
    assert exact_delta(15.0, (2 / 10) / sigma) == pytest.approx(26e-6, abs=0.5e-6)


def test_svrg_noise_by_hand():
    # S = E = Q = 2, δ = 2e^-4: R = 4; base L²·S·4/(εn)² = 9·2·4/10⁴.
    delta, base = 2 * exp(-4), 72 / 10_000
    got = THEOREMS["nonconvex-2.2-noise"](n=100, S=2, E=2, Q=2, L=3.0, epsilon=1.0, delta=delta)
    assert got.value == pytest.approx(1024 * base * 4 * log(40 / delta))
    assert got.terms["sigma1_squared"] == pytest.approx(256 * base * 2 * log(20 / delta))
    assert got.terms["smallest_batch"] == 4  # 100/(4√(2·2·4·4)) = 3.125
    printed = THEOREMS["nonconvex-2.2-noise"](n=100, S=2, E=2, Q=2, L=3.0, epsilon=1.0, delta=delta, reading="printed")
    assert printed.value == pytest.approx(1024 * base * 4 * log(10 / delta))
    assert printed.terms["sigma1_squared"] == pytest.approx(256 * base * 2 * log(10 / delta))


def test_svrg_differences_need_four_times_the_variance_of_gradients():
    """At E = R (Q = 1) σ2²/σ1² = 4: differences have twice the sensitivity."""
    got = THEOREMS["nonconvex-2.2-noise"](n=100, S=3, E=4, Q=1, L=1.0, epsilon=1.0, delta=1e-5).terms
    assert got["sigma2_squared"] / got["sigma1_squared"] == pytest.approx(4)


def test_shuffled_svrg_budget_by_hand():
    # E = Q = S = 1, δ = 2e^-4: root 8M√16 = 32M. N = 4, M = 2, n = 10, K = 5: 4·10/(64·5); full batch 4/64.
    point = {"n": 10, "N": 4, "M": 2, "K": 5, "E": 1, "Q": 1, "epsilon": 1.0, "delta": 2 * exp(-4)}
    got = THEOREMS["nonconvex-2.2-shuffled-noise"](**point, S=1)
    assert (got.value, got.terms["full_batch"], got.terms["delta"]) == pytest.approx((1 / 8, 1 / 16, exp(-4)))
    assert value("nonconvex-2.2-shuffled-noise", **(point | {"K": 10}), S=1) == pytest.approx(1 / 16)
    printed = THEOREMS["nonconvex-2.2-shuffled-noise"](**point, S=2, reading="printed").terms
    right = THEOREMS["nonconvex-2.2-shuffled-noise"](**point, S=2).terms
    assert (printed["epsilon_restart"], right["epsilon_restart"]) == pytest.approx((1 / 4, 1 / 8))
    assert printed["full_batch"] > right["full_batch"]


def test_spider_noise_by_hand():
    # ln(1/δ) = 4, n = 10, ε = 2: unit 4/400 = 0.01; R = 4, q = 2: 16·9·2·0.01 = 2.88; 16·25·4·0.01 = 16; 64·9·4·0.01.
    point = {"n": 10, "R": 4, "q": 2, "L": 3.0, "beta": 5.0, "epsilon": 2.0, "delta": DELTA}
    got = THEOREMS["nonconvex-3.1-noise"](**point, reading="printed")
    assert got.value == pytest.approx(2.88)
    assert got.terms["sigma2_squared"] == pytest.approx(16)
    assert got.terms["sigma2_hat_squared"] == pytest.approx(23.04)
    # Rounds 0 … 4: three fresh messages of ρ/2 and two differences of ρ/4: twice the budget ρ = 1/8.
    assert got.terms["rho"] == pytest.approx(2 * 0.125)
    right = THEOREMS["nonconvex-3.1-noise"](**point)
    # Rounds 0 … 3: 2/2 + 2/4 = 1.5.
    assert right.value == pytest.approx(2.88 * 1.5)
    assert right.terms["rho"] == pytest.approx(0.125)


@settings(max_examples=50, deadline=None)
@given(R=st.integers(1, 500), q=st.integers(1, 500), n=st.integers(1, 1000), epsilon=st.floats(0.1, 20))
def test_spider_zcdp_adds_up_message_by_message(R, q, n, epsilon):
    """ρ of the transcript is the sum of Δ²/(2σ²): 2L/n for fresh messages, 4L/n for differences at σ̂2²."""
    delta, L = 1e-5, 2.0
    for reading, rounds in (("right", R), ("printed", R + 1)):
        got = THEOREMS["nonconvex-3.1-noise"](
            n=n, R=R, q=q, L=L, beta=1.0, epsilon=epsilon, delta=delta, reading=reading
        )
        hat = got.terms["sigma2_hat_squared"]
        each = [
            (2 * L / n) ** 2 / (2 * got.value) if r % q == 0 else (4 * L / n) ** 2 / (2 * hat) for r in range(rounds)
        ]
        assert got.terms["rho"] == pytest.approx(sum(each))


def test_shuffled_spider_budget_by_hand():
    # ln(1/δ) = 8, N = 4, M = 2, ε = 4: whole = 16/(8·4) = 1/2; R = 16: difference 1/8; q = 4: fresh √(4/16)/2 = 1/4.
    point = {"N": 4, "M": 2, "R": 16, "epsilon": 4.0, "delta": exp(-8)}
    got = THEOREMS["nonconvex-3.2-budget"](**point, q=4)
    assert (got.value, got.terms["fresh"]) == pytest.approx((1 / 8, 1 / 4))
    assert got.terms["delta_fresh"] == pytest.approx(4 * exp(-8) / 32)
    assert THEOREMS["nonconvex-3.2-budget"](**point, q=64).terms["fresh"] == pytest.approx(1 / 2)
    printed = THEOREMS["nonconvex-3.2-budget"](**point, q=4, reading="printed").terms
    assert (printed["fresh"], printed["delta_fresh"]) == pytest.approx((1 / 2, 2 * exp(-8) / 32))


def test_scalar_sum_variance_against_simulation():
    # width 2, g = 2, N = 3, b = 4, p = 1/4: (2/2)²·3·(1/4 + 3/4) = 3.
    assert value("nonconvex-scalar-sum", N=3, g=2, b=4, p=0.25, width=2.0) == pytest.approx(3.0)
    # At x = 1/2 of a level, rounding has its largest variance: the bound is attained, and the mean is the sum.
    generator = np.random.default_rng(2)
    x = np.full(3, 0.5)  # x·g/width = 1/2
    up = generator.random((20_000, 3)) < 0.5
    noise = generator.binomial(4, 0.25, (20_000, 3))
    sums = (up + noise).sum(axis=1) * (2.0 / 2) - 0.25 * 4 * 3 * (2.0 / 2)
    assert abs(sums.mean() - x.sum()) < 5 * sqrt(3 / 20_000)
    assert sums.var() == pytest.approx(3.0, rel=0.06)


def test_hybrid_by_hand():
    got = THEOREMS["nonconvex-G"](n=10, epsilon=1.0, delta=0.04)
    assert (got.value, got.terms["delta0"]) == pytest.approx((0.1, 0.001))
    assert got.terms["delta_user"] == pytest.approx(0.01 * exp(0.9))
    # κ = 2, L²/μ = 4, d ln(4n/δ)/(ε²N) with ln(40/δ) = 5: 4(4·2·5/(1·8) + 2/80).
    point = {"n": 10, "d": 2, "N": 8, "L": 2.0, "beta": 2.0, "mu": 1.0, "epsilon": 1.0, "delta": 40 * exp(-5)}
    assert value("nonconvex-G-risk", **point) == pytest.approx(4 * (5 + 1 / 40))
    assert value("nonconvex-G-risk", **point, reading="printed") == pytest.approx(4 * (4 * sqrt(10 / 8) + 2 / sqrt(80)))
    # It is Theorem 2.1 at (ε/n, δ/(4n)).
    budget = {"epsilon": 0.1, "delta": exp(-5)}
    assert value("nonconvex-2.1", **(point | budget), M=8) == pytest.approx(value("nonconvex-G-risk", **point))


def test_prox_sgd_risk_by_hand():
    # κ = 2, L²/μ = 4, ln(1/δ) = 4: 4·(4·1·4/((1·10)²·2) + 2/(2·10)).
    point = {"n": 10, "d": 1, "N": 3, "M": 2, "L": 2.0, "beta": 2.0, "mu": 1.0, "epsilon": 1.0}
    assert value("nonconvex-2.1", **point, delta=DELTA) == pytest.approx(4 * (0.08 + 0.1))
    assert value("nonconvex-2.1", **point, delta=DELTA, upsilon=2.0) == pytest.approx(0.72 + 4 / 4)
    # Shuffled: ln²(d/δ) = 16: 4(4·16/(10·3)² + 0.1).
    assert value("nonconvex-2.1-shuffled", **point, delta=DELTA) == pytest.approx(4 * (64 / 900 + 0.1))
    with pytest.raises(AssumptionError, match="enough shuffled silos"):
        value("nonconvex-2.1-shuffled", **(point | {"epsilon": 2.0}), delta=DELTA)


def test_prox_sgd_recursion_is_the_limit_of_its_rounds():
    """x ← (1−μ/2β)x + dσ²/(2βM) + L²/(βMK) for 400 rounds; the printed constants are 2 and 1/2 times its two parts."""
    point = {"d": 3, "M": 2, "K": 5, "L": 2.0, "Delta": 7.0, "beta": 4.0, "mu": 0.5, "sigma": 0.3}
    x = 7.0
    for _ in range(400):
        x = (1 - 0.5 / 8) * x + 3 * 0.09 / (2 * 4 * 2) + 4 / (4 * 2 * 5)
    assert value("nonconvex-2.1-recursion", **point, R=400) == pytest.approx(x)
    right = THEOREMS["nonconvex-2.1-recursion"](**point, R=400).terms
    printed = THEOREMS["nonconvex-2.1-recursion"](**point, R=400, reading="printed").terms
    assert printed["noise"] / right["noise"] == pytest.approx(2)
    assert printed["batch"] / right["batch"] == pytest.approx(1 / 2)
    # (20) prints 16 d ln(1/δ)L²/(με²K²M) with σ² = 8L² ln(1/δ)/(ε²K²).
    sigma = sqrt(value("nonconvex-2.1-noise", K=5, L=2.0, epsilon=1.0, delta=DELTA, reading="printed"))
    stated = THEOREMS["nonconvex-2.1-recursion"](**(point | {"sigma": sigma}), R=400, reading="printed").terms["noise"]
    assert stated == pytest.approx(16 * 3 * 4 * 4 / (0.5 * 25 * 2))


def test_svrg_risk_by_hand():
    # κL²d ln(1/δ)/(μ(εn)²M) = 4·4·1·4/(0.5·100·2) = 0.64; (N−M)υ²/(M(N−1)) = 1·4/4 = 1, over μ = 2.
    point = {"n": 10, "d": 1, "N": 3, "M": 2, "L": 2.0, "beta": 2.0, "mu": 0.5, "upsilon": 2.0, "epsilon": 1.0}
    assert value("nonconvex-2.2", **point, delta=DELTA) == pytest.approx(0.64 + 2)
    assert value("nonconvex-2.2", **point, delta=DELTA, reading="printed") == pytest.approx(0.64 + 1)
    assert value("nonconvex-2.2-shuffled", **point, delta=DELTA) == pytest.approx(0.64 * 2 / 9 + 2)


SVRG = {
    "n": 64,
    "d": 1,
    "M": 16,
    "L": 2.0,
    "beta": 2.0,
    "mu": 0.5,
    "Delta": 1.0,
    "epsilon": 1.0,
    "delta": DELTA,
    "Q": 5,
}


def test_svrg_schedule_by_hand():
    """κ = 4: 48 rounds in 10 epochs of 5; ΔμMε²n²/(κdL²) = 2¹¹; K^1.5√M = 74 ≥ n."""
    found = theorem_e_2(**SVRG, K=7)
    assert (found.restarts, found.rounds, found.step) == (11, 50, pytest.approx(1 / 16))
    terms = THEOREMS["nonconvex-2.2-noise"](n=64, S=11, E=10, Q=5, L=2.0, epsilon=1.0, delta=DELTA).terms
    assert found.anchor**2 == pytest.approx(terms["sigma1_squared"])
    assert found.difference**2 == pytest.approx(terms["sigma2_squared"])
    assert theorem_e_2(**SVRG, K=7, S=20).restarts == 20


@pytest.mark.parametrize(("changed", "said"), [
    ({"K": 6}, r"batch of Theorem E\.2: K = 6 is not allowed, it has to be at least \(n²/M\)\^\(1/3\) = 6\.3"),
    ({"S": 10}, r"restarts of Theorem E\.2: S = 10 is not allowed, it has to be at least 11"),
    ({"epsilon": 15.1, "delta": 1e-9}, r"epsilon = 15\.1 is not allowed"),
    ({"n": 10**6, "K": 5000, "M": 10**6, "epsilon": 10.0, "delta": 1e-9, "S": 100}, "batch for privacy: K = 5000"),
])  # fmt: skip
def test_a_svrg_schedule_outside_theorem_e2_is_refused(changed, said):
    with pytest.raises(AssumptionError, match=said):
        theorem_e_2(**(SVRG | {"K": 7} | changed))


def test_the_least_batch_of_theorem_e2_is_exact():
    """(625/5)^(1/3) is 5, which roots in floating point miss."""
    point = SVRG | {"n": 25, "M": 5, "K": 5}
    assert theorem_e_2(**point).step == pytest.approx(1 / 16)
    for wrong in ({"K": 4}, {"M": 4.999}, {"n": 26}):
        with pytest.raises(AssumptionError, match=r"batch of Theorem E\.2: K = \d is not allowed"):
            theorem_e_2(**(point | wrong))


def test_svrg_restart_contracts_only_with_the_missing_factor():
    """K^1.5√M = n, R = 12κ: 24κΔ/R = 2Δ, not the printed Δ/2; R = 48κ halves."""
    point = {"n": 64, "d": 1, "N": 16, "M": 16, "K": 7, "Delta": 1.0, "beta": 10.0, "mu": 1.0, "upsilon": 0.0}
    assert 7**1.5 * 4 >= 64
    assert value("nonconvex-2.2-restart", **point, R=120, sigma=0.0) == pytest.approx(2.0)
    assert value("nonconvex-2.2-restart", **point, R=480, sigma=0.0) == pytest.approx(0.5)
    assert value("nonconvex-2.2-restart", **point, R=120, sigma=0.0, reading="printed") <= 0.5
    # From the proof: 3Δ/(ημR) with η = min{1, K^1.5√M/n}/(8β), here at K = 1: η = 4/64/80.
    small = value("nonconvex-2.2-restart", **(point | {"K": 1}), R=120, sigma=0.0)
    assert small == pytest.approx(3 / ((4 / 64 / 80) * 1.0 * 120))
    noise = THEOREMS["nonconvex-2.2-restart"](**point, R=120, sigma=2.0).terms["noise"]
    assert noise == pytest.approx(3 * 4 / 32)


def test_spider_gradient_by_hand():
    # LβΔd ln(1/δ) = 2·1·1·1·4 = 8; √8/(1·10·√4)= 0.1414; ^(4/3); L²d·4/(100·4) = 0.04.
    point = {"n": 10, "d": 1, "N": 4, "M": 4, "L": 2.0, "Delta": 1.0, "beta": 1.0, "epsilon": 1.0, "delta": DELTA}
    assert value("nonconvex-3.1", **point) == pytest.approx((sqrt(8) / 20) ** (4 / 3) + 0.04)
    fewer = THEOREMS["nonconvex-3.1"](**(point | {"M": 2}), upsilon=3.0).terms
    assert fewer["silos"] == pytest.approx(2 / 6 * 9)
    assert fewer["mixed"] == pytest.approx(2 * 2 / 20)
    printed = THEOREMS["nonconvex-3.1"](**(point | {"M": 2}), reading="printed").terms
    assert (printed["silos"], printed["mixed"]) == pytest.approx((4 / 20, 2 * 2 / (10**1.5 * 2)))


def test_claim_45_needs_the_longer_constants():
    """A = η/4 − (η/2)qη²τ2²: −η/4 at the printed limit of q, η/8 at a quarter of it; then 20 and 12."""
    # 20·2βΔ/R = 20·2·3·5/10 = 60, 12dσ²/M = 12·2·1/4 = 6.
    point = {"d": 2, "M": 4, "R": 10, "Delta": 5.0, "beta": 3.0, "sigma": 1.0}
    assert value("nonconvex-3.1-claim", **point) == pytest.approx(66)
    assert value("nonconvex-3.1-claim", **point, reading="printed") == pytest.approx(16 * (3 + 0.5))
    budget = {"n": 100, "d": 2, "M": 4, "R": 10, "epsilon": 1.0, "delta": DELTA}
    eta, beta = 0.5, 1.0
    tau2 = 8 * 2 * (16 * beta**2 * 10 * 4 / 100**2) / 4
    for reading, expected in (("right", eta / 8), ("printed", -eta / 4)):
        q = value("nonconvex-3.1-phase", **budget, reading=reading)
        assert eta / 2 - beta * eta**2 / 2 - eta**3 * tau2 * q / 2 == pytest.approx(expected)


def test_shuffled_spider_by_hand():
    point = {"n": 100, "d": 1, "N": 10, "M": 10, "L": 1.0, "Delta": 1.0, "beta": 1.0, "epsilon": 1.0, "delta": 1e-6}
    got = THEOREMS["nonconvex-3.2"](**point)
    logs = log(1e9) ** 3
    assert got.value == pytest.approx((sqrt(logs) / 1000) ** (4 / 3) + logs / 1e6)
    X = 1000 / sqrt(logs)
    assert got.terms["rounds"] == pytest.approx(1000 / sqrt(logs) * X ** (1 / 3))
    # q ≤ 1/(η²τ2²) = ε²n²N²/(2dR ln³) with half to spare: the exponents 1/3 and 2/3 keep it, 1 and 1 would not (X > 1).
    assert got.terms["phase"] == pytest.approx(1e6 / (2 * got.terms["rounds"] * logs))
    assert 1e6 / (2 * 1000 / sqrt(logs) * X * logs) < X / 2
    # βΔ/R and the fresh noise dL²ln³R/(q(εnN)²) are both of the order of the first term.
    assert 1 / got.terms["rounds"] == pytest.approx(got.terms["variance_reduced"])


def test_lower_bounds_by_hand():
    # d ln(1/δ)/(ε²n²N) with ln(1/δ) = 20, n = 10, N = 4: 2·20/400 = 0.1, over (20 − ln 40)².
    point = {"n": 10, "d": 2, "N": 4, "L": 3.0, "epsilon": 1.0, "delta": exp(-20)}
    assert value("nonconvex-3.3", **point, reading="printed") == pytest.approx(0.9)
    assert value("nonconvex-3.3", **point) == pytest.approx(0.9 / (20 - log(40)) ** 2)
    assert value("nonconvex-3.3-shuffled", **point) == pytest.approx(9 * 40 / 1600)
    assert value("nonconvex-3.3", **(point | {"epsilon": 1e-6})) == 9


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 10**4), d=st.integers(1, 100), N=st.integers(1, 1000), kappa=st.floats(1, 100))
def test_figure_3_orders(n, d, N, kappa):
    rows = THEOREMS["nonconvex-figure-3"](n=n, d=d, N=N, beta=kappa, mu=1.0, epsilon=1.0).terms
    for name in ("isrl_so", "sdp_so", "isrl_erm", "sdp_erm"):
        assert rows[f"{name}_upper"] >= rows[f"{name}_lower"]
    assert rows["isrl_erm_upper"] == pytest.approx(N * rows["sdp_erm_upper"])
    assert rows["isrl_nonconvex_upper"] == pytest.approx(rows["isrl_nonconvex_lower"] ** (2 / 3))


def test_lemmas_by_hand():
    got = THEOREMS["nonconvex-lemma-E.1"](beta=2.0, noise=3.0)
    assert (got.value, got.terms["value_gap"]) == pytest.approx((0.75, 2.25))
    # 1 + 2 + (1−2)·3 + (1+2)·4 − 2·5 with β = 2, η = 1/4.
    assert value("nonconvex-lemma-E.2", value_z=1.0, inner=2.0, yw=3.0, zw=4.0, yz=5.0, beta=2.0, eta=0.25) == 2
    # 8·4·0.5/(2·4) + 2·1·9/(2·2) + 3·1/2.
    point = {"n": 4, "d": 3, "N": 3, "M": 2, "K": 4, "beta": 2.0, "upsilon": 3.0, "sigma": 1.0, "distance": 0.5}
    assert value("nonconvex-lemma-E.3", **point) == pytest.approx(2 + 4.5 + 1.5)
    whole = point | {"M": 3}
    assert THEOREMS["nonconvex-lemma-E.3"](**whole, reading="printed").terms["sampling"] == 0
    assert THEOREMS["nonconvex-lemma-E.3"](**whole).terms["sampling"] > 0
    assert value("nonconvex-lemma-F.1", tau1=2.0, tau2=3.0, distance=0.5) == pytest.approx(8.5)


def test_noisy_proximal_step_attains_equation_14():
    """H(y) = β y² is 2β-strongly convex: adding ū·y moves its minimiser by ū/(2β) and H by ū²/(4β) ≤ ū²/(2β)."""
    beta, noise = 3.0, 0.7
    moved = value("nonconvex-lemma-E.1", beta=beta, noise=noise)
    assert beta * moved**2 <= THEOREMS["nonconvex-lemma-E.1"](beta=beta, noise=noise).terms["value_gap"]


def test_sampled_mean_is_exact_by_enumeration():
    vectors = np.array([2.0, -1.0, 0.5, -1.5])
    pairs = [(a + b) / 2 for i, a in enumerate(vectors) for b in vectors[:i]]
    got = THEOREMS["nonconvex-lemma-F.2"](population=4, sample=2, size=float(vectors @ vectors))
    assert got.value == pytest.approx(np.mean(np.square(pairs)))
    assert got.value <= got.terms["bound"]
    assert value("nonconvex-lemma-F.2", population=4, sample=4, size=7.0) == 0
    assert value("nonconvex-lemma-F.2", population=4, sample=1, size=8.0) == 2


def test_drawing_silos_has_a_variance_that_no_n_removes():
    """Two silos with gradients ±L, one a round: variance L², printed 2L²/n."""
    point = {"N": 2, "M": 1, "L": 1.0, "upsilon": 1.0}
    assert value("nonconvex-clusters", **point, n=1000) == 1.0
    assert value("nonconvex-clusters", **point, n=1000, reading="printed") == pytest.approx(0.002)


def test_theorem_f1_with_its_proofs_step_fails_for_heterogeneous_silos_and_m_below_n():
    """q = 1, no noise: w ← w/2 ∓ a/(2β) has E‖∇F‖² → a²/3, for every n; the printed bound falls with 1/n."""
    a, beta, generator = 0.5, 1.0, np.random.default_rng(6)
    w = np.zeros(20_000)
    for _ in range(60):
        w = w / 2 - generator.choice([-a, a], w.size) / (2 * beta)
    measured = np.mean((beta * w) ** 2)
    assert measured == pytest.approx(a**2 / 3, rel=0.05)
    point = {"d": 1, "N": 2, "M": 1, "L": 1.5, "Delta": 1e-3, "beta": beta, "epsilon": 1.0, "delta": 1e-6}
    assert value("nonconvex-3.1", n=10**6, **point, reading="printed") < measured / 1000
    assert value("nonconvex-3.1", n=10**6, **point, upsilon=a) >= measured


@pytest.mark.parametrize(("Q", "fits"), [(8, True), (9, False)])
def test_full_batches_of_algorithm_8_as_printed_fit_their_share_up_to_eight_steps(Q, fits):
    """A full-batch message's share is ε/(4√(2E ln(2/δ))), M = N; printed over it: √(Q/8) at K = n/Q."""
    E, delta = 5, 1e-6
    point = {
        "n": 72 * 100,
        "N": 10,
        "M": 10,
        "K": 72 * 100 // Q,
        "E": E,
        "Q": Q,
        "S": 1,
        "epsilon": 1.0,
        "delta": delta,
    }
    share = 1 / (4 * sqrt(2 * E * log(2 / delta)))
    printed = THEOREMS["nonconvex-2.2-shuffled-noise"](**point, reading="printed").terms["full_batch"]
    assert printed / share == pytest.approx(sqrt(Q / 8))
    assert (printed <= share * (1 + 1e-12)) == fits
    assert THEOREMS["nonconvex-2.2-shuffled-noise"](**point).terms["full_batch"] <= share
