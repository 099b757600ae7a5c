"""Training jobs: the same table however work is cut, every run recorded, options that do what they say."""

import functools
import math

import numpy as np
import pandas as pd
import pytest
import torch

import small
import textbook
from silodp.algorithms import ALGORITHMS
from silodp.config import Setting
from silodp.datasets import DATASETS
from silodp.models import MODELS, kernels
from silodp.rng import Streams
from silodp.silos import partition
from silodp.training import (
    POINT,
    Task,
    build_model,
    evaluate,
    number_of_silos,
    partition_and_measure,
    prepare,
    run_trial,
    run_trials,
    train_stack,
)
from small import DTYPES, MODEL_CASES, Point

CASES = {
    "perceptron": {},
    "logistic": {"model": {"name": "logistic"}},
    "softmax": {"model": {"name": "softmax"}},
    "linear": {
        "dataset": "diabetes",
        "label": "target",
        "silos": {"scheme": "sorted_target", "count": 3},
        "preprocess": {"constant_column": True},
        "model": {"name": "linear"},
        "clips": [0.5, 50.0],
    },
}


@functools.cache
def data(name):
    return DATASETS[name].load()


def silos_of(config, seed=2023, name="small"):
    """trial → its silos, as the partition job makes them."""

    @functools.cache
    def one(trial):
        return partition(
            data(config.dataset).y,
            scheme=config.silos.scheme,
            silos=number_of_silos(config),
            train_share=config.silos.train_share,
            generator=Streams(seed).generator(name, trial, "partition"),
        )

    return one


def task(algorithm="minibatch_sgd", reading="", **changes):
    config = small.experiment(**changes)
    return Task("small", config, algorithm, config.settings[0], reading)


def train(job, trials=range(3), run=None, **more):
    return run_trials(job, run or small.run(), silos_of(job.config), trials, **more)


def same(a, b, **how):
    pd.testing.assert_frame_equal(
        a.drop(columns="seconds").reset_index(drop=True), b.drop(columns="seconds").reset_index(drop=True), **how
    )


# Cuts of the work


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("case", CASES)
def test_jobs_of_one_trial_or_of_ten_give_the_same_table(case, algorithm):
    job = task(algorithm, trials=10, settings=[{"M": 1, "R": 2}], **CASES[case])
    whole = train(job, range(10))
    assert len(whole) == 10 * len(job.grid())
    parts = [train(job, [trial]) for trial in range(10)]
    same(pd.concat(parts, ignore_index=True), whole, check_exact=True)
    order = train(job, [7, 2])
    same(order, pd.concat([parts[7], parts[2]], ignore_index=True), check_exact=True)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield kernels.use_threads
    kernels.use_threads(1)
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


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("case", CASES)
def test_points_together_are_points_one_at_a_time(case, algorithm):
    """Exactly where a kernel works point by point, to rounding where points share a matrix product."""
    job, run = task(algorithm, **CASES[case]), small.run(dtype="float64")
    whole = train(job, [0], run)
    ones = [train(job, [0], run, points=job.grid().iloc[[g]]) for g in range(len(job.grid()))]
    exact = {"check_exact": True} if case == "perceptron" else {"rtol": 1e-6}
    same(pd.concat(ones, ignore_index=True), whole, **exact)


def exploding(dtype, steps=(0.1, 50.0, 0.02, 1e4, 0.05)):
    """Least squares without a clip: steps above 2/λ blow up, sooner the longer they are."""
    case = MODEL_CASES["linear"]
    points = [Point(None, step, math.inf) for step in steps]
    silos = small.records(case, (9, 6), DTYPES[dtype])
    return case.model(), points, silos


@pytest.mark.parametrize("output", ["last", "mean_of_last_8"])
@pytest.mark.parametrize("dtype", DTYPES)
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


# Divergence in the table


