"""What a training job is made of, and options that do what they say."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import small
import textbook
import torch
from events import delivered_epsilon
from jobs import data, same, silos_of, task, train
from small import DTYPES, Point

from silodp.experiments.task import POINT
from silodp.experiments.training import evaluate, run_trial
from silodp.partition.trial_data import build_model, prepare
from silodp.streams import Streams


def test_a_trial_is_the_textbooks_run_on_the_real_records():
    """Data, start, silos of a round, batches, noise and plan, wired from the task to the table."""
    job, trial = task("fedprox_spider", settings=[{"M": 1, "R": 4}], readings={"records": "own"}), 2
    run, part = small.run(dtype="float64", seed=77), silos_of(small.experiment(), 77)(2)
    prepared = prepare(data("wbcd"), job.config, job.readings, part, run)
    found = run_trial(job, run, prepared, trial, job.grid())
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


def test_rows_say_what_was_trained_and_points_may_be_chosen_trial_by_trial():
    job, grid = task(), task().grid()
    points = pd.concat([grid.iloc[[3]].assign(trial=0), grid.iloc[[1, 1, 0]].assign(trial=1)], ignore_index=True)
    found = train(job, [0, 1], points=points)
    assert found["trial"].tolist() == [0, 1, 1]
    pd.testing.assert_frame_equal(found[POINT], grid.iloc[[3, 1, 0]].reset_index(drop=True))
    whole = train(job, [0, 1])
    assert list(whole.columns[:6]) == ["experiment", "algorithm", "reading", "M", "R", "trial"]
    named = whole[["experiment", "algorithm", "reading", "M", "R", "N", "n", "delta"]].drop_duplicates()
    assert named.to_numpy().tolist() == [["small", "minibatch_sgd", "", 2, 3, 2, 169, 169**-2.0]]
    both = found.merge(whole, on=["trial", *POINT], suffixes=("", "_whole"))
    assert len(both) == len(found)
    assert both["train_loss"].tolist() == pytest.approx(both["train_loss_whole"].tolist(), rel=1e-5)


def test_fresh_runs_share_data_but_no_random_draws():
    """New batches, new noise, new silos; the same start and the same records."""
    job = task(settings=[{"M": 1, "R": 3}])
    grid, fresh = train(job), train(job, purpose="fresh")
    assert not np.isclose(grid["train_loss"], fresh["train_loss"], rtol=1e-6).any()
    same(fresh, train(job, purpose="fresh"), check_exact=True)
    shared = ["trial", *POINT, "K", "N", "n", "delta", "seconds"]
    same(grid[shared], fresh[shared])


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


def test_grids_of_algorithm_setting_and_experiment_take_precedence_in_this_order():
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


@pytest.mark.parametrize("spacing", ["linear", "exponential"])
def test_a_widened_grid_holds_the_given_one_and_goes_on_beyond_both_ends(spacing):
    grid = {"low": -9, "high": 0, "points": 7, "spacing": spacing}
    clips = [0.5, 5.0, math.inf]
    given = task(stepsizes=grid, clips=clips).grid()
    wider = task(stepsizes=grid, clips=clips, readings={"grid": "widened"}).grid()
    steps, more = sorted(set(given["stepsize"])), sorted(set(wider["stepsize"]))
    assert set(steps) < set(more)
    apart = 1.0 if spacing == "linear" else 1.5
    beyond = math.ceil(3 / apart)
    np.testing.assert_allclose(np.log(more[:beyond]), -9 - apart * np.arange(beyond, 0, -1))
    np.testing.assert_allclose(np.log(more[-beyond:]), apart * np.arange(1, beyond + 1))
    assert more[beyond:-beyond] == steps
    assert set(wider["clip"]) == {0.05, 0.5, 5.0, 50.0, math.inf}
    assert set(wider.dropna()["clip"]) == {0.05, 0.5, 5.0, 50.0}, "no noise is made for no clip"


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


def test_batches_of_their_own_are_trained_beside_each_other():
    """Points of unlike K cannot share draws; their rows come back in the order of the grid all the same."""
    job = task(readings={"batch": "per_eps"})
    found = train(job, [0])
    pd.testing.assert_frame_equal(found[POINT], job.grid())
    assert found.groupby("epsilon", dropna=False)["K"].unique().map(list).tolist() == [[68], [137], [48]]


def test_summing_server_equals_a_longer_step():
    job, run = task(), small.run(dtype="float64")
    added = train(task(readings={"server_update": "sum"}), [0], run)
    longer = train(job, [0], run, points=job.grid().assign(stepsize=2 * job.grid()["stepsize"]))
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


@pytest.mark.parametrize("value", [1e12, math.inf, math.nan])
def test_features_out_of_range_are_refused_before_training(value):
    config = small.experiment(preprocess={"standardise": False})
    records = data("wbcd")
    spoilt = records.x.copy()
    spoilt[3, 2] = value
    spoilt = dataclasses.replace(records, x=spoilt)
    with pytest.raises(ValueError, match="features must be finite and at most"):
        prepare(spoilt, config, config.readings, silos_of(config)(0), small.run())


@pytest.mark.parametrize("name", ["minibatch_sgd", "fedprox_spider", "fed_spider", "prox_svrg"])
def test_subset_sampler_draws_and_accounts_for_distinct_records(name):
    """The accountant's `upper` is then within 5 % of what neighbours reach, and below that with replacement."""
    keys = {"settings": [{"M": 2, "R": 12}], "batch_epsilon": 24.0}
    default, subset = task(name, **keys), task(name, readings={"sampler": "subset"}, **keys)
    (plan, *_), (other, *_) = (job.plans(6.0, 2, [285, 285]) for job in (default, subset))
    drawn = {one.kind: one.sampler for one in other.releases if one.sampler != "all"}
    assert set(drawn.values()) == {"subset"}
    assert plan == dataclasses.replace(other, releases=plan.releases)
    found, before = (delivered_epsilon(one, one.budget.delta) for one in (other, plan))
    assert found.upper <= 1.05 * found.lower
    assert found.upper < before.upper
    first, second = (train(job, [0]) for job in (default, subset))
    assert not first["train_loss"].equals(second["train_loss"])
