"""Runs in the stack: with one run the trainer's own messages, with many as many independent ones."""

import numpy as np
import pytest
import torch

from silodp.audit.canary import CLIP, linear_canary, perceptron_canary
from silodp.audit.stacked_runs import stacked
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.privacy.plan import Release

STREAMS = Streams(3).child("stacked")
N, K = 12, 5
STEPS = Release("step", K, 1, 0.0, steps=K)


def clips(rows):
    return torch.full((rows,), CLIP, dtype=torch.float64)


def ask(made, canary, rows, noise=0.3, previous=None, **how):
    # The first disjoint batch holds the canary.
    round = 0 if how.get("sampler") == "disjoint" else 2
    query = Query(canary.weights.repeat(rows, 1), round, previous=previous)
    return made.message(query, 0, Release("gradient", 1, K, noise, **how), clips(rows), clips(rows) * noise)


@pytest.mark.parametrize("sampler", ["replacement", "all"])
@pytest.mark.parametrize("clipping", ["record", "per_tensor", "batch_mean"])
@pytest.mark.parametrize("points", [1, 3])
def test_one_run_is_the_trainers(sampler, clipping, points):
    canary = perceptron_canary(N)
    plain, stack = (make(canary.model, [canary.silos[0]], STREAMS) for make in (Messages, stacked(Messages, 1)))
    sent = [ask(made, canary, points, sampler=sampler, clipping=clipping) for made in (plain, stack)]
    torch.testing.assert_close(*sent)


def test_one_run_of_differences_is_the_trainers():
    canary = linear_canary(N)
    plain, stack = (make(canary.model, [canary.silos[0]], STREAMS) for make in (Messages, stacked(Messages, 1)))
    sent = [ask(made, canary, 2, previous=canary.previous.repeat(2, 1)) for made in (plain, stack)]
    torch.testing.assert_close(*sent)


def test_one_run_of_local_steps_is_the_trainers():
    canary = linear_canary(N)
    models = []
    for make in (Messages, stacked(Messages, 1)):
        made = make(canary.model, [canary.silos[0]], STREAMS)
        step = clips(2) * 0 + canary.stepsize
        query = Query(canary.weights.repeat(2, 1), 1, "step")
        models.append(made.local_model(query, 0, STEPS, clips(2), clips(2) * 0.3, step))
    one, other = ((canary.weights - model) / canary.stepsize for model in models)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * CLIP)


def test_local_steps_that_change_gradients_are_refused():
    canary = linear_canary(N)
    made = stacked(Messages, 2)(canary.model, [canary.silos[0]], STREAMS)
    step = clips(2) * 0 + 1e9
    with pytest.raises(ValueError, match="gradients stay the same"):
        made.local_model(Query(canary.weights.repeat(2, 1), 0, "step"), 0, STEPS, clips(2), clips(2), step)


@pytest.mark.parametrize(
    ("sampler", "often"), [("replacement", K / N), ("subset", K / N), ("disjoint", 1.0), ("all", 1.0)]
)
def test_each_run_draws_its_own(sampler, often):
    """How often runs drew the canary, from how far their messages are from the replacement's: on average, and apart."""
    runs, canary = 4000, linear_canary(N)
    sent = []
    for silo in canary.silos:
        made = stacked(Messages, runs)(canary.model, [silo], STREAMS)
        sent.append(ask(made, canary, runs, noise=0.0, sampler=sampler))
    size = N if sampler == "all" else K
    times = ((sent[0] - sent[1]).norm(dim=1) * size / (2 * CLIP)).numpy()
    np.testing.assert_allclose(times, np.rint(times), atol=1e-3)
    assert abs(times.mean() - often) < 4 * np.sqrt(often / runs)
    assert (len(set(np.rint(times))) > 1) == (sampler in ("replacement", "subset"))


def test_each_run_has_its_own_noise_and_its_points_share_it():
    canary = linear_canary(N)
    made = stacked(Messages, 2000)(canary.model, [canary.silos[1]], STREAMS)
    noise = ask(made, canary, 4000, noise=0.3) - ask(made, canary, 4000, noise=0.0)
    of_runs = (noise / (0.3 * CLIP)).reshape(2000, 2, -1)
    torch.testing.assert_close(of_runs[:, 0], of_runs[:, 1])
    assert abs(float(of_runs[:, 0].std()) - 1) < 0.06
    assert abs(float((of_runs[:-1, 0] * of_runs[1:, 0]).mean())) < 0.06
