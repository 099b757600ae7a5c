"""`schedule: theorem-…` in an experiment: the theorem's numbers reach the run."""

import functools
import math

import numpy as np
import pytest
import small
import torch

from silodp.algorithms import ALGORITHMS
from silodp.datasets import DATASETS
from silodp.experiments.schedules import prescribe
from silodp.experiments.task import Task
from silodp.experiments.training import run_trials
from silodp.federation.partition import partition
from silodp.federation.rng import Streams
from silodp.federation.trial_data import prepare
from silodp.theory.convex.schedules import SCHEDULES

CONSTANTS = {"d": 30, "beta": 8.0, "mu": 0.1}


def config(algorithm, schedule, model="logistic", **more):
    options = {"schedule": schedule, "private": "private", "constants": CONSTANTS}
    return small.experiment(
        model={"name": model},
        settings=[{"M": 2, "R": 100_000}],
        clips=[2.0],
        radius=0.5,
        delta=1e-4,
        algorithms={algorithm: options},
        **{"epsilons": [0.5, 1.0]} | more,
    )


@functools.cache
def silos(trial):
    return partition(
        DATASETS["wbcd"].load().y, scheme="by_class", silos=2, generator=Streams(1).generator("partition", trial)
    )


def records(experiment):
    data, run = DATASETS["wbcd"].load(), small.run()
    return lambda trial: prepare(data, experiment, experiment.readings, silos(trial), run)


def test_every_schedule_belongs_to_one_algorithm():
    names = [name for algorithm in ALGORITHMS.values() for name in algorithm.schedules]
    assert len(set(names)) == len(names)
    assert set(names) <= set(SCHEDULES)
    assert not ALGORITHMS["local_sgd"].schedules


def test_constants_reach_the_theorem():
    experiment = config("minibatch_sgd", "theorem-2.1")
    found = prescribe(experiment, "minibatch_sgd", experiment.settings[0], N=2, n=169, epsilon=0.5, delta=1e-4)
    wanted = SCHEDULES["theorem-2.1"](n=169, d=30, M=2, L=2.0, D=0.5, beta=8.0, epsilon=0.5, delta=1e-4)
    assert found == wanted


def test_too_many_rounds_are_refused():
    experiment = config("minibatch_sgd", "theorem-2.1-strong")
    short = experiment.settings[0].model_copy(update={"R": 2})
    with pytest.raises(
        ValueError, match=r"theorem-2.1-strong asks for \d+ rounds at epsilon = 0.5, R = 2 allows fewer"
    ):
        prescribe(experiment, "minibatch_sgd", short, N=2, n=169, epsilon=0.5, delta=1e-4)


@pytest.mark.parametrize(
    ("algorithm", "schedule", "model"),
    [
        ("minibatch_sgd", "theorem-2.1", "logistic"),
        ("minibatch_sgd", "theorem-2.2", "hinge"),
        ("accelerated_minibatch_sgd", "theorem-D.1", "logistic"),
        ("accelerated_minibatch_sgd", "theorem-2.4", "hinge"),
        ("one_pass_accelerated_sgd", "theorem-2.3", "logistic"),
        ("one_pass_accelerated_sgd", "theorem-2.3-strong", "logistic"),
    ],
)
def test_a_run_by_theorem(algorithm, schedule, model):
    """The plan has the theorem's rounds, batch and noise, and the result keeps to the ball."""
    experiment = config(algorithm, schedule, model)
    task = Task("small", experiment, algorithm, experiment.settings[0])
    sizes = [len(records) for records in silos(0).train]
    for epsilon in (0.5, 1.0):
        wanted = prescribe(
            experiment, algorithm, experiment.settings[0], N=2, n=min(sizes), epsilon=epsilon, delta=1e-4
        )
        release = task.plans(epsilon, 1, sizes)[0]["gradient"]
        assert (release.count, release.records) == (wanted.rounds, wanted.batch)
        assert release.noise * 2.0 == pytest.approx(math.sqrt(wanted.sigma2))
    found = run_trials(task, small.run(), records(experiment), range(1))
    assert found["epsilon"].tolist() == [0.5, 1.0]
    assert found["stepsize"].isna().all()
    assert np.isfinite(found["train_loss"]).all()
    assert not found["diverged"].any()


def test_a_clip_read_off_the_data_is_twice_the_longest_record():
    """Training with L = 2·max‖x‖ given as a number makes the same models."""
    base = {"model": {"name": "logistic"}, "algorithms": {"minibatch_sgd": {}}}
    rule = small.experiment(**base, readings={"clip_rule": "max_norm"})
    task = Task("small", rule, "minibatch_sgd", rule.settings[0])
    assert task.grid()["clip"].isna().all()
    longest = max(float(torch.linalg.vector_norm(x, dim=1).max()) for x, _ in records(rule)(0).train)
    given = small.experiment(**base, clips=[2 * longest])
    found, wanted = (
        run_trials(Task("small", one, "minibatch_sgd", one.settings[0]), small.run(), records(one), range(1))
        for one in (rule, given)
    )
    assert found["train_loss"].tolist() == pytest.approx(wanted["train_loss"].tolist(), rel=1e-5)
