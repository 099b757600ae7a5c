"""Algorithm 1 of the convex paper: its averages, its noise, and what a theorem prescribes."""

import math

import numpy as np
import pytest
import small
import torch
from small import MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.experiments.training import train_stack
from silodp.privacy.plan import Budget
from silodp.theory.convex.schedules import SCHEDULES

ROUNDS, SIZES = 6, (7, 5)
POINTS = [Point(None, 0.2, math.inf), Point(4.0, 0.05, 0.7)]


@pytest.mark.parametrize("mu", [0.0, 0.3, 4.0])
def test_the_average_is_weighted_by_gamma(mu):
    """Σγ_r w_r/Σγ_r over w_1 … w_R, γ_r = (1 − μη)^−(r+1), each point by its own η."""
    method, case = ALGORITHMS["minibatch_sgd"](ROUNDS, average=True, mu=mu), MODEL_CASES["logistic"]
    model, silos = case.model(), small.records(case, SIZES, torch.float64)
    plans, first = small.plans(method, POINTS, SIZES), small.start(model, torch.float64)
    output, _ = train_stack(method, small.federation(model, silos, plans, POINTS), model, first, silos, "own")
    iterates = small.iterates(method, small.federation(model, silos, plans, POINTS), first, len(POINTS))
    for g, point in enumerate(POINTS):
        gamma = (1 - mu * point.stepsize) ** -np.arange(1.0, ROUNDS + 1)
        wanted = sum(c * w[g] for c, w in zip(gamma / gamma.sum(), iterates, strict=True))
        torch.testing.assert_close(output[g], wanted, rtol=1e-10, atol=1e-14)


def test_noise_may_be_the_theorems_or_a_number():
    """256·25·ln(62.5e4)·ln(2e4)/200²: n = 100, R = 25, ε = 2, δ = 1e-4, L = 1; K = 40 ≥ 200/(4√(50·9.9)) = 2.25."""
    budget = Budget(100, 25, 2.0, 1e-4, 16.0)
    for name in ("minibatch_sgd", "accelerated_minibatch_sgd"):
        plan = ALGORITHMS[name](25, noise="theorem").plan(budget)
        assert plan["gradient"].noise ** 2 == pytest.approx(256 * 25 * 13.345507 * 9.9034876 / 200**2, rel=1e-6)
        assert ALGORITHMS[name](25, noise=0.7).plan(budget)["gradient"].noise == 0.7
    with pytest.raises(ValueError, match="epsilon"):
        ALGORITHMS["minibatch_sgd"](25, noise="theorem").plan(Budget(100, 25, 11.0, 1e-4, 16.0))


def test_a_schedule_gives_batch_and_noise_in_units_of_the_clip():
    schedule = SCHEDULES["theorem-2.1"](n=400, d=4, M=3, L=2.0, D=1.0, beta=1.0, epsilon=1.0, delta=1e-5)
    method = ALGORITHMS["minibatch_sgd"](schedule.rounds, schedule=schedule, clip=2.0, average=True)
    release = method.plan(Budget(400, schedule.rounds, 1.0, 1e-5, 1.0))["gradient"]
    assert (release.count, release.records) == (schedule.rounds, schedule.batch)
    assert (release.noise * 2.0) ** 2 == pytest.approx(schedule.sigma2)
