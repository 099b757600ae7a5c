"""The estimate behind a decided cell: choose a point in some trials, evaluate it in the others (docs/claims.md).

What is compared is a procedure. Its error is the mean over random splits of the trials into those that choose, by mean
training loss, and those that evaluate. The interval is a bootstrap over trials of that whole estimate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from silodp.verdicts.comparisons import AHEAD, BEHIND

OPEN, WITHIN = "open", "same"
SPLITS, DRAWS, RESPLITS, FLIPS = 2000, 1000, 200, 999
# A loss that is not finite is worse than any; sums of it still are numbers.
WORST = 1e30


class Choices(NamedTuple):
    """Losses and errors of all points (T, P), and the columns between which each of S sides chooses."""

    losses: NDArray
    errors: NDArray
    sides: Sequence[slice]


@dataclass(frozen=True)
class Estimates:
    """Errors of the sides (S,), of each bootstrap draw (DRAWS, S), and how often each point was chosen (P,)."""

    value: NDArray
    draws: NDArray
    chosen: NDArray


def interval(value: ArrayLike, se: ArrayLike, trials: int, confidence: float = 0.95) -> tuple[NDArray, NDArray]:
    """Both ends of value ± t(T − 1) standard errors."""
    half = stats.t.ppf((1 + confidence) / 2, trials - 1) * np.asarray(se)
    return np.asarray(value) - half, np.asarray(value) + half


def outcomes(value: ArrayLike, se: ArrayLike, trials: int, margin: float) -> NDArray:
    """What first − second says, in this order: ahead or behind by the 95 % interval, the same by the 90 % one, open."""
    (low, high), (low_90, high_90) = interval(value, se, trials), interval(value, se, trials, 0.9)
    inside = (-margin <= low_90) & (high_90 <= margin)
    return np.select([high < 0, low > 0, inside], [AHEAD, BEHIND, WITHIN], OPEN)


def choosing_copies(copies: NDArray, choosing: int, splits: int, generator: np.random.Generator) -> NDArray:
    """Copies of each trial that choose, (splits, T): whole trials in random order until `choosing` copies do.

    `copies` (T,) are how often the trials were drawn, more than `choosing` of them at least once.
    """
    drawn = np.flatnonzero(copies)
    keys = generator.random((splits, len(drawn)))
    first = np.argpartition(keys, choosing, axis=1)[:, :choosing]
    order = np.take_along_axis(first, np.take_along_axis(keys, first, 1).argsort(1), 1)
    counts = copies[drawn[order]]
    used = np.zeros((splits, len(copies)))
    taken = counts * (counts.cumsum(1) - counts < choosing)
    np.put_along_axis(used, drawn[order], taken, 1)
    return used


def procedure(data: Choices, copies: NDArray, choosing: NDArray) -> tuple[NDArray, NDArray]:
    """Mean error of each side (S,) over the splits, and the share of splits that choose each point (P,).

    `choosing` is what `choosing_copies` gives for `copies`. A side has NaN where the error of a point that it chooses
    is not finite in a trial that evaluates.
    """
    losses = choosing @ np.where(np.isfinite(data.losses), data.losses, WORST)
    finite = np.isfinite(data.errors)
    errors = np.where(finite, data.errors, 0.0)
    evaluated = copies @ errors - choosing @ errors
    evaluated /= (copies.sum() - choosing.sum(1))[:, None]
    evaluated[copies @ ~finite - choosing @ ~finite > 0] = np.nan
    means, shares = np.empty(len(data.sides)), np.zeros(losses.shape[1])
    for number, side in enumerate(data.sides):
        best = side.start + losses[:, side].argmin(1)
        means[number] = evaluated[np.arange(len(best)), best].mean()
        shares += np.bincount(best, minlength=len(shares)) / len(best)
    return means, shares


def estimate(
    data: Choices,
    choosing: int,
    generator: np.random.Generator,
    *,
    splits: int = SPLITS,
    draws: int = DRAWS,
    resplits: int = RESPLITS,
) -> Estimates:
    """The procedure's errors with their bootstrap; `choosing` of the T trials choose.

    Trials and splits that a generator draws depend on T and `choosing` alone, so that settings of one experiment that
    are given equal generators are drawn jointly.
    """
    trials = len(data.losses)
    once = np.ones(trials)
    value, chosen = procedure(data, once, choosing_copies(once, choosing, splits, generator))
    drawn = []
    for _ in range(draws):
        copies = np.bincount(generator.integers(0, trials, trials), minlength=trials).astype(float)
        drawn.append(procedure(data, copies, choosing_copies(copies, choosing, resplits, generator))[0])
    return Estimates(value, np.array(drawn), chosen)


def swapped_estimates(
    data: Choices, choosing: int, generator: np.random.Generator, *, flips: int = FLIPS, resplits: int = RESPLITS
) -> Iterator[NDArray]:
    """First − second (pairs,) where whole trials swap the two sides at random, one sign for all pairs, `flips` times.

    `data` has the pairs' first sides, then their second sides, with the same points.
    """
    once, half = np.ones(len(data.losses)), data.losses.shape[1] // 2
    for _ in range(flips):
        swap = generator.random(len(once)) < 0.5
        losses, errors = (np.where(swap[:, None], np.roll(t, half, 1), t) for t in (data.losses, data.errors))
        used = choosing_copies(once, choosing, resplits, generator)
        first, second = np.split(procedure(Choices(losses, errors, data.sides), once, used)[0], 2)
        yield first - second


def exceeds(values: NDArray, draws: NDArray, limits: NDArray, level: float = 0.025) -> bool:
    """Max-t: whether one of the values (cells,) lies above its limit, at a one-sided level over all of them.

    `draws` (draws, cells) are resampled jointly where cells share trials. A cell whose draws are all alike lies where
    its value does; one with a value or draw that is not finite decides nothing.
    """
    known = np.isfinite(values) & np.isfinite(draws).all(0)
    values, draws, limits = values[known], draws[:, known], limits[known]
    se = draws.std(0, ddof=1)
    spread = se > 1e-12
    if (values[~spread] > limits[~spread]).any():
        return True
    if not spread.any():
        return False
    values, draws, limits, se = values[spread], draws[:, spread], limits[spread], se[spread]
    reference = ((draws - values) / se).max(1)
    return bool(((values - limits) / se).max() > np.quantile(reference, 1 - level))
