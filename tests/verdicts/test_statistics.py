"""Intervals and tests: against SciPy's own, their coverage, and slopes that are known."""

import numpy as np
import pytest
from scipy import stats

from silodp.verdicts.statistics import mean_interval, paired_test, ratio_interval, sign_flip, slope, slope_interval


def test_a_mean_has_students_interval_and_like_samples_one_of_no_length():
    values = np.array([1.0, 2.0, 4.0, 7.0])
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert mean_interval(values) == pytest.approx((3.5, expected.low, expected.high))
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


def test_a_ratio_of_means():
    generator = np.random.default_rng(2)
    found = ratio_interval(generator.normal(6, 1, 400), generator.normal(3, 1, 400), generator)
    assert found.low < 2.0 < found.high
    assert found.high - found.low < 0.2


@pytest.mark.parametrize("shift", [0.0, 0.4, -0.7, 3.0])
def test_the_sign_flip_test_is_scipys_over_all_sign_patterns(shift):
    values = np.random.default_rng(3).standard_normal(9) + shift
    options = {"permutation_type": "samples", "alternative": "greater", "n_resamples": np.inf}
    assert sign_flip(values) == stats.permutation_test((values,), np.mean, **options).pvalue


@pytest.mark.parametrize("count", [4, 10, 30])
def test_signs_of_few_trials_cannot_say_more_than_one_pattern_in_all(count):
    assert sign_flip(np.linspace(1, 2, count)) == 2.0**-count
    assert sign_flip(-np.linspace(1, 2, count)) == 1.0
    # Ties count: half of the patterns of one number, all of none.
    assert sign_flip([1.0, 0.0]) == 0.5
    assert sign_flip([0.0, 0.0]) == 1.0


def test_a_paired_test_has_the_t_tests_interval_and_one_sided_p():
    values = np.random.default_rng(1).normal(0.1, 0.3, 12)
    found, wanted = paired_test(values), stats.ttest_1samp(values, 0, alternative="greater")
    assert found[:3] == pytest.approx((values.mean(), *stats.ttest_1samp(values, 0).confidence_interval(0.95)))
    assert (found.p, found.p_sign_flip) == (pytest.approx(wanted.pvalue), sign_flip(values))
    assert [paired_test(part).p for part in ([0.1] * 5, [-0.1] * 5, [0.1, np.inf], [0.1], [])] == [0, 1, 1, 1, 1]
    assert np.isnan(paired_test([0.1, np.inf]).value)
