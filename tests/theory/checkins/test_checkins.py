"""Check-ins paper: values worked out by hand, limits, and the printed forms against what holds."""

from math import e, exp, expm1, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.theory import THEOREMS, AssumptionError
from silodp.theory.checkins.privacy import delta0_cap

EPS = st.floats(1e-3, 3.0)
SLOTS = st.integers(1, 10**6)
DELTA = st.floats(1e-12, 0.5)


def value(key, **parameters):
    return THEOREMS[key](**parameters).value


def test_fixed_window_by_hand():
    # ε0 = ln 2: e^ε0 = 2, e^ε0−1 = 1; δ = e^-8, m = 32, p0 = 1: √(2·2·8/32) + 2/(64) = 1 + 0.03125.
    assert value("checkins-3.2", p0=1.0, m=32, epsilon0=log(2), delta=exp(-8)) == pytest.approx(1.03125)
    # p0 = 1/2 halves the root and quarters the other part: 0.5 + 0.0078125.
    assert value("checkins-3.2", p0=0.5, m=32, epsilon0=log(2), delta=exp(-8)) == pytest.approx(0.5078125)


def test_averaged_by_hand():
    # n = m = 2, δ2 = e^-2: ε1 = √1 + √(2/2) = 2. ε0 = ln 2, δ = e^-2: e^{4ε0}·1·4/2 + e^{2ε0}·2·√4 = 32 + 16.
    got = THEOREMS["checkins-4.1"](n=2, m=2, epsilon0=log(2), delta=exp(-2), delta2=exp(-2))
    assert got.value == pytest.approx(48)
    assert got.terms["delta_prime"] == pytest.approx(2 * exp(-2))
    # n = 8, m = 8/7: 1/n + 1/m = 1 would need a real m; m = 1, n = 4, δ2 = e^-1: ε1 = √1.25 + 0.5.
    spread = sqrt(1.25) + 0.5
    expected = 16 * spread**2 / 2 + 4 * spread * 2
    assert value("checkins-4.1", n=4, m=1, epsilon0=log(2), delta=exp(-2), delta2=exp(-1)) == pytest.approx(expected)


def test_shuffling_by_hand():
    # ε0 = ln 2, n = 64, δ = e^-2: 8·1/128 + 2^1.5·√(4/64) = 0.0625 + 0.70711.
    assert value("checkins-5.1", n=64, epsilon0=log(2), delta=exp(-2)) == pytest.approx(0.0625 + 2**1.5 / 4)
    # The earlier bound: 2·4·1 = 8, e^{8/64}−1 = 0.133148; 8·0.133148 + 8·0.25 = 3.06519.
    assert value("checkins-5-earlier", n=64, epsilon0=log(2), delta=exp(-2)) == pytest.approx(8 * (exp(0.125) - 1) + 2)
    # n = 256: 8/512 + 2^1.5/8; earlier 8(e^{1/32}−1) + 1.
    assert value("checkins-5.1", n=256, epsilon0=log(2), delta=exp(-2)) == pytest.approx(1 / 64 + 2**1.5 / 8)
    assert value("checkins-5-earlier", n=256, epsilon0=log(2), delta=exp(-2)) == pytest.approx(8 * expm1(1 / 32) + 1)


@settings(max_examples=50, deadline=None)
@given(p0=st.floats(0.01, 1.0), m=SLOTS, epsilon0=EPS, delta=DELTA)
def test_fixed_window_is_heterogeneous_composition_of_the_posteriors(p0, m, epsilon0, delta):
    """The closed form bounds the sum of the proof over ε_i = ln(1 + p0 q_i (e^ε0−1)), q_i the posterior of slot i."""
    m = min(m, 2000)
    i = np.arange(m)
    q = exp(epsilon0) / (m * exp(epsilon0) - expm1(epsilon0) * i)
    each = np.log1p(p0 * q * expm1(epsilon0))
    exact = np.sum(np.expm1(each) * each / (np.exp(each) + 1)) + sqrt(2 * log(1 / delta) * np.sum(each**2))
    assert exact <= value("checkins-3.2", p0=p0, m=m, epsilon0=epsilon0, delta=delta) * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(m=SLOTS, p0=st.floats(0.001, 1.0), epsilon0=st.floats(1e-4, 0.9999), delta=st.floats(1e-12, 0.0099))
