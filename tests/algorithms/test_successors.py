"""What the successors are at the ends of their parameters, and what their messages and plans hold."""

import dataclasses
import math

import numpy as np
import pytest
import small
import torch
from events import delivered_epsilon
from small import ALGORITHM_CASES, MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.localised_accelerated import phase_rounds
from silodp.algorithms.minibatch_sgd_correlated import inverse_root
from silodp.experiments.training import train_stack
from silodp.federation.interface import Query
from silodp.privacy.plan import Budget, Release, whitening

ROUNDS, SIZES = 5, (12, 9, 10)
POINTS = [Point(2.0, 0.1, 0.7), Point(None, 0.3, math.inf)]


def played(method, sizes=SIZES):
    case = MODEL_CASES["logistic"]
    model, silos = case.model(), small.records(case, sizes, torch.float64)
    federation = small.federation(model, silos, small.plans(method, POINTS, sizes), POINTS)
    return small.iterates(method, federation, small.start(model, torch.float64), len(POINTS))


def close(found, wanted):
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_mr_mtl_with_an_infinite_pull_is_minibatch_sgd_and_silo_only_training_without():
    minibatch = played(ALGORITHMS["minibatch_sgd"](ROUNDS))
    close(played(ALGORITHMS["mr_mtl"](ROUNDS, silos=3, phase_length=1e-14)), minibatch)
    case, far = MODEL_CASES["logistic"], ALGORITHMS["mr_mtl"](ROUNDS, silos=3, phase_length=1e14)
    model, silos = case.model(), small.records(case, SIZES, torch.float64)
    federation = small.federation(model, silos, small.plans(far, POINTS, SIZES), POINTS)
    state = far.start(small.start(model, torch.float64).expand(2, -1).clone())
    own = state.own
    for r in range(ROUNDS):
        state = far.round(r, state, federation)
    for silo in range(3):
        w = own[:, silo]
        for r in range(ROUNDS):
            w = w - federation.stepsize * federation.message(w, silo, r)
        torch.testing.assert_close(state.own[:, silo], w, rtol=1e-9, atol=1e-12)


def test_a_model_for_each_silo_is_evaluated_and_kept_where_points_leave():
    case, method = MODEL_CASES["logistic"], ALGORITHMS["mr_mtl"](ROUNDS, silos=3, phase_length=3)
    model, silos = case.model(), small.records(case, SIZES, torch.float64)
    points = [*POINTS, Point(None, 1e9, math.inf)]
    federation = small.federation(model, silos, small.plans(method, points, SIZES), points)
    outputs, left = train_stack(method, federation, model, small.start(model, torch.float64), silos)
    assert outputs.shape == (3, 3, model.size)
    assert left.tolist()[:2] == [-1, -1]
    assert left[2] >= 0
    assert not torch.allclose(outputs[0, 0], outputs[0, 1])


def test_momentum_without_memory_is_minibatch_sgd():
    minibatch = played(ALGORITHMS["minibatch_sgd"](ROUNDS))
    close(played(ALGORITHMS["minibatch_sgd_momentum"](ROUNDS, beta=0.0)), minibatch)


@pytest.mark.parametrize(
    ("mixing", "norm"), [((1.0,), 1.0), ((1.0, -1.0), 10.0), (inverse_root(16), 1.4532), (inverse_root(100), 1.5910)]
)
def test_columns_of_c_are_those_of_the_inverse_matrix(mixing, norm):
    rows = np.array([[mixing[t - s] if 0 <= t - s < len(mixing) else 0 for s in range(100)] for t in range(100)])
    np.testing.assert_allclose(whitening(mixing, 100), np.linalg.inv(rows)[:, 0], atol=1e-12)
    assert np.linalg.norm(whitening(mixing, 100)) == pytest.approx(norm, abs=1e-3)
    # The worst noise of a prefix sum at equal privacy, in units of one message's.
    worst = max(np.linalg.norm(np.tril(np.ones((100, 100))) @ rows, axis=1))
    assert worst * norm == pytest.approx({1: 10.0, 2: 10.0, 16: 2.794, 100: 2.531}[len(mixing)], abs=2e-3)


