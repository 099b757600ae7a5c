"""Over independent trials: intervals of a mean, a ratio of means and a log–log slope; the exact sign-flip test."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

CONFIDENCE = 0.95
RESAMPLES = 999


class Interval(NamedTuple):
    """An estimate with the ends of its confidence interval."""

    value: float
    low: float
    high: float


class PairedTest(NamedTuple):
    """Mean of paired differences with its interval, and one-sided p of "it is at most 0": Student's and exact."""

    value: float
    low: float = math.nan
    high: float = math.nan
    p: float = 1.0
    p_sign_flip: float = 1.0


def paired_test(differences: ArrayLike) -> PairedTest:
    """The t test and the exact sign-flip test of differences (trials,); no interval for one trial, or ∞ among them."""
    values = np.asarray(differences, dtype=float)
    if len(values) < 2 or not np.isfinite(values).all():
        return PairedTest(float(values.sum()) if np.isfinite(values).all() and len(values) else math.nan)
    interval, error = mean_interval(values), stats.sem(values)
    p = stats.t.sf(interval.value / error, len(values) - 1) if error > 0 else interval.value <= 0
    return PairedTest(*interval, float(p), sign_flip(values))


def mean_interval(samples: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Mean of samples (trials,) with Student's t interval; samples that are all alike have an interval of length 0.

    Raises ValueError for fewer than two samples, or samples that are not finite.
    """
    values = _checked(samples)
    mean, error = float(values.mean()), float(stats.sem(values))
    half = error * float(stats.t.ppf((1 + confidence) / 2, len(values) - 1))
    return Interval(mean, mean - half, mean + half)


def sign_flip(differences: ArrayLike) -> float:
    """One-sided p of the exact sign-flip test that differences (trials,) have a mean of at most 0.

    The share of the 2^T sign patterns whose sum is at least the one seen: at T trials never below 2^-T.
    """
    values = _checked(differences)
    halves = (reduce(lambda s, x: np.concatenate([s + x, s - x]), h, np.zeros(1)) for h in np.array_split(values, 2))
    left, right = map(np.sort, halves)
    # Sums that are equal but for rounding are equal.
    missing = values.sum() - 1e-12 * np.abs(values).sum() - left
    return float((len(right) - np.searchsorted(right, missing)).sum() / (len(left) * len(right)))


def slope(x: ArrayLike, means: NDArray) -> NDArray:
    """Slope of the least-squares line of ln(means) (…, points) against ln(x) (points,)."""
    logs = np.log(np.asarray(x, dtype=float))
    centred = logs - logs.mean()
    return np.log(means) @ centred / (centred @ centred)


def slope_interval(x: ArrayLike, samples: Sequence[ArrayLike], generator: np.random.Generator) -> Interval:
    """Log–log slope of the mean over trials against x, with the percentile interval of a bootstrap over trials.

    x: at least three positive positions, each with the samples of its trials, of a positive mean. Positions are
    resampled independently.
    """

    def statistic(*resampled: NDArray, axis: int = -1) -> NDArray:
        return slope(x, np.stack([part.mean(axis=axis) for part in resampled], axis=-1))

    return _bootstrap(samples, statistic, generator)


def ratio_interval(numerator: ArrayLike, denominator: ArrayLike, generator: np.random.Generator) -> Interval:
    """Ratio of the means of two independent samples, with the percentile interval of a bootstrap."""

    def statistic(a: NDArray, b: NDArray, axis: int = -1) -> NDArray:
        return a.mean(axis=axis) / b.mean(axis=axis)

    return _bootstrap([numerator, denominator], statistic, generator)


def _checked(samples: ArrayLike) -> NDArray:
    values = np.asarray(samples, dtype=float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(f"samples of shape {values.shape}: at least two finite numbers are needed")
    return values


def _bootstrap(samples: Sequence[ArrayLike], statistic: Any, generator: np.random.Generator) -> Interval:
    values = [_checked(sample) for sample in samples]
    estimate = float(statistic(*values))
    if all(np.ptp(sample) == 0 for sample in values):
        return Interval(estimate, estimate, estimate)
    options: dict[str, Any] = {"confidence_level": CONFIDENCE, "method": "percentile", "batch": 100}
    found = stats.bootstrap(
        values, statistic, vectorized=True, n_resamples=RESAMPLES, random_state=generator, **options
    ).confidence_interval
    return Interval(estimate, float(found.low), float(found.high))