def test_short_form_holds_on_its_whole_domain(m, p0, epsilon0, delta):
    """(e−1)√(2e) + e(e−1)²/(2√ln 100) = 4.0063 + 1.8697 = 5.876 is the most that the factor 7 has to cover."""
    needed = THEOREMS["checkins-3.2-short"](p0=p0, m=m, epsilon0=epsilon0, delta=delta).terms["needed_factor"]
    assert needed <= (e - 1) * sqrt(2 * e) + e * (e - 1) ** 2 / (2 * sqrt(log(100))) < 5.877


def test_short_form_of_the_sliding_window_is_the_fixed_one_at_full_checkin():
    window = {"m": 500, "epsilon0": 0.7, "delta": 1e-4}
    assert value("checkins-4.3", **window) == value("checkins-3.2", p0=1.0, **window)
    assert value("checkins-4.3-short", **window) == pytest.approx(7 * 0.7 * sqrt(log(1e4) / 500))
    assert value("checkins-3.2-short", p0=0.5, **window) == pytest.approx(3.5 * 0.7 * sqrt(log(1e4) / 500))


@settings(max_examples=50, deadline=None)
@given(epsilon0=EPS, delta=DELTA, m=SLOTS)
def test_amplification_is_monotone_and_vanishes(epsilon0, delta, m):
    def at(**change):
        return value("checkins-4.3", **({"m": m, "epsilon0": epsilon0, "delta": delta} | change))

    assert at(m=4 * m) <= at() / 2 * (1 + 1e-12)
    assert at(epsilon0=epsilon0 / 2) < at() < at(delta=delta / 2)
    shuffled = value("checkins-5.1", n=m, epsilon0=epsilon0, delta=delta)
    assert shuffled < value("checkins-5-earlier", n=m, epsilon0=epsilon0, delta=delta)


def test_new_shuffling_bound_gains_two_e_to_half_epsilon0_for_many_records():
    for epsilon0 in (0.5, 2.0):
        old = value("checkins-5-earlier", n=10**12, epsilon0=epsilon0, delta=1e-6)
        new = value("checkins-5.1", n=10**12, epsilon0=epsilon0, delta=1e-6)
        assert old / new == pytest.approx(2 * exp(epsilon0 / 2), rel=1e-3)


def test_no_amplification_is_said():
    assert "no amplification" in THEOREMS["checkins-5.1"](n=10, epsilon0=3.0, delta=1e-6).notes[0]
    assert THEOREMS["checkins-5.1"](n=10**8, epsilon0=0.5, delta=1e-6).notes == ()
    # e^ε0 overflows: the bound is vacuous, not an error.
    assert value("checkins-5.1", n=10, epsilon0=800.0, delta=1e-6) == np.inf


def test_delta0_cap_by_hand():
    # ε0 = ln 2, δ1 = 2e^-6: depth 6/ln(1/(1−1/32)) = 6/0.0317487 = 188.984; (1/2)·2e^-6/(8·190.984).
    assert delta0_cap(log(2), 2 * exp(-6)) == pytest.approx(exp(-6) / (8 * (2 + 6 / log(32 / 31))))
    # δ1 = 2e^-3 halves the depth.
    assert delta0_cap(log(2), 2 * exp(-3)) == pytest.approx(exp(-3) / (8 * (2 + 3 / log(32 / 31))))


def test_printed_cap_allows_far_more_than_holds():
    right, printed = delta0_cap(0.5, 1e-9), delta0_cap(0.5, 1e-9, exponent=1e-6)
    assert printed / right > 10
    point = {"p0": 0.1, "m": 1000, "epsilon0": 0.05, "delta": 1e-6, "delta1": 1e-9}
    between = (delta0_cap(0.05, 1e-9) + delta0_cap(0.05, 1e-9, exponent=1e-6)) / 2
    THEOREMS["checkins-3.2-approximate"](**point, delta0=between, reading="printed")
    with pytest.raises(AssumptionError, match="cap on the randomiser's δ0"):
        THEOREMS["checkins-3.2-approximate"](**point, delta0=between)