def diverging(dtype="float32", clip=math.inf, **changes):
    """A sound step, one that explodes within the rounds, and one that overflows at once."""
    steps = [0.01, 1e3, 1e38]
    points = pd.DataFrame({"epsilon": math.nan, "stepsize": steps, "clip": clip, "phase_length": 1})
    job = task(settings=[{"M": 2, "R": 8}], algorithms={"minibatch_sgd": {"private": "non_private"}}, **changes)
    return train(job, range(2), small.run(dtype=dtype), points=points)


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_diverges_is_recorded_and_never_dropped(case):
    changes = CASES[case] | ({"settings": [{"M": 3, "R": 8}]} if case == "linear" else {})
    changes.pop("settings", None)
    found = diverging(**changes)
    assert len(found) == 2 * 3
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


def test_a_model_that_overflows_is_wrong_on_nearly_every_record():
    """Class 0, which the larger of two NaN would be taken for, is not right by accident."""
    found = diverging()
    wild = found[found["stepsize"] == 1e38]
    assert not np.isfinite(wild["train_loss"]).any()
    assert (wild[["test_error", "train_error"]] > 0.9).all(axis=None)


def test_a_loss_of_more_than_ten_times_the_first_at_the_end_is_divergence_too():
    """Watched on a few records after every round, and on all of them at the end."""
    job = task(settings=[{"M": 2, "R": 2}])
    found = train(job, [0], points=job.grid().assign(stepsize=30.0, clip=5.0, epsilon=math.nan).iloc[:1])
    prepared = prepare(data("wbcd"), job.config, job.readings, silos_of(job.config)(0), small.run())
    model = build_model(job.config, prepared)
    start = model.initial(Streams(2023).generator("small", 0, "initial"))
    first = evaluate(model, torch.from_numpy(start).float()[None], prepared.train)[0].item()
    assert found["diverged"].tolist() == [bool(found["left_after"][0] >= 0 or found["train_loss"][0] > 10 * first)]
    assert found["diverged"].all()


# Evaluation


def test_evaluation_is_the_mean_over_silos_of_each_silos_mean():
    case = MODEL_CASES["softmax"]
    model, silos = case.model(), small.records(case, (3, 17), torch.float64)
    weights = torch.stack([small.start(model, torch.float64, seed) for seed in (1, 2, 3)])
    loss, error = evaluate(model, weights, silos)
    for g in range(3):
        wanted = np.mean(
            [np.mean([float(case.loss(weights[g], a, b)) for a, b in zip(x, y, strict=True)]) for x, y in silos]
        )
        assert loss[g].item() == pytest.approx(wanted, rel=1e-6)
        wrong = np.mean(
            [(model.outputs(weights[g : g + 1], x)[0].argmax(1) != y).double().mean().item() for x, y in silos]
        )
        assert error[g].item() == pytest.approx(wrong, rel=1e-6)


def test_evaluation_in_parts_is_evaluation_at_once(monkeypatch):
    case = MODEL_CASES["perceptron-2"]
    model, silos = case.model(), small.records(case, (30, 11), torch.float32)
    weights = torch.stack([small.start(model, torch.float32, seed) for seed in range(7)])
    whole = evaluate(model, weights, silos)
    monkeypatch.setattr("silodp.training.EVALUATED", 70)
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


# What a job is made of


def test_a_trial_is_the_textbooks_run_on_the_real_records():
    """Data, start, silos of a round, batches, noise and plan, wired from the task to the table."""
    job, trial = task("fedprox_spider", settings=[{"M": 1, "R": 4}], readings={"records": "own"}), 2
    run, part = small.run(dtype="float64", seed=77), silos_of(small.experiment(), 77)(2)
    found = run_trial(job, run, data("wbcd"), part, trial, job.grid())
    prepared = prepare(data("wbcd"), job.config, job.readings, part, run)
    model, streams = build_model(job.config, prepared), Streams(77).child("small", trial)
    start = torch.from_numpy(model.initial(streams.generator("initial")))
    loss = textbook.perceptron(3, 2)
    assert prepared.sizes == [169, 285]
    for g in (1, 6, 13):
        row = found.iloc[g]
        point = Point(None if math.isnan(row["epsilon"]) else row["epsilon"], row["stepsize"], row["clip"])
        plans = job.plans(row["epsilon"], int(row["phase_length"]), prepared.sizes)
        problem = small.problem(loss, prepared.train, plans, point, 1)
        problem.streams = streams.child("fedprox_spider", "M1_R4", "grid")
        problem.participants = streams.child("grid")
        w = textbook.fedprox_spider(problem, start, 4, int(row["phase_length"]))[-1]
        wanted_loss, wanted_error = evaluate(model, w[None], prepared.test)
        assert row["test_loss"] == pytest.approx(wanted_loss.item(), rel=1e-6)
        assert row["test_error"] == pytest.approx(wanted_error.item(), rel=1e-6)
        assert row["K"] == plans[0]["gradient"].records


