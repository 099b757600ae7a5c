"""`schedule: theorem-…` in an experiment: the theorem's numbers reach the run."""

import math

import numpy as np
import pytest
import small
import torch
from jobs import prepared_of, task, train

from silodp.algorithms import ALGORITHMS
from silodp.experiments.prescribed_points import prescribe
from silodp.theory.convex.schedules import SCHEDULES

CONSTANTS = {"d": 30, "beta": 8.0, "mu": 0.1}


def scheduled(algorithm, schedule, model="logistic"):
    """A task with a theorem's schedule, on two silos of which the smaller has 169 records."""
    options = {"schedule": schedule, "private": "private", "constants": CONSTANTS}
    keys = {"settings": [{"M": 2, "R": 100_000}], "epsilons": [0.5, 1.0], "clips": [2.0], "radius": 0.5, "delta": 1e-4}
    return task(algorithm, model={"name": model}, algorithms={algorithm: options}, **keys)


def prescribed(job, epsilon, setting=None):
    return prescribe(job.config, job.algorithm, setting or job.setting, N=2, n=169, epsilon=epsilon, delta=1e-4)


def test_every_schedule_belongs_to_one_algorithm():
    names = [name for algorithm in ALGORITHMS.values() for name in algorithm.schedules]
    assert len(set(names)) == len(names)


def test_constants_reach_the_theorem():
    wanted = SCHEDULES["theorem-2.1"](n=169, d=30, M=2, L=2.0, D=0.5, beta=8.0, epsilon=0.5, delta=1e-4)
    assert prescribed(scheduled("minibatch_sgd", "theorem-2.1"), 0.5) == wanted


def test_too_many_rounds_are_refused():
    job = scheduled("minibatch_sgd", "theorem-2.1-strong")
    allowed = r"theorem-2.1-strong asks for \d+ rounds at epsilon = 0.5, R = 2 allows fewer"
    with pytest.raises(ValueError, match=allowed):
        prescribed(job, 0.5, job.setting.model_copy(update={"R": 2}))


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
    job = scheduled(algorithm, schedule, model)
    for epsilon in (0.5, 1.0):
        wanted = prescribed(job, epsilon)
        release = job.plans(epsilon, 1, [169, 285])[0]["gradient"]
        assert (release.count, release.records) == (wanted.rounds, wanted.batch)
        assert release.noise * 2.0 == pytest.approx(math.sqrt(wanted.sigma2))
    found = train(job, range(1))
    assert found["epsilon"].tolist() == [0.5, 1.0]
    assert found["stepsize"].isna().all()
    assert np.isfinite(found["train_loss"]).all()
    assert not found["diverged"].any()


def test_a_clip_read_off_the_data_is_twice_the_longest_record():
    """Training with L = 2·max‖x‖ given as a number makes the same models."""
    keys = {"model": {"name": "logistic"}, "algorithms": {"minibatch_sgd": {}}}
    rule = task(**keys, readings={"clip_rule": "max_norm"})
    assert rule.grid()["clip"].isna().all()
    silos = prepared_of(rule, small.run())(0).train
    longest = max(float(torch.linalg.vector_norm(x, dim=1).max()) for x, _ in silos)
    found, wanted = (train(job, range(1)) for job in (rule, task(**keys, clips=[2 * longest])))
    assert found["train_loss"].tolist() == pytest.approx(wanted["train_loss"].tolist(), rel=1e-5)
