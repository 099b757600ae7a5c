"""The peers make the message they are said to make, and the bench times the rounds it says."""

import math

import pytest
import textbook
import torch

import peers
from workload import FLOP, FULL, QUICK, Workload

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workload():
    return Workload(QUICK, torch.float64)


def test_the_full_problem_is_that_of_the_mnist_experiment():
    work = Workload(FULL)
    assert work.model.size == 3394
    assert FULL.points == len(work.epsilons) == 175
    assert [release.records_drawn for release in work.plan("minibatch_sgd").releases] == [604]
    assert work.gradients("minibatch_sgd", 1) == 25 * 604 * 175
    # A fresh gradient of K₁ = ⌊n·√24/2·√(2/25)⌋ records, then a difference of two over K₂ = 604.
    assert work.gradients("fedprox_spider", 2) == 25 * 175 * (854 + 2 * 604)
    assert work.gradients("fed_spider", 2) == 25 * 175 * 4 * 604
    assert FLOP == 13_568


def test_gradients_counted_are_gradients_computed(workload, monkeypatch):
    seen = []
    model = type(workload.model)
    original = model.clipped_gradient_sum

    def counting(self, weights, x, y, clip):
        seen.append(len(weights) * len(x))
        return original(self, weights, x, y, clip)

    monkeypatch.setattr(model, "clipped_gradient_sum", counting)
    for name, count in (("minibatch_sgd", 1), ("fedprox_spider", 2), ("fed_spider", 2)):
        seen.clear()
        workload.rounds(name, count)()
        assert sum(seen) == workload.gradients(name, count)


@pytest.mark.parametrize("clip", [0.05, 1.0, math.inf])
def test_peers_clipped_sums_are_those_of_autograd_record_by_record(workload, clip):
    x, y = (tensor[:7] for tensor in workload.silos[0])
    loss = textbook.perceptron(64, 2)
    wanted = sum(textbook.clip_to(textbook.gradient(loss, workload.start, x[k], y[k]), clip) for k in range(7))
    for run in (peers.vmap_run(workload, None), peers.vmap_run(workload, 3), peers.jacobian_run(workload)):
        found = peers.clipped_sum(run.gradients(run.parameters(workload.start), x, y), clip)
        flat = torch.cat([part.flatten() for part in found])
        assert textbook.relative_error(flat, wanted) <= 1e-12


def test_peers_agree_with_the_stack(workload):
    assert peers.disagreement(workload, records=20) <= 1e-10
    assert peers.disagreement(Workload(QUICK), records=20) <= 1e-4


def test_a_peers_round_without_noise_is_the_stacks(workload):
    """Same records for all: with one record a silo there is nothing to draw."""
    run = peers.vmap_run(workload, None)
    run.noise, run.records = 0.0, 5
    one = Workload(QUICK, torch.float64)
    one.silos = [(x[:1], y[:1]) for x, y in one.silos]
    run.workload = one
    clip = torch.tensor([run.clip], dtype=torch.float64)
    messages = [one.model.clipped_gradient_sum(one.start[None], x, y, clip)[0] for x, y in one.silos]
    wanted = one.start - run.stepsize * sum(messages) / len(messages)
    assert textbook.relative_error(torch.cat([part.flatten() for part in run.round()]), wanted) <= 1e-12