def test_approximate_forms_are_the_pure_ones_at_eight_epsilon0():
    small = {"epsilon0": 0.02, "delta": 1e-6}
    rest = {"delta0": 1e-15, "delta1": 1e-9}
    pure = value("checkins-3.2", p0=0.3, m=400, epsilon0=0.16, delta=1e-6)
    got = THEOREMS["checkins-3.2-approximate"](p0=0.3, m=400, **small, **rest)
    assert got.value == pytest.approx(pure)
    assert got.terms["delta_prime"] == pytest.approx(1e-6 + 400 * (exp(pure) + 1) * 1e-9)
    assert value("checkins-4.3-approximate", m=400, **small, **rest) == pytest.approx(
        value("checkins-4.3", m=400, epsilon0=0.16, delta=1e-6)
    )
    assert value("checkins-5.1-approximate", n=400, **small, **rest) == pytest.approx(
        value("checkins-5.1", n=400, epsilon0=0.16, delta=1e-6)
    )
    averaged = THEOREMS["checkins-4.1-approximate"](n=400, m=200, delta2=1e-7, **small, **rest)
    assert averaged.value == pytest.approx(value("checkins-4.1", n=400, m=200, epsilon0=0.16, delta=1e-6, delta2=1e-7))
    assert averaged.terms["delta_prime"] == pytest.approx(1.1e-6 + 200 * (exp(averaged.value) + 1) * 1e-9)


def test_averaged_short_form_fails_for_more_slots_than_clients():
    """n = 100 clients, m = 10⁴ slots: ε1 = 0.1005 + √(ln(1e6)/100) = 0.472, against 1/√m = 0.01."""
    point = {"n": 100, "m": 10_000, "epsilon0": 0.1, "delta": 1e-6, "delta2": 1e-6}
    printed = THEOREMS["checkins-4.1-short"](**point, reading="printed")
    right = THEOREMS["checkins-4.1-short"](**point)
    assert right.value / printed.value == pytest.approx((sqrt(0.0101) + sqrt(log(1e6) / 100)) / 0.01)
    # More slots still: the printed form goes to 0, the full one does not.
    more = point | {"m": 10**8}
    assert THEOREMS["checkins-4.1-short"](**more, reading="printed").terms["full_over_short"] > 1000
    assert THEOREMS["checkins-4.1-short"](**more).terms["full_over_short"] < 20


def test_one_client_in_many_slots_spends_all_of_epsilon0():
    """n = 1: a uniform slot holds the randomised bit, all others show that nobody came: δ(ε) does not depend on m."""
    epsilon0, keep = 0.5, exp(0.5) / (1 + exp(0.5))
    for m in (1, 100, 10_000):
        # Outputs are (slot, bit), each slot with probability 1/m under either record.
        outputs = [(keep / m, (1 - keep) / m), ((1 - keep) / m, keep / m)] * m

        def spent(epsilon, outputs=outputs):
            return sum(max(p - exp(epsilon) * q, 0.0) for p, q in outputs)

        assert spent(0.99 * epsilon0) > 1e-3
        assert spent(epsilon0) == pytest.approx(0.0, abs=1e-12)
    # The short form says 0.005, up to a constant.
    assert epsilon0 / sqrt(10_000) == pytest.approx(0.005)


def test_repeated_window_composes_to_its_rate():
    point = {"n": 10_000, "m": 100, "epsilon0": 0.5, "delta": 1e-6}
    got = THEOREMS["checkins-3.3"](**point)
    assert got.value == pytest.approx(exp(0.75) / 100)
    # One run: p0 = 0.01 at δ/(2·100).
    assert got.terms["one_run"] == pytest.approx(value("checkins-3.2", p0=0.01, m=100, epsilon0=0.5, delta=5e-9))
    # Four times the clients halve both the rate and, nearly, the composed ε.
    more = THEOREMS["checkins-3.3"](**(point | {"n": 40_000}))
    assert more.value == pytest.approx(got.value / 2)
    assert more.terms["composed"] == pytest.approx(got.terms["composed"] / 2, rel=0.1)
    with pytest.raises(AssumptionError, match="limit on the randomiser"):
        THEOREMS["checkins-3.3"](**(point | {"epsilon0": 4.0}))


