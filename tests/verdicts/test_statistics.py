"""Intervals: against SciPy's own, their coverage, and slopes that are known."""

import numpy as np
import pytest
from scipy import stats

from silodp.verdicts.statistics import mean_interval, ratio_interval, slope, slope_interval


def test_a_mean_has_students_interval():
    values = np.array([1.0, 2.0, 4.0, 7.0])
    found = mean_interval(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.value == 3.5


def test_like_samples_have_an_interval_of_no_length():
    assert mean_interval([2.0, 2.0]) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("samples", [[1.0], [], [1.0, np.nan], [[1.0, 2.0]]])
def test_too_few_or_wrong_samples_are_refused(samples):
    with pytest.raises(ValueError, match="at least two finite numbers"):
        mean_interval(samples)


@pytest.mark.parametrize("exponent", [-2.0, -0.5, 0.0, 1.5])
def test_the_slope_of_a_power_is_its_exponent(exponent):
    x = np.array([1.0, 2.0, 5.0, 9.0])
    assert float(slope(x, 3 * x**exponent)) == pytest.approx(exponent, abs=1e-12)


def test_slope_intervals_cover_the_true_slope_nearly_as_often_as_they_say():
    generator, x, covered = np.random.default_rng(1), np.array([1.0, 2.0, 4.0, 8.0]), 0
    for _ in range(100):
        samples = [generator.exponential(value**-0.5, 60) for value in x]
        found = slope_interval(x, samples, generator)
        covered += found.low <= -0.5 <= found.high
    assert 86 <= covered <= 100


def test_slopes_need_positive_means_and_three_positions():
    generator = np.random.default_rng(1)
    with pytest.raises(ValueError, match="at least 3"):
        slope_interval([1, 2], [[1.0, 2.0]] * 2, generator)
    with pytest.raises(ValueError, match="not positive"):
        slope_interval([1, 2, 3], [[-1.0, -2.0]] * 3, generator)


def test_a_ratio_of_means():
    generator = np.random.default_rng(2)
    found = ratio_interval(generator.normal(6, 1, 400), generator.normal(3, 1, 400), generator)
    assert found.low < 2.0 < found.high
    assert found.high - found.low < 0.2