def test_rows_say_what_was_trained():
    job = task("local_sgd", settings=[{"M": 1, "R": 3}])
    found = train(job, [0, 2])
    assert found["trial"].tolist() == [0] * len(job.grid()) + [2] * len(job.grid())
    assert list(found.columns[:6]) == ["experiment", "algorithm", "reading", "M", "R", "trial"]
    assert set(found[["experiment", "algorithm", "reading"]].agg(tuple, axis=1)) == {("small", "local_sgd", "")}
    assert (found[["M", "R", "N", "n"]] == [1, 3, 2, 169]).all(axis=None)
    assert (found["delta"] == 169**-2.0).all()
    assert (found["K"] == math.floor(169 / (2 * math.sqrt(3)))).all()
    pd.testing.assert_frame_equal(found[found["trial"] == 2][POINT].reset_index(drop=True), job.grid())
    assert (found["seconds"] > 0).all()


def test_points_may_be_chosen_trial_by_trial():
    job, grid = task(), task().grid()
    points = pd.concat([grid.iloc[[3]].assign(trial=0), grid.iloc[[1, 1, 0]].assign(trial=1)], ignore_index=True)
    found = train(job, [0, 1], points=points)
    assert found["trial"].tolist() == [0, 1, 1]
    pd.testing.assert_frame_equal(found[POINT], grid.iloc[[3, 1, 0]].reset_index(drop=True))
    whole = train(job, [0, 1])
    for row in found.to_dict("records"):
        other = whole[
            (whole[["trial", *POINT]].astype(str) == pd.Series(row)[["trial", *POINT]].astype(str)).all(axis=1)
        ]
        assert other["train_loss"].item() == pytest.approx(row["train_loss"], rel=1e-5)


def test_fresh_runs_share_the_data_and_nothing_that_is_random():
    """New batches, new noise, new silos; the same start and the same records."""
    job = task(settings=[{"M": 1, "R": 3}])
    grid, fresh = train(job), train(job, purpose="fresh")
    assert not np.isclose(grid["train_loss"], fresh["train_loss"], rtol=1e-6).any()
    same(fresh, train(job, purpose="fresh"), check_exact=True)
    same(
        grid[["trial", *POINT, "K", "N", "n", "delta", "seconds"]],
        fresh[["trial", *POINT, "K", "N", "n", "delta", "seconds"]],
    )


def test_algorithms_of_a_trial_share_data_but_not_noise():
    """MB-SGD and SPIDER at q = 1 would agree if they drew the same; they draw batches and noise of their own."""
    a = train(task("minibatch_sgd"), [0])
    b = train(task("fedprox_spider", phase_lengths=[1], readings={"spider_q1_noise": "minibatch"}), [0])
    assert (a[POINT].to_numpy() == b[POINT].to_numpy())[:, 1:].all()
    assert not np.isclose(a["train_loss"], b["train_loss"], rtol=1e-6).any()


def test_the_seed_changes_everything_and_nothing_else_does():
    job = task()
    assert not np.isclose(train(job)["train_loss"], train(job, run=small.run(seed=1))["train_loss"]).any()
    same(train(job), train(job, run=small.run(threads=2, trials_per_job=1)), check_exact=True)


# Options


def test_the_grid_holds_private_points_then_baselines():
    grid = task("fedprox_spider", clips=[0.5, math.inf]).grid()
    private = grid[grid["epsilon"].notna()]
    assert list(grid.columns) == POINT
    assert len(private) == 2 * 2 * 1 * 2
    assert np.isfinite(private["clip"]).all()
    assert len(grid) - len(private) == 2 * 2 * 2
    assert set(grid["phase_length"]) == {1, 2}
    np.testing.assert_allclose(sorted(set(grid["stepsize"])), [math.exp(-3), 1])
    assert set(task("minibatch_sgd").grid()["phase_length"]) == {1}


