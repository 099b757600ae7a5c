"""Algorithm 2 of the convex paper: its closed form, its stages, and its rate against that of Algorithm 1."""

import math

import numpy as np
import pytest
import small
import textbook
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from small import MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.accelerated_minibatch_sgd import line_10
from silodp.federation.prox import ball
from silodp.theory.convex.schedules import Stage, multi_stage

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
    plans, first = small.plans(method, points, (7, 5, 9)), small.start(model, torch.float64) * 0.1
    found = small.iterates(method, small.federation(model, silos, plans, points, 2, **more), first, 2)

    def project(w, eta):
        return w * min(1.0, radius / float(w.norm()))

    plain = {} if radius is None else {"prox": project}
    for g, point in enumerate(points):
        problem = small.problem(case.loss, silos, plans[g], point, 2, **plain)
        stages = [(stage.rounds, stage.upsilon, stage.mu) for stage in STAGES]
        wanted = textbook.accelerated(problem, first, 7, stages=stages)
        for ours, theirs in zip(found, wanted, strict=True):
            assert textbook.relative_error(ours[g], theirs) <= 1e-10


def test_the_first_step_is_plain_sgd_s_with_the_same_step_size():
    case, points = MODEL_CASES["linear"], [Point(None, 0.2, 1.0), Point(3.0, 0.05, 2.0)]
    model, silos = case.model(), small.records(case, (7, 5), torch.float64)
    ends = []
    for name in ("minibatch_sgd", "accelerated_minibatch_sgd"):
        method = ALGORITHMS[name](3)
        federation = small.federation(model, silos, small.plans(method, points, (7, 5)), points)
        ends.append(small.iterates(method, federation, small.start(model, torch.float64), 2)[0])
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mu": -1.0}, "must not be negative"),
        ({"regularisation": -0.1}, "must not be negative"),
        ({"stages": STAGES}, "rounds = 9: the stages have 7, must be the same"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ALGORITHMS["accelerated_minibatch_sgd"](9, **options)


def quadratic(kappa, features=20):
    """One silo whose mean loss is ½Σh_j(w_j − 1)², h geometric from 1/κ to 1, and messages with every record."""
    h = np.geomspace(1 / kappa, 1.0, features)
    x = torch.from_numpy(np.diag(np.sqrt(features * h)))
    silo = (x, x @ torch.ones(features, dtype=torch.float64))
    return MODEL_CASES["linear"].model(features), silo, torch.from_numpy(h)


def rounds_to(target, kappa, accelerated):
    """Rounds until the loss is `target` of the first, without noise; β = 1, μ = 1/κ."""
    model, silo, h = quadratic(kappa)
    budget, point = 20_000, [Point(None, 1.0, math.inf)]
    gap = float(h.sum() / 2)
    if accelerated:
        stages = multi_stage(budget, 1.0, 1 / kappa, gap, 0.0)
        method = ALGORITHMS["accelerated_minibatch_sgd"](budget, stages=stages)
    else:
        method = ALGORITHMS["minibatch_sgd"](budget)
    federation = small.federation(model, [silo], small.plans(method, point, (len(h),)), point)
    federation.messages._draw = lambda *_: silo
    federation.records = [{"gradient": len(h)}]
    state = method.start(torch.zeros((1, len(h)), dtype=torch.float64))
    for r in range(budget):
        state = method.round(r, state, federation)
        if float((h * (state.w[0] - 1) ** 2).sum() / 2) <= target * gap:
            return r + 1
    raise AssertionError(f"κ = {kappa}: not within {budget} rounds")


def test_rounds_to_a_target_grow_with_the_root_of_kappa_and_plain_ones_with_kappa():
    """Slopes of ln(rounds) against ln κ over two decades, target 1e-8: 1/2 and 1, each within 0.1."""
    kappas = np.geomspace(30, 1000, 4)
    plain = [rounds_to(1e-8, kappa, False) for kappa in kappas]
    fast = [rounds_to(1e-8, kappa, True) for kappa in kappas]
    assert np.polyfit(np.log(kappas), np.log(fast), 1)[0] == pytest.approx(0.5, abs=0.1)
    assert np.polyfit(np.log(kappas), np.log(plain), 1)[0] == pytest.approx(1.0, abs=0.1)
    assert fast[-1] < plain[-1] / 5


def test_without_strong_convexity_the_loss_falls_with_the_square_of_the_rounds():
    """At most 2υ‖w_0 − w*‖²/(R(R+1)) with υ = β, whatever the curvature: one stage, μ = 0, no noise."""
    model, silo, h = quadratic(1e6)
    rounds, point = 400, [Point(None, 0.25, math.inf)]
    method = ALGORITHMS["accelerated_minibatch_sgd"](rounds)
    federation = small.federation(model, [silo], small.plans(method, point, (len(h),)), point)
    federation.messages._draw = lambda *_: silo
    federation.records = [{"gradient": len(h)}]
    found = small.iterates(method, federation, torch.zeros(len(h), dtype=torch.float64), 1)
    for r in (1, 10, 100, 400):
        loss = float((h * (found[r - 1][0] - 1) ** 2).sum() / 2)
        # υ = 1/(2·0.25) = 2β: the bound with υ in place of β.
        assert loss <= 2 * 2.0 * len(h) / (r * (r + 1))
