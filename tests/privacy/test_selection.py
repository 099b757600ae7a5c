"""ε with selection, held against the Rényi accountant of dp-accounting and closed forms."""

import dataclasses
import math

import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.rdp import RdpAccountant

from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.privacy.selection import (
    ORDERS,
    renyi_epsilon,
    repeated_renyi,
    selected_epsilon,
    selection_epsilon,
    stopping,
)

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
    assert renyi_epsilon(ORDERS, rdp, DELTA) == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-3)


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
    accountant.compose(dp_event.RepeatAndSelectDpEvent(one.event, 40, 1.0))
    assert selection_epsilon([one], 40) <= accountant.get_epsilon(DELTA) * (1 + 1e-3)


def test_the_least_private_point_counts():
    weak, strong = plan("replacement", 0.03), plan("replacement", 0.3)
    assert selection_epsilon([strong, weak], 10) == pytest.approx(selection_epsilon([weak], 10), rel=1e-2)
    assert selection_epsilon([weak], 10) > selection_epsilon([weak], 3)
    with pytest.raises(ValueError, match=r"tries = 0.5: must be at least 1"):
        selection_epsilon([weak], 0.5)


def test_selections_and_runs_compose_as_in_dp_accounting():
    n, history = 200, []
    accountant = RdpAccountant(orders=list(ORDERS), neighboring_relation=NeighboringRelation.REPLACE_ONE)
    for tries, z in ((5, 4.0), (1, 6.0), (30, 9.0)):
        message = Release("score", 2, n, 2 * z / n, sampler="all")
        history.append(PrivacyPlan("any", Budget(n, 2, 1.0, DELTA, 1.0), (message,), tries=tries))
        event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(z), 2)
        accountant.compose(dp_event.RepeatAndSelectDpEvent(event, tries, 0.0) if tries > 1 else event)
    found = selected_epsilon(history, DELTA)
    assert found == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-3)
    assert selected_epsilon(history, DELTA, 1, 2) > 1.9 * found
    assert math.isinf(selected_epsilon(history, DELTA, 1, n + 1))
    assert selected_epsilon([dataclasses.replace(history[0], tries=1)], DELTA) < selected_epsilon(history[:1], DELTA)


@pytest.mark.parametrize("noise", [0.3, 1.0, 10.0])
def test_no_other_shape_costs_less_than_the_one_that_is_drawn(noise):
    for mean in (1.5, 3, 10, 40, 1000):
        costs = [renyi_epsilon(ORDERS, repeated_renyi(ORDERS, ORDERS / (2 * noise**2), mean, s), DELTA) for s in (0, 1)]
        assert costs[0] < costs[1]