@pytest.mark.parametrize(("which", "private", "baseline"), [("both", 8, 4), ("private", 8, 0), ("non_private", 0, 4)])
def test_private_form_and_baseline_are_chosen_by_the_algorithm(which, private, baseline):
    grid = task(algorithms={"minibatch_sgd": {"private": which}}).grid()
    assert (grid["epsilon"].notna().sum(), grid["epsilon"].isna().sum()) == (private, baseline)


def test_an_algorithms_own_grid_goes_before_the_settings_and_that_before_the_experiments():
    own = {"low": 0, "high": 0, "points": 1}
    setting = {"M": 2, "R": 3, "stepsizes": {"low": 1, "high": 1, "points": 1}, "phase_lengths": [3]}
    plain = task("fedprox_spider", settings=[setting])
    assert set(plain.grid()["stepsize"]) == {math.e}
    assert set(plain.grid()["phase_length"]) == {3}
    options = {"stepsizes": own, "clips": [9.0], "phase_lengths": [5]}
    mine = task("fedprox_spider", settings=[setting], algorithms={"fedprox_spider": options}).grid()
    assert set(mine["stepsize"]) == {1.0}
    assert set(mine["clip"]) == {9.0}
    assert set(mine["phase_length"]) == {5}


def test_readings_of_the_step_size_grid():
    grid = {"low": -9, "high": 0, "points": 5, "spacing": "linear"}
    linear = sorted(set(task(stepsizes=grid).grid()["stepsize"]))
    np.testing.assert_allclose(np.diff(linear), (1 - math.exp(-9)) / 4)
    exponential = sorted(set(task(stepsizes=grid, readings={"stepsize_grid": "exponential"}).grid()["stepsize"]))
    np.testing.assert_allclose(np.diff(np.log(exponential)), 9 / 4)
    assert linear[0] == pytest.approx(exponential[0])
    assert linear[-1] == pytest.approx(exponential[-1])


def test_readings_of_records_delta_and_batch():
    sizes = [169, 285]
    equal = task().plans(2.0, 1, sizes)
    assert [plan.budget.n for plan in equal] == [169, 169]
    assert [plan.budget.delta for plan in equal] == [169**-2.0] * 2
    own = task(readings={"records": "own"}).plans(2.0, 1, sizes)
    assert [plan.budget.n for plan in own] == sizes
    assert [plan.budget.delta for plan in own] == [169**-2.0, 285**-2.0]
    assert own[0] == equal[0]
    assert task(delta=1e-3).plans(2.0, 1, sizes)[1].budget.delta == 1e-3
    # K = ⌊169·√ε/(2√3)⌋ with ε of the batch (1) or the point's own (2, 8).
    assert [task().plans(e, 1, sizes)[0]["gradient"].records for e in (2.0, 8.0, math.nan)] == [48, 48, 48]
    each = task(readings={"batch": "per_eps"})
    assert [each.plans(e, 1, sizes)[0]["gradient"].records for e in (2.0, 8.0, math.nan)] == [68, 137, 48]
    assert task(batch_records=11).plans(2.0, 1, sizes)[0]["gradient"].records == 11


def test_readings_that_an_algorithm_hears_of():
    assert task().options()["log_term"] == "2/delta"
    assert task(readings={"log_term": "1/delta"}).options()["log_term"] == "1/delta"
    assert task("fed_spider", readings={"fed_spider_releases": "2R-1"}).make(1).fed_spider_releases == "2R-1"
    made = task("fedprox_spider", readings={"spider_q1_noise": "minibatch"}).make(4)
    assert (made.rounds, made.phase_length, made.spider_q1_noise, made.log_term) == (3, 4, "minibatch", "2/delta")
    assert made.smoothness is None


