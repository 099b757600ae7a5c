"""Special cases in which two algorithms, or an algorithm and a known one, must be the same."""

import math

import numpy as np
import pytest
import small
import torch
from small import ALGORITHM_CASES, DTYPES, MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS

ROUNDS = 5
SIZES = (6, 8, 5)


@pytest.mark.parametrize(("log_term", "dtype"), [("1/delta", "float64"), ("2/delta", "float32")])
@pytest.mark.parametrize("model", MODEL_CASES)
def test_spider_with_phases_of_one_round_and_the_noise_of_minibatch_sgd_is_minibatch_sgd(model, log_term, dtype):
    case = MODEL_CASES[model]
    points = [Point(None, 0.2, math.inf), Point(1.0, 0.2, 0.5), Point(6.0, 0.05, 3.0)]
    silos, made = small.records(case, SIZES, DTYPES[dtype]), case.model()
    spider = ALGORITHMS["fedprox_spider"](ROUNDS, phase_length=1, spider_q1_noise="minibatch", log_term=log_term)
    minibatch = ALGORITHMS["minibatch_sgd"](ROUNDS, log_term=log_term)
    first = small.start(made, DTYPES[dtype])
    a, b = (
        small.iterates(
            algorithm,
            small.federation(made, silos, small.plans(algorithm, points, SIZES), points, 2),
            first,
            len(points),
        )
        for algorithm in (spider, minibatch)
    )
    for ours, theirs in zip(a, b, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(("model", "algorithm"), small.PAIRS)
def test_no_noise_and_a_clip_above_every_gradient_is_the_baseline(model, algorithm):
    """A point with a claimed ε whose noise is set to zero, beside one that is not private and has no clip."""
    case, method = MODEL_CASES[model], ALGORITHM_CASES[algorithm].make(ROUNDS)
    points = [Point(1.0, 0.1, 1e6), Point(None, 0.1, math.inf)]
    silos, made = small.records(case, SIZES, torch.float64), case.model()
    federation = small.federation(made, silos, small.plans(method, points, SIZES), points, 2)
    federation.noise = [{kind: noise * 0 for kind, noise in kinds.items()} for kinds in federation.noise]
    for both in small.iterates(method, federation, small.start(made, torch.float64), 2):
        torch.testing.assert_close(both[0], both[1], rtol=1e-13, atol=0)


def logistic_gradients(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of each record's logistic loss, (n, d)."""
    return (1 / (1 + np.exp(-x @ w)) - y)[:, None] * x


def clipped(gradients: np.ndarray, clip: float) -> np.ndarray:
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(1, norms / clip)


@pytest.mark.parametrize("name", ["minibatch_sgd", "fedprox_spider"])
def test_one_silo_is_central_dp_sgd(name):
    """DP-SGD as everyone writes it: sample, clip each gradient, average, add Gaussian noise, step."""
    case, point, n = MODEL_CASES["logistic"], Point(3.0, 0.3, 0.8), 23
    (silo,), made = small.records(case, (n,), torch.float64), case.model()
    method = ALGORITHMS[name](ROUNDS)
    plan = small.plans(method, [point], (n,))
    first = small.start(made, torch.float64)
    found = small.iterates(method, small.federation(made, [silo], plan, [point]), first, 1)
    x, y, w = silo[0].numpy(), silo[1].numpy(), first.numpy().copy()
    batch, sigma = plan[0][0]["gradient"].records, plan[0][0]["gradient"].noise * point.clip
    streams = small.STREAMS.child("messages")
    for r in range(ROUNDS):
        index = streams.generator("records", 0, r, "gradient").integers(0, n, size=batch)
        mean = clipped(logistic_gradients(w, x[index], y[index]), point.clip).mean(axis=0)
        noise = sigma * streams.generator("noise", 0, r, "gradient", 0).standard_normal(len(w))
        w = w - point.stepsize * (mean + noise)
        np.testing.assert_allclose(found[r][0].numpy(), w, rtol=1e-12)
