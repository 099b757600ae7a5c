"""Edges of verdicts and statistics, beside a reference of a few lines: ties, zeros, bounds that are met exactly."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.privacy.standing import Standing, standing
from silodp.verdicts.comparisons import AHEAD, BEHIND, NO_DIFFERENCE, outcome_of
from silodp.verdicts.statistics import mean_interval, paired_test, sign_flip, slope

whole = st.lists(st.integers(-4, 4), min_size=2, max_size=8)


def flipped(values):
    """The share of all sign patterns with at least the sum that was seen."""
    sums = [
        sum(s * v for s, v in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    return sum(total >= sum(values) for total in sums) / len(sums)


@settings(max_examples=100, deadline=None)
@given(whole)
def test_the_sign_flip_test_counts_patterns_with_ties(values):
    assert sign_flip(values) == flipped(values)
    assert sign_flip([value / 3 for value in values]) == flipped(values), "sums that are equal but for rounding"
    assert paired_test(values).p_sign_flip == flipped(values)


@settings(max_examples=50, deadline=None)
@given(whole)
def test_the_t_test_is_students(values):
    found, T = paired_test(values), len(values)
    mean, deviation = np.mean(values), np.std(values, ddof=1)
    assert found.value == pytest.approx(mean)
    if deviation == 0:
        assert (found.low, found.high) == (mean, mean)
        assert found.p == (mean <= 0)  # 1 for differences that are all 0
        return
    assert (found.low + found.high) / 2 == pytest.approx(mean)
    # By the incomplete beta function, written out by quadrature of Student's density.
    t = mean / (deviation / math.sqrt(T))
    x = np.linspace(0, abs(t), 4001)
    density = (1 + x * x / (T - 1)) ** (-T / 2)
    density *= math.exp(math.lgamma(T / 2) - math.lgamma((T - 1) / 2)) / math.sqrt(math.pi * (T - 1))
    assert found.p == pytest.approx(0.5 - math.copysign(np.trapezoid(density, x), t), abs=1e-5)
    assert (found.low > 0) == (found.p < 0.025)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.inf], [math.nan, 0.0]])
def test_too_little_has_no_interval(values):
    found = paired_test(values)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.p, found.p_sign_flip) == (1.0, 1.0)
    assert found.value == 1.0 if values == [1.0] else math.isnan(found.value)


OUTCOMES = [
    (-2.0, -1.0, 0.0, AHEAD),
    (1.0, 2.0, 0.0, BEHIND),
    (-1.0, 0.0, 0.0, NO_DIFFERENCE),
    (0.0, 1.0, 0.0, NO_DIFFERENCE),
    (-1.0, 0.5, 1.0, "equal within 1"),
    (-0.5, 1.0, 1.0, "equal within 1"),
    (-1.1, 0.5, 1.0, NO_DIFFERENCE),
    (-0.5, 1.1, 1.0, NO_DIFFERENCE),
    (-0.1, -0.05, 1.0, AHEAD),
    (0.05, 0.1, 1.0, BEHIND),
    (0.0, 0.0, 0.0, NO_DIFFERENCE),
    (math.nan, math.nan, 1.0, NO_DIFFERENCE),
]


@pytest.mark.parametrize(("low", "high", "tolerance", "said"), OUTCOMES)
def test_an_interval_says(low, high, tolerance, said):
    assert outcome_of(low, high, tolerance) == said


STANDINGS = [
    (1.0, 0.5, 1.0, Standing.KEPT),
    (1.0, 1.0, 1.0, Standing.KEPT),
    (1.0, 1.0, 1.1, Standing.NOT_CERTIFIED),
    (1.0, 1.01, 1.1, Standing.VIOLATED),
    (1.0, math.nan, 0.9, Standing.KEPT),
    (1.0, math.nan, math.inf, Standing.NOT_CERTIFIED),
    (1.0, 0.9, math.nan, Standing.NOT_CERTIFIED),
]


@pytest.mark.parametrize(("claimed", "lower", "upper", "word"), STANDINGS)
def test_a_claim_stands(claimed, lower, upper, word):
    assert standing(claimed, lower, upper) == word


@settings(max_examples=30, deadline=None)
@given(st.floats(-3, 3), st.lists(st.floats(0.1, 100), min_size=3, max_size=6, unique=True))
def test_the_slope_of_a_power_is_its_exponent(power, x):
    assert slope(x, np.array(x) ** power) == pytest.approx(power, abs=1e-6)


def test_a_mean_of_two_has_the_interval_of_one_degree_of_freedom():
    low, high = mean_interval([0.0, 2.0])[1:]
    assert (low, high) == pytest.approx((1 - 12.7062, 1 + 12.7062), rel=1e-5)
