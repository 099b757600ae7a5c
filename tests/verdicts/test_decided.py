"""The estimate behind a decided cell: what it estimates, how often its interval misses, and the order of outcomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silodp.verdicts.comparisons import AHEAD, BEHIND
from silodp.verdicts.decided import (
    OPEN,
    WITHIN,
    Choices,
    choosing_copies,
    estimate,
    exceeds,
    interval,
    outcomes,
    procedure,
    swapped_estimates,
)

CHOOSING = 10


def trials(generator: np.random.Generator, T: int) -> Choices:
    """Two sides of two points each; a trial's split moves all, and the points of a side are nearly as good."""
    split, own = generator.normal(size=(T, 1)), generator.normal(size=(T, 4))
    losses = 0.5 * split + 0.3 * own + [0, 0.05, 0, 0.1]
    errors = 0.04 * split + 0.02 * own + 0.02 * generator.normal(size=(T, 4)) + [0.30, 0.33, 0.31, 0.30]
    return Choices(losses, errors, [slice(0, 2), slice(2, 4)])


def test_intervals_miss_the_procedures_difference_as_often_as_they_say() -> None:
    generator = np.random.default_rng(5)
    many = trials(generator, 10_000 * CHOOSING).losses.reshape(10_000, CHOOSING, 4).mean(1)
    shares = np.array([(many[:, 0] <= many[:, 1]).mean(), (many[:, 2] <= many[:, 3]).mean()])
    truth = (0.33 - 0.03 * shares[0]) - (0.30 + 0.01 * shares[1])
    missed = []
    for _ in range(200):
        found = estimate(trials(generator, 50), CHOOSING, generator, splits=100, draws=60, resplits=10)
        low, high = interval(found.value[0] - found.value[1], np.std(found.draws @ [1, -1], ddof=1), 50)
        missed.append(not low <= truth <= high)
    # A correct interval misses 21 of 200 or more, or none, with probability 0.001.
    assert 1 <= sum(missed) <= 20


def test_copies_of_a_trial_stay_on_one_side_and_enough_choose() -> None:
    generator = np.random.default_rng(0)
    copies = np.bincount(generator.integers(0, 60, 60), minlength=60).astype(float)
    used = choosing_copies(copies, CHOOSING, 500, generator)
    assert ((used == 0) | (used == copies)).all()
    assert (used.sum(1) >= CHOOSING).all()
    assert (used.sum(1) - used.max(1) < CHOOSING).all()
    assert (used > 0).mean(0)[copies > 0].std() < 0.05


def test_one_point_a_side_gives_the_mean_difference_and_a_diverged_error_none() -> None:
    generator, T = np.random.default_rng(1), 40
    data = Choices(generator.normal(size=(T, 2)), generator.normal(size=(T, 2)), [slice(0, 1), slice(1, 2)])
    once = np.ones(T)
    used = choosing_copies(once, CHOOSING, 20_000, generator)
    means, shares = procedure(data, once, used)
    assert means == pytest.approx(data.errors.mean(0), abs=0.005)
    assert shares.tolist() == [1, 1]
    data.losses[3, 1], data.errors[3, 1] = np.nan, np.inf
    assert np.isnan(procedure(data, once, used)[0]).tolist() == [False, True]


def test_a_point_that_is_never_chosen_may_diverge() -> None:
    generator = np.random.default_rng(2)
    data, once = trials(generator, 40), np.ones(40)
    used = choosing_copies(once, CHOOSING, 100, generator)
    data.losses[:, 1] = data.losses[:, 0] + 1
    plain = procedure(data, once, used)
    data.losses[7, 1], data.errors[7, 1] = np.inf, np.nan
    for found, wanted in zip(procedure(data, once, used), plain, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_swapped_trials_have_no_difference_in_the_mean() -> None:
    generator = np.random.default_rng(2)
    data = trials(generator, 60)
    swaps = np.array(list(swapped_estimates(data, CHOOSING, generator, flips=400, resplits=20)))
    assert swaps.shape == (400, 1)
    assert abs(swaps.mean()) < 4 * swaps.std() / 20


@given(st.floats(-0.05, 0.05), st.floats(1e-6, 0.02), st.sampled_from([0.005, 0.01]))
def test_an_interval_that_leaves_out_0_comes_before_the_margin(value: float, se: float, margin: float) -> None:
    (low, high), word = interval(value, se, 100), outcomes(value, se, 100, margin)
    assert (word in (AHEAD, BEHIND)) == (low > 0 or high < 0)
    low_90, high_90 = interval(value, se, 100, 0.9)
    if word in (WITHIN, OPEN):
        assert (word == WITHIN) == (-margin <= low_90 and high_90 <= margin)
    assert low < low_90
    assert high_90 < high


def test_an_interval_that_touches_the_margin_lies_within() -> None:
    margin = float(interval(0.0, 0.01, 100, 0.9)[1])
    assert [outcomes(0.0, 0.01, 100, most) for most in (margin, np.nextafter(margin, 0))] == [WITHIN, OPEN]


def test_max_t_keeps_its_level_over_many_cells_and_finds_one_that_is_worse() -> None:
    generator, cells = np.random.default_rng(3), 40
    draws = generator.normal(size=(2000, cells))
    seen = [exceeds(row, row + draws, np.zeros(cells)) for row in generator.normal(size=(400, cells))]
    assert np.mean(seen) <= 0.05
    worse = np.zeros(cells)
    worse[7] = 6
    assert exceeds(worse, worse + draws, np.zeros(cells))
    assert not exceeds(worse, worse + draws, np.full(cells, 6.0))


def test_a_value_that_many_draws_exceed_by_as_much_as_it_lies_above_its_limit_is_none() -> None:
    assert not exceeds(np.ones(1), np.array([[0.0], [2.0]] * 50), np.zeros(1))


def test_a_cell_without_spread_hides_no_contradiction_and_is_one_by_itself() -> None:
    """A cell whose draws are all 0 has t = 0/0, which made a difference of six standard errors open."""
    draws = np.random.default_rng(3).normal(size=(2000, 2))
    none = np.zeros((2000, 1))
    assert exceeds(np.array([6.0, 0, 0]), np.hstack([draws + np.array([6, 0]), none]), np.zeros(3))
    assert not exceeds(np.array([0.5, 0, 0]), np.hstack([draws + np.array([0.5, 0]), none]), np.zeros(3))
    assert exceeds(np.array([0.01]), none + 0.01, np.zeros(1))
    assert not exceeds(np.array([0.01]), none + 0.01, np.array([0.01]))


@pytest.mark.parametrize("diverged", [np.nan, np.inf])
def test_a_diverged_cell_decides_nothing_and_hides_nothing(diverged: float) -> None:
    draws = np.random.default_rng(4).normal(size=(2000, 2)) + np.array([6, 0])
    values = np.array([6.0, diverged])
    draws[:, 1] = diverged
    assert exceeds(values, draws, np.zeros(2))
    assert not exceeds(values[1:], draws[:, 1:], np.zeros(1))
    draws[0, 0] = diverged
    assert not exceeds(values, draws, np.zeros(2))