def test_a_task_reads_its_own_reading():
    changes = {"alternatives": [{"batch": "per_eps"}], "readings": {"output": "mean_of_last_8"}}
    assert task(**changes).readings.batch == "eps_max"
    other = task(reading="batch=per_eps", **changes).readings
    assert (other.batch, other.output) == ("per_eps", "mean_of_last_8")


def test_batches_of_their_own_are_trained_beside_each_other():
    """Points of unlike K cannot share draws; their rows come back in the order of the grid all the same."""
    job = task(readings={"batch": "per_eps"})
    found = train(job, [0])
    pd.testing.assert_frame_equal(found[POINT], job.grid())
    assert found.groupby("epsilon", dropna=False)["K"].unique().map(list).tolist() == [[68], [137], [48]]


@pytest.mark.parametrize("output", ["last", "mean_of_last_8"])
def test_the_output_that_is_asked_for_is_evaluated(output):
    found = train(task(readings={"output": output}), [0])
    other = train(task(readings={"output": {"last": "mean_of_last_8", "mean_of_last_8": "last"}[output]}), [0])
    assert not np.isclose(found["test_loss"], other["test_loss"], rtol=1e-6).any()


def test_a_server_that_adds_up_is_one_with_a_longer_step():
    added = train(task(readings={"server_update": "sum"}), [0], run=small.run(dtype="float64"))
    job = task()
    longer = train(
        job, [0], run=small.run(dtype="float64"), points=job.grid().assign(stepsize=2 * job.grid()["stepsize"])
    )
    np.testing.assert_allclose(added["train_loss"], longer["train_loss"], rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_records_reach_the_silos_as_the_partition_says(dtype):
    config = small.experiment(preprocess={"standardise": False})
    part = silos_of(config)(0)
    prepared = prepare(data("wbcd"), config, config.readings, part, small.run(dtype=dtype))
    assert (prepared.features, prepared.classes, prepared.sizes) == (30, 2, [169, 285])
    for found, records in [*zip(prepared.train, part.train, strict=True), *zip(prepared.test, part.test, strict=True)]:
        assert found[0].dtype == DTYPES[dtype]
        np.testing.assert_array_equal(found[0].numpy(), data("wbcd").x[records].astype(dtype))
        np.testing.assert_array_equal(found[1].numpy(), data("wbcd").y[records])


def test_labels_are_whole_numbers_for_classes_and_reals_for_the_rest():
    for case, kind in (
        ("perceptron", torch.int64),
        ("softmax", torch.int64),
        ("logistic", torch.float32),
        ("linear", torch.float32),
    ):
        config = small.experiment(**CASES[case])
        prepared = prepare(data(config.dataset), config, config.readings, silos_of(config)(0), small.run())
        assert {y.dtype for _, y in prepared.train} == {kind}
        model = build_model(config, prepared)
        assert isinstance(model, type(MODELS[case](3, 2, **({"hidden": 2} if case == "perceptron" else {}))))


def test_number_of_silos():
    digits = {"dataset": "digits", "label": "parity", "silos": {"scheme": "digit_pairs"}}
    assert number_of_silos(small.experiment(**digits)) == 25
    assert number_of_silos(small.experiment()) == 2
    assert number_of_silos(small.experiment(**CASES["linear"])) == 3


def test_partitions_of_all_trials_and_how_far_their_silos_are_apart():
    config = small.experiment(trials=2, **CASES["linear"])
    parts, measured = partition_and_measure("small", config, config.readings, small.run(), data("diabetes"))
    assert len(parts) == len(measured) == 2
    for trial, part in enumerate(parts):
        wanted = silos_of(config)(trial)
        assert all((a == b).all() for a, b in zip(part.train + part.test, wanted.train + wanted.test, strict=True))
    assert any((a != b).any() for a, b in zip(parts[0].train, parts[1].train, strict=True))
    assert all(one.value > 0 and one.converged for one in measured)


def test_an_experiments_own_device_goes_before_the_runs():
    config = small.experiment(device="cpu")
    prepared = prepare(data("wbcd"), config, config.readings, silos_of(config)(0), small.run(device="cuda"))
    assert prepared.train[0][0].device.type == "cpu"


def test_settings_are_named_by_silos_and_rounds():
    assert Setting(M=12, R=25).name == "M12_R25"
