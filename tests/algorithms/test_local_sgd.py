"""Local SGD with noise in each step, in each contracted step, and at the end of a round."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from silodp.algorithms.local_sgd import LocalSGD
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.models.base import Steps, sequential_steps
from silodp.models.linear import Linear, Logistic, Sigmoid
from silodp.privacy.message_counts import counts_of, draws
from silodp.privacy.plan import Budget
from silodp.privacy.true_epsilon import ends
from silodp.streams import Streams

MODELS = pytest.mark.parametrize("model", [Linear(3), Logistic(3)], ids=["linear", "logistic"])
BUDGET = Budget(40, 5, 2.0, 1e-3, 2.0)


def plan(noise_at, budget=BUDGET):
    return LocalSGD.with_options({"rounds": 5, "silos": 1, "cohort": 1, "noise_at": noise_at}).plan(budget)


def tensors(*values):
    return [torch.tensor(value, dtype=torch.float64) for value in values]


def silo(seed, n=40, size=1.0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(n, 3)) * size), torch.from_numpy((rng.random(n) > 0.5).astype(float))


def model_after_a_round(model, noise_at, records, clip, stepsize, noise=None, seed=1):
    # One kind of message for all, so that all draw the same records.
    release = replace(plan(noise_at).releases[0], kind="step")
    messages = Messages(model, [records], Streams(seed))
    scale = torch.zeros(1, dtype=torch.float64) if noise is None else noise
    query = Query(torch.full((1, 3), 0.3, dtype=torch.float64), 0, "step")
    return messages.local_model(query, 0, release, *tensors([clip]), scale, *tensors([stepsize]))[0]


def test_noise_at_the_end_is_one_gaussian_on_records_drawn_with_replacement():
    ended, steps = plan("end"), plan("step")
    (release,), (step,) = ended.releases, steps.releases
    K = step.steps
    assert (release.count, release.records, release.records_drawn) == (5, K, K)
    # As much noise as K steps add up to, on K times the sensitivity of the mean.
    assert release.noise_multiplier == pytest.approx(step.noise_multiplier * K**0.5)
    assert counts_of([ended]) == {draws("with", 40, K, release.noise_multiplier): 5}
    assert ends([plan("contracted_step")]).lower == pytest.approx(ends([ended]).lower, rel=0.02)


def test_contracted_steps_are_worth_less_than_all_steps_seen():
    all_seen, last_seen, ended = (ends([plan(where)]) for where in ("step", "contracted_step", "end"))
    assert ended.upper <= last_seen.upper < all_seen.upper
    assert last_seen.lower <= last_seen.upper


@MODELS
def test_without_noise_and_with_short_records_all_three_are_one(model):
    records = silo(0)
    ends = [model_after_a_round(model, where, records, 0.5, 1e-2) for where in ("step", "contracted_step", "end")]
    assert torch.allclose(ends[0], ends[1], rtol=1e-12)
    assert torch.equal(ends[1], ends[2])


@MODELS
def test_the_noise_of_a_round_is_the_plans(model):
    K, noise, stepsize = plan("end").releases[0].records, 0.7, 1e-2

    def ended(seed, *scale):
        return model_after_a_round(model, "end", silo(0), 0.5, stepsize, *scale, seed=seed)

    draws = torch.stack([ended(seed, *tensors([noise])) - ended(seed) for seed in range(400)])
    assert draws.std().item() == pytest.approx(noise * stepsize * K, rel=0.07)


@MODELS
@pytest.mark.parametrize("size", [1.0, 30.0, 1e6])
def test_no_contracted_step_expands_a_distance(model, size):
    x, y = silo(3, 200, size)
    rng = np.random.default_rng(4)
    weights = torch.from_numpy(rng.normal(size=(60, 3)) * rng.choice([1e-3, 1, 100], (60, 1)))
    clip = torch.from_numpy(rng.choice([0.05, 1.0, 1e3], 60))
    stepsize = torch.from_numpy(rng.choice([1e-3, 0.1, 5.0], 60))
    # Points g and g + 30 differ in their start alone.
    clip[30:], stepsize[30:] = clip[:30], stepsize[:30]
    for k in range(len(x)):
        one = x[k : k + 1], y[k : k + 1]
        after = model.local_steps(weights, *one, clip, stepsize, clip * 0, None, contracted=True)
        before, now = ((w[:30] - w[30:]).norm(dim=1) for w in (weights, after))
        assert (now <= before * (1 + 1e-9)).all()


@MODELS
def test_a_record_that_is_drawn_j_times_moves_the_model_by_2_j_eta_clip_at_most(model):
    for seed in range(20):
        x, y = silo(seed, size=10.0)
        x[0] *= 1e3
        other = x.clone(), y.clone()
        other[0][0], other[1][0] = -x[0], 1 - y[0]
        drawn = Messages(model, [(x, y)], Streams(seed)).draw(0, replace(plan("end").releases[0], kind="step"), 0)
        times = int((drawn == 0).sum())
        ends = [model_after_a_round(model, "end", records, 0.5, 2.0, seed=seed) for records in ((x, y), other)]
        assert float((ends[0] - ends[1]).norm()) <= 2 * times * 2.0 * 0.5 * (1 + 1e-9)


@MODELS
def test_the_kernel_contracts_as_plain_steps_do(model):
    x, y = silo(5, 30, 20.0)
    base = torch.from_numpy(np.random.default_rng(6).normal(size=(30, 3)))
    weights = torch.full((4, 3), 0.2, dtype=torch.float64)
    rest = tensors([0.1, 1.0, 10.0, 1e4], [0.01, 0.1, 1.0, 3.0], [0.1, 0.2, 0.0, 0.1])
    done = model.local_steps(weights, x, y, *rest, base, contracted=True)
    assert torch.allclose(done, sequential_steps(model, weights, Steps(x, y, *rest, base, model.curvature)), rtol=1e-9)


def test_a_model_whose_steps_may_expand_distances_is_refused():
    with pytest.raises(ValueError, match="sigmoid: local steps of this model may expand distances"):
        model_after_a_round(Sigmoid(3), "end", silo(0), 0.5, 1e-2)
