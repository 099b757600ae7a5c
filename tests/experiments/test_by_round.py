"""ε by round: what has been sent when a round is over, and what it gives."""

import dataclasses
import itertools

import pytest

from silodp.algorithms import ALGORITHMS
from silodp.experiments.delivered import epsilon_by_round, sent_by_round
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.adversary import delivered
from silodp.privacy.plan import Budget

BUDGET = Budget(60, 6, 2.0, 1e-3, 4.0)


def made(name):
    more = {"noise": 0.4} if name.startswith("shuffled") else {}
    return ALGORITHMS[name].with_options({"rounds": 6, "phase_length": 2, "restarts": 2, **more})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_at_the_end_everything_has_been_sent(name):
    algorithm = made(name)
    plan = algorithm.plan(BUDGET)
    sent = sent_by_round(algorithm, plan)
    assert len(sent) == 6
    assert sent[-1] == {release.kind: release.count for release in plan.releases}
    assert all(before[kind] <= after[kind] for before, after in itertools.pairwise(sent) for kind in before)


@pytest.mark.parametrize("name", ["minibatch_sgd", "local_sgd", "fed_spider", "prox_svrg", "sdp_fedprox_spider"])
def test_epsilon_grows_to_the_runs(name):
    algorithm = made(name)
    plan = algorithm.plan(BUDGET)
    found = epsilon_by_round(algorithm, plan, (1, 3, 6))
    values = [value for _, value in found]
    assert [number for number, _ in found] == [1, 3, 6]
    assert 0 < values[0] < values[1] < values[2] == delivered(plan).upper


def test_disjoint_batches_cost_nothing_after_the_first():
    algorithm = made("prox_sgd")
    plan = algorithm.plan(BUDGET)
    assert {value for _, value in epsilon_by_round(algorithm, plan)} == {delivered(plan).upper}


def test_messages_on_all_records_have_a_closed_form():
    algorithm = made("minibatch_sgd")
    plan = algorithm.plan(BUDGET)
    plan = dataclasses.replace(plan, releases=(dataclasses.replace(plan.releases[0], sampler="all"),))
    for number, value in epsilon_by_round(algorithm, plan):
        assert value == pytest.approx(gaussian_epsilon(1e-3, number**0.5 / plan.noise_multiplier), rel=1e-9)
