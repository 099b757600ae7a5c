"""Rounding of contracted local steps: next to nothing up to the bound on weights, far beyond it neighbours drift."""

import dataclasses

import numpy as np
import pytest
import torch

from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.models.linear import Linear, Logistic
from silodp.privacy.accounting.accountant import upper_epsilon
from silodp.privacy.floating_point import SLACK, counting_rounding, largest_weights
from silodp.privacy.plan import Budget, PrivacyPlan, Release

CLIP, STEPSIZE, STEPS = 1.0, 0.01, 20


def drift(model, d, norm, seed, dtype=torch.float64):
    """How far two neighbours' models end apart over 2ηL: one record of a fixed batch is another."""
    generator = np.random.default_rng(seed)
    direction = generator.standard_normal(d)
    weights = torch.tensor(norm * direction / np.linalg.norm(direction))[None]
    x = torch.tensor(generator.standard_normal((STEPS, d)) * 10.0 ** generator.uniform(-2, 2, (STEPS, 1)))
    y = torch.tensor(generator.integers(0, 2, STEPS)).double()
    other = x.clone()
    other[0] = torch.tensor(generator.standard_normal(d))
    clip, stepsize = torch.tensor([CLIP]).double(), torch.tensor([STEPSIZE]).double()
    ends = [
        model.local_steps(weights, records, y, clip, stepsize, clip * 0, None, contracted=True)
        for records in (x, other)
    ]
    return float((ends[0] - ends[1]).norm()) / (2 * STEPSIZE * CLIP)


@pytest.mark.parametrize("model", [Linear, Logistic])
@pytest.mark.parametrize("d", [8, 128, 2048])
def test_up_to_the_bound_theorem_4_holds(d, model):
    most = largest_weights(d, STEPS, STEPSIZE, CLIP, 0.0)
    assert most > 10
    assert max(drift(model.build(d, None), d, most, seed) for seed in range(20)) <= 1 + SLACK


def rounding(d, norm, seed):
    """How far contracted steps in float64 end from those in 80-bit numbers, over 2ηL."""
    generator = np.random.default_rng(seed)
    direction = generator.standard_normal(d)
    start = norm * direction / np.linalg.norm(direction)
    x = generator.standard_normal((STEPS, d)) * 10.0 ** generator.uniform(-2, 2, (STEPS, 1))
    w = start.astype(np.longdouble)
    for record in x.astype(np.longdouble):
        square = record @ record
        shrink = min(np.longdouble(1), 2 / (np.longdouble(STEPSIZE) * square))
        gradient = shrink * (w @ record) * record
        w = w - np.longdouble(STEPSIZE) * gradient * min(np.longdouble(1), CLIP / np.sqrt(gradient @ gradient))
    clip, stepsize = torch.tensor([CLIP]).double(), torch.tensor([STEPSIZE]).double()
    records, y = torch.tensor(x), torch.zeros(STEPS).double()
    end = Linear.build(d, None).local_steps(
        torch.tensor(start)[None], records, y, clip, stepsize, clip * 0, None, contracted=True
    )
    return float(np.linalg.norm(end[0].numpy() - w)) / (2 * STEPSIZE * CLIP)


@pytest.mark.parametrize("d", [8, 128, 2048])
def test_at_the_bound_both_neighbours_are_off_by_less_than_the_slack(d):
    most = largest_weights(d, STEPS, STEPSIZE, CLIP, 0.0)
    assert 0 < 2 * max(rounding(d, most, seed) for seed in range(20)) <= SLACK


def test_far_beyond_the_bound_it_does_not():
    """Near ηL·2⁵³ neighbours end up to 30.7 times 2ηL apart, chosen well; 1.19 times with nothing chosen."""
    assert max(drift(Linear.build(8, None), 8, STEPSIZE * CLIP * 2.0**53, seed) for seed in range(20)) > 1.1


def local(noise=0.5, contracted=True):
    release = Release("step", STEPS * 3, 1, noise, steps=STEPS, contracted=contracted)
    return PrivacyPlan("local_sgd", Budget(50, 3, 1.0, 1e-4, 1.0), (release,))


def test_a_promise_counts_rounding_and_refuses_larger_weights():
    plan = counting_rounding(local())
    (release,) = plan.releases
    assert release.sensitivity == 2 * (1 + SLACK)
    assert upper_epsilon(plan, 1e-4) <= upper_epsilon(local(), 1e-4)
    assert counting_rounding(local(contracted=False)) == local(contracted=False)
    x, y = torch.ones(50, 8).double(), torch.zeros(50).double()
    messages = Messages(Linear.build(8, None), [(x, y)], Streams(0))
    clip, stepsize = torch.ones(1).double(), torch.full((1,), STEPSIZE).double()
    most = largest_weights(8, STEPS, STEPSIZE, CLIP, 0.5)

    def ask(norm, dtype=torch.float64, kind=release):
        weights = torch.zeros(1, 8, dtype=dtype)
        weights[0, 0] = norm
        return messages.local_model(Query(weights, 0, "step"), 0, kind, clip, clip * 0.5, stepsize)

    assert torch.isfinite(ask(0.99 * most)).all()
    messages.silos = None  # records are not looked at
    with pytest.raises(ValueError, match=r"message step: weights of norm .*: must be at most"):
        ask(1.01 * most)
    with pytest.raises(ValueError, match="weights of norm nan"):
        ask(float("nan"))
    with pytest.raises(ValueError, match="must be float64"):
        ask(1.0, torch.float32)
    with pytest.raises(TypeError):  # a simulation is about real numbers, and looks at the records
        ask(1e300, kind=dataclasses.replace(release, slack=0.0))
