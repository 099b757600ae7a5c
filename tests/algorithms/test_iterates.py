"""Every algorithm on every model makes the iterates of a plain loop over one model with gradients by autograd."""

import math

import numpy as np
import pytest
import small
import textbook
import torch
from small import ALGORITHM_CASES, DTYPES, MODEL_CASES, TOLERANCE, Point

from silodp.algorithms import ALGORITHMS
from silodp.experiments.training import train_stack
from silodp.models import MODELS

ROUNDS = 4
SIZES = (7, 5, 9)
# Without and with noise, clip far below and far above every gradient, and one between.
ALL_CLIPPED, NONE_CLIPPED = 0.01, 60.0
POINTS = [
    Point(None, 0.2, math.inf),
    Point(None, 0.5, 0.4),
    Point(500.0, 0.05, NONE_CLIPPED),
    Point(2.0, 0.3, ALL_CLIPPED),
    Point(20.0, 0.1, 0.7),
]


def compare(
    model, algorithm, dtype, *, points=POINTS, sizes=SIZES, M=None, server="mean", prox=None, device="cpu", **options
):
    """Run both and compare every iterate of every point; returns the textbook's gradient norms, point by point."""
    case, plain = MODEL_CASES[model], ALGORITHM_CASES[algorithm]
    made, silos = case.model(), small.records(case, sizes, DTYPES[dtype])
    method = plain.make(ROUNDS, **options)
    plans = small.plans(method, points, sizes)
    first = small.start(made, DTYPES[dtype])
    stack_prox = {} if prox is None else {"prox": prox}
    there = [(x.to(device), y.to(device)) for x, y in silos]
    federation = small.federation(made, there, plans, points, M, server_update=server, **stack_prox)
    found = small.iterates(method, federation, first.to(device), len(points))
    assert {w.dtype for w in found} == {DTYPES[dtype]}
    assert {w.device.type for w in found} == {device}
    found = [w.cpu() for w in found]
    norms = []
    for g, point in enumerate(points):
        problem = small.problem(case.loss, silos, plans[g], point, M, add_up=server == "sum", **stack_prox)
        wanted = plain.run(problem, first.double(), ROUNDS, **options)
        assert len(found) == len(wanted) == ROUNDS
        for r in range(ROUNDS):
            error = textbook.relative_error(found[r][g], wanted[r])
            assert error <= TOLERANCE[dtype], f"{point}, round {r}: {error:.2e}"
        norms.append(problem.norms)
    return norms


def test_every_registered_model_and_algorithm_is_compared():
    compared = {case.registered for case in (MODEL_CASES | small.KINKED_CASES).values()}
    assert compared == set(MODELS) - small.IMAGE_MODELS
    assert {case.registered for case in ALGORITHM_CASES.values()} == set(ALGORITHMS)


@pytest.mark.parametrize(("model", "algorithm"), small.PAIRS)
@pytest.mark.parametrize(("dtype", "M"), [("float64", 2), ("float32", 3)])
def test_the_stack_makes_the_textbooks_iterates(model, algorithm, dtype, M):
    norms = compare(model, algorithm, dtype, M=M)
    assert all(norm > ALL_CLIPPED for norm in norms[3])
    assert all(norm < NONE_CLIPPED for norm in norms[2])


