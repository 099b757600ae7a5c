"""Extreme inputs get a number by little work, and edge cases of the sampling their exact ε."""

import math

import dp_accounting as dp
import numpy as np
import pytest
from events import delivered_epsilon, upper_epsilon

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting.accountant import drawn_epsilon
from silodp.privacy.accounting.certificate import certified_epsilon
from silodp.privacy.accounting.losses import LossPmf
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import Occurrences, at_most_once, gaussian_occurrences
from silodp.privacy.plan import Budget, PrivacyPlan, Release

# Losses of lattices that are summed for a number; 1e8 take about a second of a core.
LIMIT = 3e8


def replaced(n, K, z, R=1):
    return dp.SelfComposedDpEvent(dp.SampledWithReplacementDpEvent(n, K, dp.GaussianDpEvent(z)), R)


def distinct(n, K, z, R=1):
    return dp.SelfComposedDpEvent(dp.SampledWithoutReplacementDpEvent(n, K, dp.GaussianDpEvent(z)), R)


EXTREMES = {
    "tiny noise, two records": (replaced(2, 1, 1e-6), 1e-5),
    "tiny noise, all of a thousand": (replaced(1000, 1000, 1e-6), 1e-6),
    "nothing but noise": (replaced(1000, 100, 1e12, 10000), 1e-6),
    "a hundred million rounds": (replaced(1000, 1, 100.0, 10**8), 1e-6),
    "tiny delta": (replaced(1000, 100, 1.0, 5), 1e-300),
    "rare draws": (distinct(10**9, 1, 1e-4, 1000), 1e-12),
    "noise beyond measure, all of four": (replaced(4, 4, 6.5e11, 134), 5.3e-24),
    "a tiny epsilon": (distinct(31, 7, 1.66e7, 29), 2.5e-13),
    "a tinier epsilon": (distinct(9, 6, 9.15e9, 7), 1.7e-20),
    "far apart": (dp.ComposedDpEvent([replaced(1000, 100, 1e-5, 25), distinct(1000, 100, 2e5, 25)]), 1e-6),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_an_extreme_input_gets_a_number_soon(name, monkeypatch):
    (event, delta), work, log_moment = EXTREMES[name], [], LossPmf.log_moment
    monkeypatch.setattr(
        LossPmf, "log_moment", lambda law, order: work.append(len(law.masses)) or log_moment(law, order)
    )
    found = delivered_epsilon(event, delta)
    assert sum(work) < LIMIT
    assert bool(work) == (name != "nothing but noise"), "there a record's ε is found without a lattice"
    assert 0 <= found.lower <= found.estimate <= found.upper < math.inf


def test_where_noise_hides_nearly_all_epsilon_is_the_gaussians():
    """ε of 3e-7: the certificate's hinge was rounded away, and its upper end lay 14 % below what silos reach.

    So far below one, sampling divides a shift by n/K and nothing else.
    """
    for n, K, z, R, delta in ((31, 7, 1.66e7, 29, 2.5e-13), (9, 6, 9.15e9, 7, 1.7e-20), (31, 7, 1e6, 29, 1e-12)):
        found = delivered_epsilon(distinct(n, K, z, R), delta)
        exact = gaussian_epsilon(delta, math.sqrt(R) * K / n / z)
        assert found.lower <= exact <= found.upper < 1.05 * exact


@pytest.mark.parametrize(("n", "K"), [(1000, 10), (100, 1), (7, 2)])
@pytest.mark.parametrize("z", [1e-3, 0.1, 1.0])
def test_a_delta_as_large_as_the_draw_of_the_record_needs_no_epsilon(n, K, z):
    assert delivered_epsilon(distinct(n, K, z), K / n).upper == 0
    # Just below it, one release gives what the Gaussian's own profile at δ/q says.
    if z >= 0.1:
        found, share = delivered_epsilon(distinct(n, K, z), 0.5 * K / n), K / n
        assert found.upper == pytest.approx(math.log1p(share * math.expm1(gaussian_epsilon(0.5, 1 / z))), rel=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("q", [0.05, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("s", [0.5, 3.0, 100.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2, 0.5])
def test_counted_draws_of_one_release_stay_below_its_exact_epsilon(q, s, delta):
    exact = math.log1p(q * math.expm1(gaussian_epsilon(delta / q, s))) if delta < q and s < 30 else math.inf
    assert drawn_epsilon([(at_most_once(q, 1 / s), 1)], delta) <= (exact * (1 + 1e-9) if delta < q else 0.0)


def test_what_is_cut_from_the_law_of_occurrences_is_charged():
    """At δ = 1e-3 a second occurrence of probability 5e-4 was left out, and ε came out too small."""
    delta, R = 1e-3, 10

    def certified(tail):
        return certified_epsilon([(Occurrences(np.array([0.9, 0.1 - tail]), tail, 1.0), R)], delta, 1e-3)

    assert certified(5e-5) > certified(0.0)
    given = Occurrences(np.array([0.9, 0.1 - 5e-5]) / (1 - 5e-5), 0.0, 1.0)
    assert certified(5e-5) == pytest.approx(certified_epsilon([(given, R)], delta - R * 5e-5, 1e-3), rel=1e-9)
    assert certified(2e-4) == math.inf, "all of δ is cut off: nothing is proven"


@pytest.mark.parametrize(("n", "K"), [(5, 2), (10, 3), (50, 7)])
def test_a_clipped_means_lower_end_is_reached_by_its_exact_probability(n, K):
    """The record is drawn with probability 1 − (1 − 1/n)^K, which no whole number of n records has."""
    share, delta = 1 - (1 - 1 / n) ** K, 1e-3
    release = Release("gradient", 1, K, 2.0, clipping="batch_mean")
    found = delivered_epsilon(PrivacyPlan("minibatch_sgd", Budget(n, 1, 1.0, delta, 1.0), (release,)), delta)
    exact = math.log1p(share * math.expm1(gaussian_epsilon(delta / share, 1.0)))
    assert found.lower <= exact <= found.upper


def test_noise_that_follows_the_last_move_is_not_proven():
    made = ALGORITHMS["fedprox_spider"].with_options({"rounds": 4, "phase_length": 2, "smoothness": 0.01})
    assert upper_epsilon(made.plan(Budget(100, 4, 1.0, 1e-4, 1.0)), 1e-4) == math.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("n", "K", "R"), [(3, 150, 1), (3, 150, 7), (2, 128, 100), (5, 300, 2)])
def test_a_record_that_is_drawn_in_every_message_has_both_ends(n, K, R):
    found = delivered_epsilon(replaced(n, K, 40.0, R), 1e-6)
    assert 0 < found.lower <= found.upper < math.inf


def test_counted_draws_of_records_that_always_take_part_are_the_gaussians():
    always, squares = [(gaussian_occurrences(0.3), 9), (gaussian_occurrences(0.05), 40)], 9 * 0.3**2 + 40 * 0.05**2
    exact = gaussian_epsilon(1e-6, math.sqrt(squares))
    assert drawn_epsilon(always, 1e-6) == pytest.approx(exact, rel=1e-9)
    assert exact < drawn_epsilon([*always, (at_most_once(0.5, 1 / 0.1), 100)], 1e-6)
