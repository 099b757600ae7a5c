"""Training jobs: the same table however work is cut, every run recorded, every record counted."""

import math

import numpy as np
import pandas as pd
import pytest
import small
import textbook
import torch
from jobs import CASES, data, same, silos_of, task, train
from small import DTYPES, MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.experiments.training import evaluate, train_stack
from silodp.models.threads import use_threads
from silodp.partition.trial_data import build_model, prepare

# Every algorithm on one model, and both ways to make messages on the others.
PAIRS = [("perceptron", algorithm) for algorithm in ALGORITHMS]
PAIRS += [(case, algorithm) for case in CASES if case != "perceptron" for algorithm in ("minibatch_sgd", "local_sgd")]


@pytest.mark.parametrize("algorithm", ["minibatch_sgd", "local_sgd"])
def test_where_every_gradient_is_clipped_only_step_times_clip_counts(algorithm):
    """So the lowest clip of a grid is no edge where the chosen product lies inside (docs/results.md)."""
    grid = {"low": -math.log(10), "high": 0, "points": 2, "spacing": "exponential"}
    job = task(algorithm, stepsizes=grid, clips=[1e-6, 1e-5], epsilons=[2.0])
    rows = train(job, [0], small.run(dtype="float64")).query("epsilon.notna()")
    errors = rows.pivot(index="stepsize", columns="clip", values="train_loss").to_numpy()
    assert errors[1, 0] == pytest.approx(errors[0, 1], rel=1e-9)
    assert len(np.unique(errors.round(12))) == 3


@pytest.mark.parametrize(("case", "algorithm"), PAIRS)
def test_cutting_trials_into_jobs_does_not_change_the_table(case, algorithm):
    job = task(algorithm, trials=2, settings=[{"M": 1, "R": 2}], **CASES[case])
    whole = train(job, range(2))
    assert len(whole) == 2 * len(job.grid())
    parts = [train(job, [trial]) for trial in range(2)]
    same(pd.concat(parts, ignore_index=True), whole, check_exact=True)
    order = train(job, [1, 0])
    same(order, pd.concat(parts[::-1], ignore_index=True), check_exact=True)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield use_threads
    use_threads(1)
    torch.set_num_threads(before)


@pytest.mark.parametrize("case", CASES)
def test_threads_do_not_change_the_table(case, threads):
    for algorithm in ("minibatch_sgd", "local_sgd"):
        job, found = task(algorithm, **CASES[case]), []
        for count in (1, 2, 3):
            threads(count)
            found.append(train(job, range(1)))
        same(found[1], found[0], check_exact=True)
        same(found[2], found[0], check_exact=True)


@pytest.mark.parametrize(("case", "algorithm"), PAIRS)
def test_points_train_together_as_they_do_alone(case, algorithm):
    """Exactly where a kernel works point by point, to rounding where points share a matrix product."""
    job, run = task(algorithm, **CASES[case]), small.run(dtype="float64")
    whole = train(job, [0], run)
    some = range(0, len(job.grid()), 3)
    ones = [train(job, [0], run, points=job.grid().iloc[[g]]) for g in some]
    exact = {"check_exact": True} if case == "perceptron" else {"rtol": 1e-6}
    same(pd.concat(ones, ignore_index=True), whole.iloc[some].reset_index(drop=True), **exact)


def exploding(dtype, steps=(0.1, 50.0, 0.02, 1e4, 0.05)):
    """Least squares without a clip: steps above 2/λ blow up, sooner the longer they are."""
    case = MODEL_CASES["linear"]
    points = [Point(None, step, math.inf) for step in steps]
    silos = small.records(case, (9, 6), DTYPES[dtype])
    return case.model(), points, silos


@pytest.mark.parametrize(("dtype", "output"), [("float64", "last"), ("float32", "mean_of_last_8")])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_points_go_on_as_before_when_others_leave_the_stack(name, dtype, output):
    model, points, silos = exploding(dtype)
    method, rounds = ALGORITHMS[name].with_options({"rounds": 6, "phase_length": 2}), 6
    first = small.start(model, DTYPES[dtype])

    def train_(chosen):
        federation = small.federation(model, silos, small.plans(method, chosen, (9, 6)), chosen, 1)
        return train_stack(method, federation, model, first, silos, output)

    weights, left = train_(points)
    assert left[[0, 2, 4]].tolist() == [-1, -1, -1]
    assert all(0 <= r < rounds for r in left[[1, 3]].tolist())
    for g in range(5):
        alone, gone = train_([points[g]])
        assert gone[0] == left[g]
        assert textbook.relative_error(weights[g], alone[0]) < (1e-12 if dtype == "float64" else 1e-4)
    # All may leave; the rounds that are left are not run.
    weights, left = train_([points[1], points[3]])
    assert (left >= 0).all()


