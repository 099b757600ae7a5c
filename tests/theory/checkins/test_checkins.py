"""Check-ins paper: exact cases, limits, and the printed forms against what holds."""

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


@settings(max_examples=50, deadline=None)
@given(epsilon0=EPS, delta=DELTA, m=SLOTS)
def test_amplification_is_monotone_and_vanishes(epsilon0, delta, m):
    def at(**change):
        return value("checkins-4.3", **({"m": m, "epsilon0": epsilon0, "delta": delta} | change))

    assert at(m=4 * m) <= at() / 2 * (1 + 1e-12)
    assert at(epsilon0=epsilon0 / 2) < at() < at(delta=delta / 2)
    shuffled = value("checkins-5.1", n=m, epsilon0=epsilon0, delta=delta)
    assert shuffled < value("checkins-5-earlier", n=m, epsilon0=epsilon0, delta=delta)


def test_no_amplification_is_said():
    assert "no amplification" in THEOREMS["checkins-5.1"](n=10, epsilon0=3.0, delta=1e-6).notes[0]
    assert THEOREMS["checkins-5.1"](n=10**8, epsilon0=0.5, delta=1e-6).notes == ()
    # e^ε0 overflows: the bound is vacuous, not an error.
    assert value("checkins-5.1", n=10, epsilon0=800.0, delta=1e-6) == np.inf


def test_printed_cap_allows_far_more_than_holds():
    right, printed = delta0_cap(0.5, 1e-9), delta0_cap(0.5, 1e-9, exponent=1e-6)
    assert printed / right > 10
    point = {"p0": 0.1, "m": 1000, "epsilon0": 0.05, "delta": 1e-6, "delta1": 1e-9}
    between = (delta0_cap(0.05, 1e-9) + delta0_cap(0.05, 1e-9, exponent=1e-6)) / 2
    THEOREMS["checkins-3.2-approximate"](**point, delta0=between, reading="printed")
    with pytest.raises(AssumptionError, match="cap on the randomiser's δ0"):
        THEOREMS["checkins-3.2-approximate"](**point, delta0=between)


def test_dummy_updates_are_as_many_as_in_a_simulation():
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


def test_vacuous_failure_probabilities_are_noted():
    point = {"m": 10**6, "epsilon0": 0.05, "delta": 1e-6, "delta0": 1e-12}
    assert THEOREMS["checkins-4.3-approximate"](**point, delta1=5.5e-7).notes  # δ' = 1.1
    assert not THEOREMS["checkins-4.3-approximate"](**point, delta1=1e-8).notes
    assert THEOREMS["convex-C.2"](n=37, epsilon=0.9, delta=0.01).notes
    assert not THEOREMS["convex-C.2"](n=2, epsilon=0.9, delta=0.01).notes


def test_table_1_by_hand():
    # ε0 = ln 4, n = 16: 1.386, 4/4, 64/4, 32/4, 8/4.
    terms = THEOREMS["checkins-table-1"](n=16, epsilon0=log(4)).terms
    assert list(terms.values()) == pytest.approx([log(4), 1, 16, 8, 2])