def test_table_1_by_hand():
    # ε0 = ln 4, n = 16: 1.386, 4/4, 64/4, 32/4, 8/4.
    got = THEOREMS["checkins-table-1"](n=16, epsilon0=log(4)).terms
    assert list(got.values()) == pytest.approx([log(4), 1, 16, 8, 2])


def test_dummy_updates_by_hand_and_by_simulation():
    # m = 2, n = 3, p0 = 1: each slot is missed by all three with probability 1/8.
    assert value("checkins-3.4", n=3, m=2, p0=1.0) == pytest.approx(0.25)
    # m = 4, n = 2, p0 = 1/2: 4·(7/8)² = 3.0625.
    assert value("checkins-3.4", n=2, m=4, p0=0.5) == pytest.approx(3.0625)
    # Sliding: n = 3, m = 2: slots 2 and 3, each missed with probability 1/4: exactly 0.5 ≤ 2/e.
    sliding = THEOREMS["checkins-4.4"](n=3, m=2)
    assert sliding.terms["exact"] == pytest.approx(0.5)
    assert sliding.value == pytest.approx(2 / e)
    generator = np.random.default_rng(5)
    slots = generator.integers(0, 20, (4000, 30))
    slots[generator.random(slots.shape) > 0.6] = -1
    empty = np.array([20 - len(set(row) - {-1}) for row in slots])
    expected = value("checkins-3.4", n=30, m=20, p0=0.6)
    assert abs(empty.mean() - expected) < 5 * empty.std() / sqrt(len(empty))


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 10_000), m=st.integers(1, 10_000), c=st.floats(0.01, 5))
def test_dummy_updates_limits(n, m, c):
    if c * m / n <= 1:
        short = THEOREMS["checkins-3.4-short"](n=n, m=m, c=c)
        assert short.terms["exact"] <= short.value
        assert value("checkins-3.4", n=n, m=m, p0=short.terms["p0"]) == pytest.approx(short.terms["exact"])
    if m <= n:
        sliding = THEOREMS["checkins-4.4"](n=n, m=m)
        assert sliding.terms["exact"] <= sliding.value


def test_utility_by_hand():
    # p σ² + L² = 3·1 + 1 = 4; n p0/m = ln 4: 1 − 2/4 = 1/2; width 1, m = 16: 2/(0.5·4) = 1; step 0.5/2.
    got = THEOREMS["checkins-3.5"](n=16, m=16, p0=log(4) / 1.5, p=3, sigma=1.0, L=1.0, width=1.0)
    used = 1 - 2 * exp(-log(4) / 1.5)
    assert got.value == pytest.approx(2 / (used * 4))
    assert got.terms["step"] == pytest.approx(used / 2)
    with pytest.raises(AssumptionError, match="enough check-ins"):
        THEOREMS["checkins-3.5"](n=16, m=16, p0=0.69, p=3, sigma=1.0, L=1.0, width=1.0)
    # Averaging: m p σ² + n L² = 4·3 + 4 = 16 at m = n = 4: 1·4/4 = 1; step 2/4.
    got = THEOREMS["checkins-4.2"](n=4, m=4, p=3, sigma=1.0, L=1.0, width=1.0)
    assert (got.value, got.terms["step"]) == pytest.approx((1.0, 0.5))
    # Smooth: √(4/4) + 2·1/4 = 1.5; step 2/(2·2 + 4·2).
    got = THEOREMS["checkins-4.2-smooth"](n=4, m=4, p=3, sigma=1.0, L=1.0, beta=2.0, width=1.0)
    assert (got.value, got.terms["step"]) == pytest.approx((1.5, 1 / 6))


def test_utility_of_the_two_protocols_meets_when_slots_equal_clients():
    """At m = n the averaged rate is √(pσ²+L²)·width/√n, and the fixed one the same over its used share."""
    point = {"n": 400, "m": 400, "p": 5, "sigma": 0.3, "L": 1.0, "width": 2.0}
    averaged = value("checkins-4.2", **point)
    fixed = THEOREMS["checkins-3.5"](**point, p0=1.0)
    assert fixed.value * fixed.terms["used_share"] == pytest.approx(averaged)
