"""The checks at their smallest: every row is there, right forms hold, and printed forms that are wrong fail."""

import numpy as np
import pytest

from silodp.checks import run_check
from silodp.checks.base import Context
from silodp.checks.slots import checked_in, empty_fixed, empty_sliding, slotted_risk
from silodp.checks.upper_bounds import _drawn_silos, _small_beta
from silodp.rng import Streams

SMOKE = Context(Streams(11), "smoke")


def test_printed_forms_fail_where_the_right_ones_hold():
    rows = [*_small_beta(SMOKE), *_drawn_silos(SMOKE)]
    assert {row["verdict"] for row in rows if row["theorem"].endswith("(printed)")} == {"fails as printed"}
    assert {row["verdict"] for row in rows if not row["theorem"].endswith("(printed)")} == {"holds"}
    assert len(rows) == 10


def test_participation_tells_the_harmonic_mean_from_the_mean():
    """At the same E[1/M_r] the ratio is near 1, at the same E[M_r] it is near 4/3 (M_r = 2 or 6)."""
    found = run_check("participation", Context(Streams(11), "smoke")).iloc[:2]
    assert found["measured"].tolist() == pytest.approx([1.0, 4 / 3], rel=0.25)
    assert found["upper"].tolist() == pytest.approx([1.0, 4 / 3])


def test_check_in_rates_with_few_trials_are_not_refuted_and_dummies_confirmed():
    found = run_check("rates_checkins", SMOKE)
    slopes = found[found["parameter"].str.startswith("slope in")]
    assert len(slopes) == 8
    assert not slopes["verdict"].isin(["refuted"]).any()
    dummies = slopes[slopes["theorem"].isin(["checkins-3.4-short", "checkins-4.4"])]
    assert dummies["verdict"].tolist() == ["confirmed", "confirmed"]
    assert (found["verdict"] != "fails").all()


def test_empty_slots_by_hand():
    """One slot is empty when all miss it: n = 2, m = 2, p0 = 1: 2·(1/2)² = 1/2 on average; sliding n = m = 2: 1/4."""
    generator = np.random.default_rng(1)
    assert empty_fixed(2, 2, 1.0, 4000, generator).mean() == pytest.approx(0.5, abs=0.04)
    assert empty_sliding(2, 2, 4000, generator).mean() == pytest.approx(0.25, abs=0.04)


def test_clients_check_in_once_at_most():
    counts = checked_in(50, 10, 0.4, 300, np.random.default_rng(2))
    assert counts.shape == (300, 10)
    assert counts.sum(axis=1).max() <= 50
    assert counts.sum(axis=1).mean() == pytest.approx(20, abs=1)


@pytest.mark.parametrize("average", [True, False])
def test_slots_without_noise_walk_straight_to_the_minimiser(average):
    counts = np.ones((3, 9), dtype=int)
    risk = slotted_risk(counts, 0.5, p=4, sigma=0.0, average=average, generator=np.random.default_rng(1))
    assert risk == pytest.approx(np.zeros(3), abs=1e-12)


def test_an_empty_slot_moves_a_fixed_window_by_noise_alone_and_an_averaging_one_not_at_all():
    empty = np.zeros((2, 1), dtype=int)
    options = {"p": 3, "sigma": 1.0, "generator": np.random.default_rng(1)}
    assert slotted_risk(empty, 0.5, average=True, **options) == pytest.approx([1.0, 1.0])
    assert (slotted_risk(empty, 0.5, average=False, **options) != 1.0).all()
