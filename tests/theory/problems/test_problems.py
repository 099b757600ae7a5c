"""Problems with known constants: gradients, Lipschitz and smoothness constants, certified optima."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.theory.problems.known import (
    HingeOnBall,
    LinearOnBall,
    LogisticOnBall,
    Quadratic,
    SmoothNonconvex,
    SparseLeastSquares,
    project,
)

MADE = [
    LinearOnBall(4, L=2.0, D=3.0, bias=0.3),
    Quadratic(5, mu=0.1, beta=2.0, D=1.5, bias=-0.4),
    LogisticOnBall(4, D=2.0),
    LogisticOnBall(4, D=30.0, noise=0.3),
    HingeOnBall(4, D=1.0),
    HingeOnBall(4, D=30.0, noise=0.3),
    SparseLeastSquares(4),
    SmoothNonconvex(3, scale=2.0),
]


def ids(problem):
    return f"{type(problem).__name__}-{problem.d}"


def smooth_part(problem, w, records):
    penalty = problem.penalty * np.abs(w).sum() if isinstance(problem, SparseLeastSquares) else 0.0
    return problem.losses(w, records) - penalty


def points(problem, count, generator):
    radius = min(problem.constants.D, 5.0)
    w = generator.standard_normal((count, problem.d))
    return radius * generator.random((count, 1)) * w / np.linalg.norm(w, axis=1, keepdims=True)


@pytest.mark.parametrize("problem", MADE, ids=ids)
def test_gradient_is_the_slope_of_the_loss(problem):
    generator = np.random.default_rng(0)
    records = problem.draw(20, generator)
    assert records.dtype == np.float64
    for w in points(problem, 5, generator):
        gradients = problem.gradients(w, records)
        assert gradients.shape == (20, problem.d)
        for j in range(problem.d):
            step = np.zeros(problem.d)
            step[j] = 1e-6
            up, down = smooth_part(problem, w + step, records), smooth_part(problem, w - step, records)
            # The hinge has a kink: leave out records whose margin is within the step.
            smooth = np.ones(20, bool) if not isinstance(problem, HingeOnBall) else abs(1 - records @ w) > 1e-5
            assert gradients[smooth, j] == pytest.approx(((up - down) / 2e-6)[smooth], abs=1e-7)


@pytest.mark.parametrize("problem", MADE, ids=ids)
def test_constants_hold_and_are_not_loose(problem):
    generator = np.random.default_rng(1)
    records, known = problem.draw(200, generator), problem.constants
    far = points(problem, 300, generator)
    far[:100] *= min(known.D, 5.0) / np.linalg.norm(far[:100], axis=1, keepdims=True)
    norms = np.array([np.linalg.norm(problem.gradients(w, records), axis=1).max() for w in far])
    assert norms.max() <= known.L * (1 + 1e-12)
    assert norms.max() >= 0.3 * known.L
    if known.beta is not None:
        v, w = far[:150], far[150:]
        change = [
            np.linalg.norm(problem.gradients(a, records) - problem.gradients(b, records), axis=1).max()
            for a, b in zip(v, w, strict=True)
        ]
        assert np.all(change <= known.beta * np.linalg.norm(v - w, axis=1) * (1 + 1e-9) + 1e-12)
    if known.mu:
        a, b = far[0], far[1]
        gap = smooth_part(problem, b, records) - smooth_part(problem, a, records)
        linear = problem.gradients(a, records) @ (b - a)
        assert np.all(gap >= linear + known.mu / 2 * (b - a) @ (b - a) - 1e-12)


def test_the_lipschitz_constant_of_a_quadratic_with_one_curvature_is_reached():
    problem = Quadratic(3, mu=2.0, beta=2.0, D=1.5)
    x = problem.draw(1, np.random.default_rng(0))
    assert np.linalg.norm(problem.gradients(-x[0], x)) == pytest.approx(problem.constants.L)


@pytest.mark.parametrize("problem", [problem for problem in MADE if hasattr(problem, "optimum")], ids=ids)
def test_optimum_is_feasible_and_certified(problem):
    generator = np.random.default_rng(2)
    records = problem.draw(60, generator)
    best = problem.optimum(records)
    assert np.linalg.norm(best.w) <= problem.constants.D * (1 + 1e-12)
    assert best.value == pytest.approx(problem.losses(best.w, records).mean())
    gaps = {LogisticOnBall: 1e-12, SparseLeastSquares: 1e-13, HingeOnBall: 1e-4}
    assert 0 <= best.gap <= gaps.get(type(problem), 1e-8)
    others = np.concatenate(
        [points(problem, 300, generator), best.w + 0.01 * generator.standard_normal((300, problem.d))]
    )
    lowest = min(problem.losses(project(w, problem.constants.D), records).mean() for w in others)
    assert lowest >= best.value - best.gap - 1e-12


def test_population_risk_is_the_mean_over_records():
    generator = np.random.default_rng(4)
    w = np.array([0.2, -0.3, 0.1])
    for problem in (LinearOnBall(3, bias=0.4), Quadratic(3, mu=0.5, bias=0.4)):
        records = problem.draw(200_000, generator)
        mean = records.mean(axis=0)
        least = mean / np.linalg.norm(mean) if isinstance(problem, LinearOnBall) else mean
        measured = problem.losses(w, records).mean() - problem.losses(least, records).mean()
        assert problem.excess_population_risk(w) == pytest.approx(measured, abs=0.01)


@settings(max_examples=50, deadline=None)
@given(margin=st.floats(-5, 5), beta=st.floats(0.1, 50))
def test_hinge_envelope_gradient_is_that_of_the_minimisation(margin, beta):
    """d = 1, record 1: prox by a fine grid; β(w − v) is the envelope's gradient, of norm at most 1 = L."""
    grid = np.linspace(margin - 12, margin + 12, 240_001)
    v = grid[np.argmin(np.maximum(0, 1 - grid) + beta / 2 * (grid - margin) ** 2)]
    got = HingeOnBall(1, D=10.0).envelope_gradients(np.array([margin]), np.array([[1.0]]), beta)[0, 0]
    assert got == pytest.approx(beta * (margin - v), abs=beta * 1.1e-4)
    assert abs(got) <= 1.0


def test_sparse_least_squares_soft_thresholds():
    # One record a = 1, b = 1, penalty 0.25: w* = 0.75, F* = ½·0.0625 + 0.1875.
    best = SparseLeastSquares(1, penalty=0.25).optimum(np.array([[1.0, 1.0]]))
    assert best.w == pytest.approx([0.75])
    assert best.value == pytest.approx(0.21875)
    mu, beta = SparseLeastSquares(1).curvature(np.array([[1.0, 1.0]]))
    assert (mu, beta) == (1.0, 1.0)
    # A penalty above max |aᵀb|/n leaves w* = 0.
    assert SparseLeastSquares(1, penalty=1.5).optimum(np.array([[1.0, 1.0]])).w == pytest.approx([0.0])