@pytest.mark.parametrize("name", ["minibatch_sgd_correlated", "dp_mu2", "dp_mu2_difference", "dp_mu2_correlated"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_accountants_delta_is_that_of_a_small_transcript(name, epsilon):
    """Shift and covariance of all messages written out; δ by simulated losses, within 5 standard errors."""
    budget = Budget(24, 4, epsilon, 1e-2, 9.0)
    plan = ALGORITHMS[name](4).plan(budget)
    release = plan["gradient"]
    mixing = release.mixing or (1.0,)
    rows = np.array([[mixing[t - s] if 0 <= t - s < len(mixing) else 0 for s in range(4)] for t in range(4)])
    deltas = []
    for first in range(4):
        shift = np.eye(4)[first] * 2 / release.records
        covariance = release.noise**2 * rows @ rows.T
        draws = np.random.default_rng(first).standard_normal((400_000, 4)) @ (release.noise * rows).T + shift
        loss = draws @ np.linalg.solve(covariance, shift) - shift @ np.linalg.solve(covariance, shift) / 2
        gain = np.maximum(0, 1 - np.exp(epsilon - loss))
        deltas.append((gain.mean(), 5 * gain.std() / math.sqrt(len(gain))))
    most, error = max(deltas)
    assert delivered_epsilon(plan, budget.delta).upper == pytest.approx(epsilon, rel=1e-4)
    assert most == pytest.approx(budget.delta, abs=error)


def test_noise_of_a_silos_messages_has_the_plans_covariance_and_counts_its_own_messages_only():
    """On zero records a message is its noise: 20,000 coordinates, entries within 5 standard errors."""
    mixing, d = (1.0, -0.5, -0.125), 20_000
    case = MODEL_CASES["linear"]
    zero = [(torch.zeros((8, d), dtype=torch.float64), torch.zeros(8, dtype=torch.float64))]
    method, point = ALGORITHMS["minibatch_sgd_correlated"](4, terms=3), Point(1.0, 0.1, 2.0)
    plans = small.plans(method, [point], (8,))
    federation = small.federation(case.model(d), zero, plans, [point])
    rounds = (0, 2, 3)  # the silo is not drawn in round 1
    w = torch.zeros((1, d), dtype=torch.float64)
    sent = np.stack([federation.message(w, 0, r)[0].numpy() for r in rounds])
    rows = np.array([[mixing[t - s] if t >= s else 0 for s in range(3)] for t in range(3)])
    wanted = (plans[0][0]["gradient"].noise * point.clip) ** 2 * rows @ rows.T
    np.testing.assert_allclose(sent @ sent.T / d, wanted, atol=5 * wanted.max() * math.sqrt(2 / d))
    # Asked again, the same message.
    np.testing.assert_array_equal(federation.message(w, 0, 2)[0].numpy(), sent[1])


def test_a_joint_contribution_is_clipped_as_a_whole_whatever_its_factors():
    case = MODEL_CASES["logistic"]
    model, silos = case.model(), small.records(case, (6,), torch.float64)
    messages = small.Messages(model, [(silos[0][0][:1], silos[0][1][:1])], small.STREAMS)
    w, clip = small.start(model, torch.float64)[None], torch.tensor([0.05], dtype=torch.float64)
    release = Release("gradient", 1, 1, 0.0, sampler="disjoint", joint=True)
    for factors in ((1.0, 0.0), (9.0, 8.0), (1e6, 1e6 - 1)):
        sent = messages.message(Query(w, 0, previous=-3 * w, factors=factors), 0, release, clip, clip * 0)
        assert float(sent.norm()) == pytest.approx(0.05)


def test_phases_share_no_record_and_the_plans_epsilon_is_the_largest_phases():
    assert [phase_rounds(R) for R in (1, 4, 25, 35)] == [(1,), (3, 1), (16, 6, 2, 1), (23, 8, 3, 1)]
    plan = ALGORITHMS["localised_accelerated"](25).plan(Budget(169, 25, 2.0, 1e-4, 8.0))
    taken = [record for r in plan.releases for record in range(r.part[0], sum(r.part))]
    assert len(taken) == len(set(taken)) <= 169
    louder = dataclasses.replace(plan.releases[1], noise=plan.releases[1].noise / 3)
    plan = dataclasses.replace(plan, releases=(plan.releases[0], louder, *plan.releases[2:]))
    alone = [delivered_epsilon(dataclasses.replace(plan, releases=(r,)), 1e-4).upper for r in plan.releases]
    assert delivered_epsilon(plan, 1e-4).upper == max(alone) == alone[1]


@pytest.mark.parametrize(
    ("name", "sizes", "last"),
    [
        ("one_pass_accelerated_sgd", (12, 3, 12), 2),
        ("prox_sgd", (24, 4, 24), 3),
        ("minibatch_sgd_correlated", (2, 2, 2), 1),
        ("dp_mu2", (2, 2, 2), 1),
        ("localised_accelerated", (2, 2, 2), 10),
    ],
)
def test_rounds_after_the_smallest_silos_last_record_change_nothing(name, sizes, last):
    iterates = played(ALGORITHM_CASES[name].make(12), sizes=sizes)
    assert not torch.equal(iterates[last], iterates[last - 1])
    assert all(torch.equal(w, iterates[last]) for w in iterates[last + 1 :])
