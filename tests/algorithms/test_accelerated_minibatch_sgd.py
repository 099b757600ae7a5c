"""Algorithm 2 of the convex paper: its closed form, its stages, and the noise of its one-pass form."""

import math

import numpy as np
import pytest
import small
import textbook
import torch
from events import delivered_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from small import MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.accelerated_minibatch_sgd import line_10
from silodp.federation.prox import ball
from silodp.privacy.message_counts import counts_of, draws
from silodp.privacy.plan import Budget
from silodp.theory.convex.schedules import Stage

STAGES = (Stage(3, 2.0, 0.5), Stage(4, 5.0, 0.7))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10**6),
    st.floats(0.01, 1.0),
    st.floats(0.01, 10.0),
    st.floats(0.0, 5.0),
    st.sampled_from([None, 0.1, 1.0, 100.0]),
)
def test_the_closed_form_of_line_10_is_the_argmin(seed, alpha, eta, mu, radius):
    """The printed objective, minimised numerically over ℝ³ or the ball."""
    w, md, g = np.random.default_rng(seed).standard_normal((3, 3))

    def objective(v):
        step = alpha * (g @ v + mu / 2 * np.sum((md - v) ** 2))
        return step + ((1 - alpha) * mu / 2 + eta / 2) * np.sum((w - v) ** 2)

    def slope(v):
        return alpha * (g - mu * (md - v)) - ((1 - alpha) * mu + eta) * (w - v)

    point = line_10(*(torch.from_numpy(v)[None] for v in (w, md, g)), alpha, torch.tensor([[eta]]).double(), mu)
    if radius is not None:
        point = ball(radius)(point, torch.ones(1, 1))
    inside = [] if radius is None else [{"type": "ineq", "fun": lambda v: radius**2 - v @ v, "jac": lambda v: -2 * v}]
    found = minimize(
        objective, np.zeros(3), jac=slope, constraints=inside, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500}
    )
    # The solver may leave the ball by its tolerance.
    theirs = found.x if radius is None else found.x * min(1.0, radius / np.linalg.norm(found.x))
    ours, scale = point[0].numpy(), 1 + np.linalg.norm(theirs)
    assert np.linalg.norm(ours - theirs) <= 1e-4 * scale
    assert objective(ours) <= objective(theirs) + 1e-9 * scale
    assert radius is None or np.linalg.norm(ours) <= radius * (1 + 1e-12)


@pytest.mark.parametrize("radius", [None, 0.4])
def test_stages_make_the_textbooks_iterates(radius):
    case, points = MODEL_CASES["logistic"], [Point(None, 0.1, math.inf), Point(30.0, 0.1, 0.7)]
    model, silos = case.model(), small.records(case, (7, 5, 9), torch.float64)
    method = ALGORITHMS["accelerated_minibatch_sgd"](7, stages=STAGES)
    more = {} if radius is None else {"prox": ball(radius)}
    plain = {} if radius is None else {"prox": lambda w, eta: w * min(1.0, radius / float(w.norm()))}
    plans, first = small.plans(method, points, (7, 5, 9)), small.start(model, torch.float64) * 0.1
    found = small.iterates(method, small.federation(model, silos, plans, points, 2, **more), first, 2)
    for g, point in enumerate(points):
        problem = small.problem(case.loss, silos, plans[g], point, 2, **plain)
        stages = [(stage.rounds, stage.upsilon, stage.mu) for stage in STAGES]
        wanted = textbook.accelerated(problem, first, 7, stages=stages)
        for ours, theirs in zip(found, wanted, strict=True):
            assert textbook.relative_error(ours[g], theirs) <= 1e-10


def test_noise_of_theorem_2_3_where_it_is_proven_and_of_the_exact_mechanism_beyond():
    """8 ln(1.25/1e-4)/0.25 = 301.87 at ε = 1/2; the exact Gaussian mechanism delivers ε itself at ε = 3."""
    method = ALGORITHMS["one_pass_accelerated_sgd"](100)
    plan = method.plan(Budget(100, 100, 0.5, 1e-4, 1.0))
    assert plan["gradient"].noise ** 2 == pytest.approx(8 * math.log(12500) / 0.25, rel=1e-12)
    assert plan["gradient"].noise ** 2 == pytest.approx(301.87, rel=1e-4)
    assert counts_of([plan]) == {draws("all", 1, 1, plan["gradient"].noise / 2): 1}
    assert delivered_epsilon(plan, 1e-4).upper <= 0.5
    for epsilon in (1.5, 3.0, 18.0):
        found = delivered_epsilon(method.plan(Budget(100, 100, epsilon, 1e-4, 1.0)), 1e-4)
        assert epsilon * (1 - 1e-6) <= found.upper <= epsilon


def test_training_takes_as_many_rounds_as_the_smallest_silo_has_records():
    method = ALGORITHMS["one_pass_accelerated_sgd"](35)
    assert method.fitted(287, None).rounds == 287
    assert method.fitted(287, 10).rounds == 28
    assert ALGORITHMS["minibatch_sgd"](35).fitted(287, None).rounds == 35
