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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("log_term", ["1/delta", "2/delta"])
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


def test_the_own_noise_of_spider_at_phases_of_one_round_is_larger_than_that_of_minibatch_sgd():
    """σ₁² = 16L²R ln(1/δ)/(n²ε²) against 8L²R ln(1/δ)/(n²ε²): the printed noise costs a factor √2."""
    point = [Point(1.0, 0.1, 1.0)]
    own = small.plans(ALGORITHMS["fedprox_spider"](ROUNDS), point, SIZES)[0][0]["gradient"]
    minibatch = small.plans(ALGORITHMS["minibatch_sgd"](ROUNDS), point, SIZES)[0][0]["gradient"]
    assert own.records == minibatch.records
    assert own.noise == pytest.approx(math.sqrt(2) * minibatch.noise, rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("algorithm", ALGORITHM_CASES)
@pytest.mark.parametrize("model", MODEL_CASES)
def test_no_noise_and_a_clip_above_every_gradient_is_the_baseline(model, algorithm, dtype):
    """A point with a claimed ε whose noise is set to zero, beside one that is not private and has no clip."""
    case, method = MODEL_CASES[model], ALGORITHM_CASES[algorithm].make(ROUNDS)
    points = [Point(1.0, 0.1, 1e6), Point(None, 0.1, math.inf)]
    silos, made = small.records(case, SIZES, DTYPES[dtype]), case.model()
    federation = small.federation(made, silos, small.plans(method, points, SIZES), points, 2)
    federation.noise = [{kind: noise * 0 for kind, noise in kinds.items()} for kinds in federation.noise]
    for both in small.iterates(method, federation, small.start(made, DTYPES[dtype]), 2):
        torch.testing.assert_close(both[0], both[1], rtol=1e-13 if dtype == "float64" else 2e-6, atol=0)


@pytest.mark.parametrize("algorithm", [name for name, case in ALGORITHM_CASES.items() if case.formula])
def test_less_noise_leads_to_the_baseline(algorithm):
    """ε → ∞ with the clip held: iterates approach those without noise linearly in 1/ε."""
    case, method = MODEL_CASES["logistic"], ALGORITHM_CASES[algorithm].make(ROUNDS)
    epsilons = [1e2, 1e4, 1e6]
    points = [Point(None, 0.1, 0.5)] + [Point(epsilon, 0.1, 0.5) for epsilon in epsilons]
    silos, made = small.records(case, SIZES, torch.float64), case.model()
    federation = small.federation(made, silos, small.plans(method, points, SIZES), points)
    last = small.iterates(method, federation, small.start(made, torch.float64), len(points))[-1]
    distance = (last[1:] - last[0]).norm(dim=1)
    assert distance[0] > 0
    assert (distance[1] / distance[0]).item() == pytest.approx(1e-2, rel=0.2)
    assert (distance[2] / distance[1]).item() == pytest.approx(1e-2, rel=0.02)


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


@pytest.mark.parametrize("epsilon", [None, 3.0])
def test_local_sgd_of_one_silo_is_central_noisy_sgd(epsilon):
    """One long chain of R·K one-record steps: averaging one model changes nothing."""
    case, point, n = MODEL_CASES["logistic"], Point(epsilon, 0.2, 0.8), 23
    (silo,), made = small.records(case, (n,), torch.float64), case.model()
    method = ALGORITHMS["local_sgd"](ROUNDS)
    plan = small.plans(method, [point], (n,))
    first = small.start(made, torch.float64)
    found = small.iterates(method, small.federation(made, [silo], plan, [point]), first, 1)[-1]
    x, y, w = silo[0].numpy(), silo[1].numpy(), first.numpy().copy()
    release = plan[0][0]["step"]
    streams = small.STREAMS.child("messages")
    chain = [
        (record, z)
        for r in range(ROUNDS)
        for record, z in zip(
            streams.generator("records", 0, r, "step").integers(0, n, size=release.drawn),
            streams.generator("noise", 0, r, "step", 0).standard_normal((release.drawn, len(w))),
            strict=True,
        )
    ]
    assert len(chain) == release.count
    for record, z in chain:
        g = clipped(logistic_gradients(w, x[[record]], y[[record]]), point.clip)[0]
        w = w - point.stepsize * (g + (release.noise * point.clip if epsilon else 0) * z)
    np.testing.assert_allclose(found[0].numpy(), w, rtol=1e-11)


def test_one_local_step_a_round_of_equal_silos_is_minibatch_sgd_of_one_record():
    """K = 1: averaging models after one step is stepping by the averaged gradients, noise included."""
    case, n = MODEL_CASES["perceptron-3"], 6
    silos, made = small.records(case, (n, n, n), torch.float64), case.model()
    points = [Point(None, 0.2, 1.0), Point(5.0, 0.2, 1.0)]
    last = []
    for name, kind in (("minibatch_sgd", "gradient"), ("local_sgd", "step")):
        method = ALGORITHMS[name](ROUNDS)
        federation = small.federation(made, silos, small.plans(method, points, (n, n, n), batch_records=1), points)
        # The two name their streams by their kind of message; here they draw from the same.
        draw, noise = federation.messages._draw, federation.messages._noise
        federation.messages._draw = lambda silo, k, r, _, draw=draw: draw(silo, k, r, "shared")
        federation.messages._noise = lambda rows, like, silo, r, _, noise=noise: noise(rows, like, silo, r, "shared")
        sigmas = [scale[kind] for scale in federation.noise]
        last.append((sigmas, small.iterates(method, federation, small.start(made, torch.float64), 2)[-1]))
    assert all(torch.equal(a, b) for a, b in zip(last[0][0], last[1][0], strict=True))
    torch.testing.assert_close(last[0][1], last[1][1], rtol=1e-12, atol=0)


def test_spider_without_noise_on_full_batches_is_gradient_descent():
    """With every record in every batch the corrections are exact differences, so h is the gradient in every round."""
    case, n = MODEL_CASES["linear"], 5
    (silo,), made = small.records(case, (n,), torch.float64), case.model()
    point = [Point(None, 0.1, math.inf)]
    for method in (ALGORITHMS["fedprox_spider"](ROUNDS, phase_length=ROUNDS), ALGORITHMS["fed_spider"](3)):
        federation = small.federation(made, [silo], small.plans(method, point, (n,)), point)
        federation.records = [dict.fromkeys(federation.records[0], n)]
        federation.messages._draw = lambda *_: silo
        found = small.iterates(method, federation, small.start(made, torch.float64), 1)[-1][0]
        x, y, w = silo[0].numpy(), silo[1].numpy(), small.start(made, torch.float64).numpy().copy()
        steps = ROUNDS if method.name == "fedprox_spider" else 2 * (3 - 1)
        for _ in range(steps):
            w = w - 0.1 * x.T @ (x @ w - y) / n
        np.testing.assert_allclose(found.numpy(), w, rtol=1e-12)
