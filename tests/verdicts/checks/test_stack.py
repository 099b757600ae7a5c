"""Trials as a stack: the same messages as training's, by value where nothing is random and by moments where it is."""

import numpy as np
import pytest
import torch

from silodp.algorithms import ALGORITHMS
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.prox import ball
from silodp.models.linear import Logistic
from silodp.privacy.plan import Release
from silodp.streams import Streams
from silodp.theory.problems.known import LinearOnBall, LogisticOnBall, Quadratic
from silodp.verdicts.checks.prescribed_runs import like_records, prescribe, run_schedule, silo_records
from silodp.verdicts.checks.stack import COHORT, TrialFederation, run


def federation(problem, records, release, *, seed=1, **options):
    return TrialFederation(problem.gradients, records, [release], streams=Streams(seed), **options)


def test_a_message_has_the_mean_and_variance_of_trainings_own():
    """Logistic loss, 3 silos of 20 records, K = 5, σ = 0.2: 1000 stacked trials against messages made one by one."""
    problem, w, trials = LogisticOnBall(4), torch.tensor([[0.3, -0.2, 0.1, 0.4]]).double(), 1000
    records = silo_records(problem, Streams(3), 1, 3, 20)
    release = Release("gradient", 1, 5, 0.2)
    stacked = federation(problem, records, release, trials=trials, N=3)
    ours = stacked.message(w.expand(trials, -1), COHORT, round=0).numpy()
    # A row y·a is the record (a, class) with class 1 at y·a itself.
    silos = [(torch.from_numpy(records[0, i]), torch.ones(20).double()) for i in range(3)]
    theirs = np.array([
        np.mean([
            messages.message(Query(w, 0), i, release, torch.ones(1).double(), torch.full((1,), 0.2).double()).numpy()[0]
            for i in range(3)
        ], axis=0)
        for messages in (Messages(Logistic(4), silos, Streams(9).child(trial)) for trial in range(trials))
    ])  # fmt: skip
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / trials)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4.5 * error).all()
    assert ours.var(axis=0) == pytest.approx(theirs.var(axis=0), rel=0.25)


def test_without_noise_and_with_all_records_a_message_is_the_exact_gradient():
    problem, w = Quadratic(3), torch.tensor([[0.1, 0.2, -0.3], [0.0, 0.0, 0.5]]).double()
    records = silo_records(problem, Streams(2), 2, 4, 10)
    found = federation(problem, records, Release("gradient", 1, 0, 0.0), trials=2, N=4).message(w, COHORT, 0)
    assert found.numpy() == pytest.approx(w.numpy() - records.mean(axis=(1, 2)), abs=1e-12)


def test_a_difference_is_that_of_both_gradients_on_the_same_records_and_its_noise_has_the_factor():
    """Gradients w − x: what is drawn of the records cancels."""
    problem, w = Quadratic(2), torch.tensor([[0.1, 0.2], [0.0, 0.5]]).double()
    previous, factor = torch.tensor([[0.4, 0.0], [0.2, -0.1]]).double(), torch.tensor([0.5, 3.0]).double()
    records = silo_records(problem, Streams(2), 2, 4, 10)
    plain, noisy, scaled = (
        federation(problem, records, Release("difference", 1, 5, noise), trials=2, N=4)
        .message(w, COHORT, 0, "difference", previous, more)
        .numpy()
        for noise, more in ((0.0, None), (0.5, None), (0.5, factor))
    )
    assert plain == pytest.approx((w - previous).numpy(), abs=1e-12)
    assert scaled - plain == pytest.approx(factor.numpy()[:, None] * (noisy - plain), rel=1e-12)


def test_records_that_are_all_alike_are_those_of_a_problem_without_chance():
    problem = LinearOnBall(4, D=2.0, bias=1.0)
    assert like_records(problem).ravel().tolist() == problem.draw(1, np.random.default_rng(1))[0].tolist()


def test_trials_are_independent_and_reproducible():
    problem = LinearOnBall(2, bias=0.3)
    records = silo_records(problem, Streams(2), 5, 2, 6)
    runs = [
        run(ALGORITHMS["minibatch_sgd"](4), federation(problem, records, Release("gradient", 4, 2, 0.5), trials=5, N=2,
            stepsize=0.1, prox=ball(1.0), seed=seed), np.zeros(2))
        for seed in (1, 1, 2)
    ]  # fmt: skip
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).all()
    assert len(np.unique(runs[0][:, 0])) == 5


def test_disjoint_batches_use_every_record_once_and_then_refuse():
    problem = Quadratic(2)
    records = silo_records(problem, Streams(2), 1, 1, 6)
    stack = federation(problem, records, Release("gradient", 3, 2, 0.0, sampler="disjoint"), trials=1, N=1)
    w = torch.zeros(1, 2).double()
    total = sum(stack.message(w, COHORT, r).numpy() for r in range(3))
    assert total / 3 == pytest.approx(-records.mean(axis=(0, 1, 2))[None], abs=1e-12)
    with pytest.raises(ValueError, match="has only 6"):
        stack.message(w, COHORT, 3)


def test_random_participation_draws_distinct_silos_and_weighs_them_alike():
    problem = Quadratic(2)
    stack = federation(problem, silo_records(problem, Streams(2), 1, 5, 2), Release("gradient", 1, 0, 0.0),
                       trials=400, N=5, cohort=(1, 3))  # fmt: skip
    drawn = stack.draw(0)
    assert drawn.weights.sum(axis=1) == pytest.approx(np.ones(400))
    sizes = (drawn.weights > 0).sum(axis=1)
    assert set(sizes) == {1, 3}
    assert abs((sizes == 1).mean() - 0.5) < 0.12
    assert all(len(set(row)) == 3 for row in drawn.silos)


def test_all_silos_weigh_alike_where_all_take_part():
    stack = federation(Quadratic(2), np.zeros((1, 1, 1, 2)), Release("gradient", 1, 0, 0.0), trials=3, N=5)
    assert stack.draw(0).weights == pytest.approx(np.full((1, 1), 1 / 5))


def test_records_of_another_number_of_trials_are_refused():
    with pytest.raises(ValueError, match=r"must have 3 \(or 1\) trials"):
        federation(Quadratic(2), np.zeros((2, 1, 1, 2)), Release("gradient", 1, 0, 0.0), trials=3, N=1)


@pytest.mark.parametrize("name", ["theorem-2.1", "theorem-D.1", "theorem-2.3"])
def test_a_schedule_runs_and_beats_its_start(name):
    problem, point = LinearOnBall(4, bias=1.0), {"n": 400, "d": 4, "M": 2**14, "epsilon": 1.0, "delta": 1e-6}
    more = {"N": 2**14} if name == "theorem-D.1" else {}
    schedule = prescribe(name, problem.constants, beta=1.0, **point, **more)
    records = np.full((1, 1, 1, 4), 0.5)
    outputs = run_schedule(schedule, problem, records, Streams(4), trials=6, N=2**14)
    assert outputs.shape == (6, 4)
    assert (np.linalg.norm(outputs, axis=1) <= 1 + 1e-9).all()
    assert max(problem.excess_population_risk(w) for w in outputs) < 0.3