def test_noise_that_leaves_the_ball_of_a_phase_is_brought_back():
    """At this epsilon the noise alone goes farther than 2L/λ in both phases."""
    compare("logistic", "localised_accelerated", "float64", points=[Point(0.02, 0.3, 0.7), Point(None, 0.3, 0.7)])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize(("model", "algorithm"), small.PAIRS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_stack_makes_the_textbooks_iterates_on_an_accelerator(model, algorithm, dtype):
    compare(model, algorithm, dtype, M=2, device="cuda")


@pytest.mark.parametrize(("model", "algorithm"), small.PAIRS)
def test_one_record_a_silo_one_silo_a_round_and_one_point(model, algorithm):
    # One that uses no record twice needs a record for each round.
    sizes = (ROUNDS,) * 3 if ALGORITHM_CASES[algorithm].once else (1, 1, 1)
    compare(model, algorithm, "float64", points=[Point(4.0, 0.1, 0.5)], sizes=sizes, M=1)


@pytest.mark.parametrize("algorithm", ALGORITHM_CASES)
@pytest.mark.parametrize("server", ["mean", "sum"])
def test_server_update_and_a_proximal_map(algorithm, server):
    """An ℓ1 penalty's soft threshold; a server that adds messages up still averages local models."""

    def soft_threshold(w, eta):
        return torch.sign(w) * torch.clamp(w.abs() - 0.1 * eta, min=0)

    prox = soft_threshold if ALGORITHMS[ALGORITHM_CASES[algorithm].registered].proximal else None
    compare("linear", algorithm, "float64", points=POINTS[1:2] + POINTS[3:], M=2, server=server, prox=prox)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("smoothness", [0.01, 0.5, 1e6])
def test_spider_scales_a_differences_noise_by_the_last_move_where_smoothness_is_known(smoothness, dtype):
    compare("logistic", "fedprox_spider-q3", dtype, points=POINTS[2:], smoothness=smoothness)


@pytest.mark.parametrize("output", ["last", "mean_of_last_8"])
def test_training_a_stack_returns_the_last_iterate_or_the_mean_of_the_last_eight(output):
    case, rounds = MODEL_CASES["perceptron-2"], 11
    model, silos, points = case.model(), small.records(case, SIZES, torch.float64), POINTS[:3]
    algorithm = ALGORITHM_CASES["minibatch_sgd"].make(rounds)
    plans, first = small.plans(algorithm, points, SIZES), small.start(model, torch.float64)
    found, left = train_stack(algorithm, small.federation(model, silos, plans, points, 2), model, first, silos, output)
    assert left.tolist() == [-1, -1, -1]
    for g, point in enumerate(points):
        wanted = textbook.minibatch_sgd(small.problem(case.loss, silos, plans[g], point, 2), first, rounds)
        expected = wanted[-1] if output == "last" else torch.stack(wanted[-8:]).mean(0)
        assert textbook.relative_error(found[g], expected) <= 1e-10


@pytest.mark.parametrize(("log_term", "dtype"), [("1/delta", "float64"), ("2/delta", "float32")])
@pytest.mark.parametrize("model", MODEL_CASES)
def test_spider_with_phases_of_one_round_and_the_noise_of_minibatch_sgd_is_minibatch_sgd(model, log_term, dtype):
    case = MODEL_CASES[model]
    points = [Point(None, 0.2, math.inf), Point(1.0, 0.2, 0.5), Point(6.0, 0.05, 3.0)]
    silos, made = small.records(case, SIZES, DTYPES[dtype]), case.model()
    spider = ALGORITHMS["fedprox_spider"](ROUNDS, phase_length=1, spider_q1_noise="minibatch", log_term=log_term)
    minibatch = ALGORITHMS["minibatch_sgd"](ROUNDS, log_term=log_term)
    first = small.start(made, DTYPES[dtype])

    def played(method):
        federation = small.federation(made, silos, small.plans(method, points, SIZES), points, 2)
        return small.iterates(method, federation, first, len(points))

    for ours, theirs in zip(played(spider), played(minibatch), strict=True):
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
        gradients = (1 / (1 + np.exp(-x[index] @ w)) - y[index])[:, None] * x[index]
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        mean = (gradients / np.maximum(1, norms / point.clip)).mean(axis=0)
        noise = sigma * streams.generator("noise", 0, r, "gradient", 0).standard_normal(len(w))
        w = w - point.stepsize * (mean + noise)
        np.testing.assert_allclose(found[r][0].numpy(), w, rtol=1e-12)
