"""ε with selection, held against the Rényi accountant of dp-accounting and closed forms."""

import math
from dataclasses import replace

import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.rdp import RdpAccountant
from events import delivered_epsilon

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting.losses import epsilon_of_moments
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.privacy.private_selection import (
    ORDERS,
    repeated_renyi,
    selection_epsilon,
    stopping,
)
from silodp.privacy.shuffling.shuffled_plan import shuffled_plan

DELTA = 1e-6


def plan(sampler, noise, count=25, K=600, n=1238):
    release = Release("gradient", count, K, noise, sampler=sampler)
    return PrivacyPlan("minibatch_sgd", Budget(n, count, 1.0, DELTA, 1.0), (release,))


@pytest.mark.parametrize("shape", [0.0, 1.0])
@pytest.mark.parametrize("mean", [2.0, 40.0, 1000.0])
def test_the_best_of_gaussian_runs_is_what_dp_accounting_has(mean, shape):
    accountant = RdpAccountant(orders=list(ORDERS))
    accountant.compose(dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(3.0), mean, shape))
    rdp = repeated_renyi(ORDERS, ORDERS / 18, mean, shape)
    found = epsilon_of_moments((ORDERS - 1) * rdp, ORDERS - 1, DELTA).min()
    assert found == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-3)


@pytest.mark.parametrize("mean", [1.5, 7.0, 40.0, 1e6])
def test_the_number_of_tries_has_the_wanted_mean(mean):
    gamma = stopping(mean, 0.0)
    assert (1 / gamma - 1) / math.log(1 / gamma) == pytest.approx(mean, rel=1e-9)
    assert 1 / stopping(mean, 1.0) == pytest.approx(mean)


def test_one_try_is_the_run_itself_up_to_renyis_slack():
    one = plan("replacement", 0.02)
    own = delivered_epsilon(one, DELTA).upper
    assert own <= selection_epsilon([one], 1) <= 1.2 * own
    # A number of tries barely above 1, which no root can tell from it.
    assert selection_epsilon([one], 1) <= selection_epsilon([one], 1 + 2e-16) <= 1.3 * own


def test_a_sampled_run_is_within_dp_accountings_bound():
    """Whose Rényi bound for records drawn without replacement is a general one."""
    one = plan("subset", 0.2, K=10)
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    gaussian = dp_event.GaussianDpEvent(one.noise_multiplier)
    drawn = dp_event.SelfComposedDpEvent(
        dp_event.SampledWithoutReplacementDpEvent(one.budget.n, 10, gaussian), one.releases[0].count
    )
    accountant.compose(dp_event.RepeatAndSelectDpEvent(drawn, 40, 1.0))
    assert selection_epsilon([one], 40) <= accountant.get_epsilon(DELTA) * (1 + 1e-3)


def test_the_least_private_point_counts():
    weak, strong = plan("replacement", 0.03), plan("replacement", 0.3)
    assert selection_epsilon([strong, weak], 10) == pytest.approx(selection_epsilon([weak], 10), rel=1e-2)
    assert selection_epsilon([weak], 10) > selection_epsilon([weak], 3)
    with pytest.raises(ValueError, match=r"tries = 0.5: must be at least 1"):
        selection_epsilon([weak], 0.5)


def test_what_no_bound_covers_is_infinite_or_unknown():
    private = plan("replacement", 3.0)
    baseline = replace(private, budget=replace(private.budget, epsilon=None))
    assert selection_epsilon([private, baseline], 5.0) == math.inf
    shuffled = ALGORITHMS["sdp_prox_sgd"].with_options({"rounds": 4, "silos": 3, "cohort": 3})
    sums = shuffled_plan(shuffled.plan(Budget(40, 4, 2.0, 1e-4, 9.0)), 3, 5)
    assert math.isnan(selection_epsilon([sums], 5.0))
    assert math.isfinite(selection_epsilon([private], 1.0))
