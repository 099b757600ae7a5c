"""Non-convex paper: what ties its statements together, exact cases, and the statements that fail as printed."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from silodp.theory import THEOREMS, AssumptionError
from silodp.theory.nonconvex.upper import theorem_e_2

DELTA = exp(-4)  # ln(1/δ) = 4


def value(key, **parameters):
    return THEOREMS[key](**parameters).value


def exact_delta(epsilon: float, ratio: float) -> float:
    """δ(ε) of a Gaussian mechanism with sensitivity over σ equal to `ratio`."""
    return norm.cdf(ratio / 2 - epsilon / ratio) - exp(epsilon + norm.logcdf(-ratio / 2 - epsilon / ratio))


SAMPLED = [key for key, of in THEOREMS.items() if {"N", "M", "upsilon"} <= {*of.example} and "nonconvex" in key]


@pytest.mark.parametrize("key", SAMPLED)
@pytest.mark.parametrize("N", [1, 7])
def test_silos_that_all_answer_bring_no_variance_even_a_single_one(key, N):
    point = {**THEOREMS[key].example, "N": N, "M": N}
    assert value(key, **point | {"upsilon": 0.0}) == value(key, **point | {"upsilon": 9.0}) < np.inf


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


def test_prox_sgd_recursion_is_the_limit_of_its_rounds():
    """x ← (1−μ/2β)x + dσ²/(2βM) + L²/(βMK) for 400 rounds."""
    point = {"d": 3, "M": 2, "K": 5, "L": 2.0, "Delta": 7.0, "beta": 4.0, "mu": 0.5, "sigma": 0.3}
    x = 7.0
    for _ in range(400):
        x = (1 - 0.5 / 8) * x + 3 * 0.09 / (2 * 4 * 2) + 4 / (4 * 2 * 5)
    assert value("nonconvex-2.1-recursion", **point, R=400) == pytest.approx(x)
    # (20) prints 16 d ln(1/δ)L²/(με²K²M) with σ² = 8L² ln(1/δ)/(ε²K²).
    sigma = sqrt(value("nonconvex-2.1-noise", K=5, L=2.0, epsilon=1.0, delta=DELTA, reading="printed"))
    stated = THEOREMS["nonconvex-2.1-recursion"](**(point | {"sigma": sigma}), R=400, reading="printed").terms["noise"]
    assert stated == pytest.approx(16 * 3 * 4 * 4 / (0.5 * 25 * 2))


PRIVACY = {"epsilon": 1.0, "delta": DELTA}
SVRG = {"n": 64, "d": 1, "M": 16, "L": 2.0, "beta": 2.0, "mu": 0.5, "Delta": 1.0, "Q": 5} | PRIVACY


def test_svrg_schedule_by_hand():
    """κ = 4: 48 rounds in 10 epochs of 5; ΔμMε²n²/(κdL²) = 2¹¹; K^1.5√M = 74 ≥ n."""
    found = theorem_e_2(**SVRG, K=7)
    assert (found.restarts, found.rounds, found.step) == (11, 50, pytest.approx(1 / 16))
    terms = THEOREMS["nonconvex-2.2-noise"](n=64, S=11, E=10, Q=5, L=2.0, epsilon=1.0, delta=DELTA).terms
    assert found.anchor**2 == pytest.approx(terms["sigma1_squared"])
    assert found.difference**2 == pytest.approx(terms["sigma2_squared"])
    assert theorem_e_2(**SVRG, K=7, S=20).restarts == 20


LARGE = {"n": 10**6, "K": 5000, "M": 10**6, "epsilon": 10.0, "delta": 1e-9, "S": 100}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"K": 6}, r"batch of Theorem E\.2: K = 6 is not allowed, it has to be at least \(n²/M\)\^\(1/3\) = 6\.3"),
        ({"S": 10}, r"restarts of Theorem E\.2: S = 10 is not allowed, it has to be at least 11"),
        ({"epsilon": 15.1, "delta": 1e-9}, r"epsilon = 15\.1 is not allowed"),
        (LARGE, "batch for privacy: K = 5000"),
    ],
)
def test_a_svrg_schedule_outside_theorem_e2_is_refused(changed, message):
    with pytest.raises(AssumptionError, match=message):
        theorem_e_2(**(SVRG | {"K": 7} | changed))


def test_the_least_batch_of_theorem_e2_is_exact():
    """(625/5)^(1/3) is 5, which roots in floating point miss."""
    point = SVRG | {"n": 25, "M": 5, "K": 5}
    assert theorem_e_2(**point).step == pytest.approx(1 / 16)
    for wrong in ({"K": 4}, {"M": 4.999}, {"n": 26}):
        with pytest.raises(AssumptionError, match=r"batch of Theorem E\.2: K = \d is not allowed"):
            theorem_e_2(**(point | wrong))


def test_claim_45_needs_the_longer_constants():
    """A = η/4 − (η/2)qη²τ2²: −η/4 at the printed limit of q, η/8 at a quarter of it; then 20 and 12."""
    budget = {"n": 100, "d": 2, "M": 4, "R": 10, "epsilon": 1.0, "delta": DELTA}
    eta, beta = 0.5, 1.0
    tau2 = 8 * 2 * (16 * beta**2 * 10 * 4 / 100**2) / 4
    for reading, expected in (("right", eta / 8), ("printed", -eta / 4)):
        q = value("nonconvex-3.1-phase", **budget, reading=reading)
        assert eta / 2 - beta * eta**2 / 2 - eta**3 * tau2 * q / 2 == pytest.approx(expected)


def test_sampled_mean_is_exact_by_enumeration():
    vectors = np.array([2.0, -1.0, 0.5, -1.5])
    pairs = [(a + b) / 2 for i, a in enumerate(vectors) for b in vectors[:i]]
    got = THEOREMS["nonconvex-lemma-F.2"](population=4, sample=2, size=float(vectors @ vectors))
    assert got.value == pytest.approx(np.mean(np.square(pairs)))
    assert got.value <= got.terms["bound"]
    assert value("nonconvex-lemma-F.2", population=4, sample=4, size=7.0) == 0
    assert value("nonconvex-lemma-F.2", population=4, sample=1, size=8.0) == 2


def test_figure_3_row_by_row():
    """κ = 2, d = 4, ε = 1, n = 5, N = 2: d/(ε²n²N) = 0.08, d/(εnN)² = 0.04, 1/(nN) = 0.1."""
    local, central = 0.08, 0.04
    bounds = {
        "so": ((4 * local + 0.2, local / 4 + 0.1), (4 * central + 0.2, central + 0.1)),
        "erm": ((2 * local, local), (2 * central, central)),
        "nonconvex": ((local ** (2 / 3), local), (central ** (2 / 3), central)),
    }
    expected = {"isrl_nonconvex_earlier": sqrt(local), "sdp_nonconvex_earlier": sqrt(central)}
    for name, rows in bounds.items():
        for trust, (upper, lower) in zip(("isrl", "sdp"), rows, strict=True):
            expected |= {f"{trust}_{name}_upper": upper, f"{trust}_{name}_lower": lower}
    assert THEOREMS["nonconvex-figure-3"](n=5, d=4, N=2, beta=1.2, mu=0.6, epsilon=1.0).terms == pytest.approx(expected)