def test_a_point_leaves_with_the_weights_that_diverged():
    """Its loss is over ten times the first, and it is evaluated as it was when it left."""
    model, points, silos = exploding("float64", steps=(50.0,))
    method, first = ALGORITHMS["minibatch_sgd"](6), small.start(model, torch.float64)
    plans = small.plans(method, points, (9, 6))
    weights, left = train_stack(method, small.federation(model, silos, plans, points), model, first, silos)
    wanted = small.iterates(method, small.federation(model, silos, plans, points), first, 1)
    losses = [evaluate(model, w, silos)[0].item() for w in wanted]
    limit = 10 * evaluate(model, first[None], silos)[0].item()
    expected = next(r for r, loss in enumerate(losses) if loss > limit)
    assert left.tolist() == [expected]
    assert torch.equal(weights[0], wanted[expected][0])


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_diverges_is_recorded_and_never_dropped(case):
    """A sound step, one that explodes within the rounds, and one that overflows at once."""
    points = pd.DataFrame({"epsilon": math.nan, "stepsize": [0.01, 1e3, 1e38], "clip": math.inf, "phase_length": 1})
    algorithms = {"minibatch_sgd": {"private": "non_private"}}
    job = task(settings=[{"M": 2, "R": 8}], algorithms=algorithms, **CASES[case])
    found = train(job, range(2), points=points)
    assert found.groupby("trial").size().tolist() == [3, 3]
    sound, wild = found[found["stepsize"] == 0.01], found[found["stepsize"] == 1e38]
    assert not sound["diverged"].any()
    assert (sound["left_after"] == -1).all()
    assert np.isfinite(sound[["train_loss", "test_loss", "test_error", "train_error"]]).all(axis=None)
    assert wild["diverged"].all()
    assert (wild["left_after"] == 0).all()
    if case == "linear":
        assert np.isposinf(wild["test_error"]).all()
        assert np.isposinf(wild["train_error"]).all()
    else:
        assert wild["test_error"].between(0, 1).all()
    assert not found["test_error"].isna().any()


@pytest.mark.parametrize("how", ["left", "loss"])
def test_leaving_the_stack_and_a_large_loss_at_the_end_are_each_divergence(how, monkeypatch):
    """One without the other: a loss that came down again, and one that the watched records did not show."""

    def changed(*arguments):
        weights, left = train_stack(*arguments)
        if how == "left":
            left[1] = 2
        else:
            weights[1] *= 1e4
        return weights, left

    monkeypatch.setattr("silodp.experiments.training.train_stack", changed)
    job = task()
    found = train(job, [0], points=job.grid().assign(stepsize=0.01).iloc[[0, 5, 9]])
    assert found["diverged"].tolist() == [False, True, False]
    assert found["left_after"].tolist() == [-1, 2 if how == "left" else -1, -1]


def test_evaluation_is_the_mean_over_silos_of_each_silos_mean():
    case = MODEL_CASES["softmax"]
    model, silos = case.model(), small.records(case, (3, 17), torch.float64)
    weights = torch.stack([small.start(model, torch.float64, seed) for seed in (1, 2, 3)])
    loss, error = evaluate(model, weights, silos)
    for g in range(3):
        losses = [[float(case.loss(weights[g], a, b)) for a, b in zip(x, y, strict=True)] for x, y in silos]
        assert loss[g].item() == pytest.approx(np.mean([np.mean(of_silo) for of_silo in losses]), rel=1e-6)
        wrong = [(model.outputs(weights[g : g + 1], x)[0].argmax(1) != y).double().mean().item() for x, y in silos]
        assert error[g].item() == pytest.approx(np.mean(wrong), rel=1e-6)


def test_evaluation_in_parts_is_evaluation_at_once(monkeypatch):
    case = MODEL_CASES["perceptron-2"]
    model, silos = case.model(), small.records(case, (30, 11), torch.float32)
    weights = torch.stack([small.start(model, torch.float32, seed) for seed in range(7)])
    whole = evaluate(model, weights, silos)
    monkeypatch.setattr("silodp.experiments.training.EVALUATED", 70)
    parts = evaluate(model, weights, silos)
    assert torch.equal(whole[0], parts[0])
    assert torch.equal(whole[1], parts[1])


@pytest.mark.parametrize("name", MODEL_CASES)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_model_that_is_not_finite_is_wrong_everywhere(name, value):
    case = MODEL_CASES[name]
    model, silos = case.model(), small.records(case, (6, 4), torch.float64)
    weights = torch.stack([small.start(model, torch.float64)] * 2)
    weights[1] = value
    loss, error = evaluate(model, weights, silos)
    assert torch.isfinite(loss[0])
    assert torch.isfinite(error[0])
    assert not torch.isfinite(loss[1])
    assert error[1].item() == (math.inf if case.classes is None else 1.0)


def test_regression_errors_are_relative_to_predicting_the_training_mean():
    job = task("minibatch_sgd", **CASES["linear"])
    points = pd.DataFrame({"epsilon": [math.nan], "stepsize": [1e-30], "clip": [1.0], "phase_length": [1]})
    found = train(job, [0], points=points)
    part, y = silos_of(job.config)(0), data("diabetes").y
    mean = np.concatenate([y[records] for records in part.train]).mean()
    around_zero = np.mean([np.mean(y[records] ** 2) for records in part.test])
    around_mean = np.mean([np.mean((y[records] - mean) ** 2) for records in part.test])
    assert found["test_error"][0] == pytest.approx(math.sqrt(around_zero / around_mean), rel=1e-5)
    # A model that does predict the training mean has error 1: the constant column is the last feature.
    prepared = prepare(data("diabetes"), job.config, job.readings, part, small.run())
    weights = torch.zeros((1, prepared.features))
    weights[0, -1] = mean
    _, error = evaluate(build_model(job.config, prepared), weights, prepared.test)
    assert math.sqrt(error.item() / around_mean) == pytest.approx(1, rel=1e-5)


def test_the_host_reads_the_probe_once_a_round(monkeypatch):
    model, points, silos = exploding("float32", steps=(0.01,))
    first, reads = small.start(model, torch.float32), []
    cpu = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: reads.append(tensor) or cpu(tensor))
    for rounds in (3, 7):
        method = ALGORITHMS["minibatch_sgd"](rounds)
        federation = small.federation(model, silos, small.plans(method, points, (9, 6)), points)
        reads.clear()
        train_stack(method, federation, model, first, silos)
        assert len(reads) == rounds
