"""The quadratic certificate: its inequality over many neighbours, its form for Gaussians, and where it is void."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from silodp.privacy.accounting.certificate import _finite_losses, certified_epsilon
from silodp.privacy.accounting.losses import Composition, epsilon_at, pair_losses
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import at_most_once, gaussian_occurrences

GRID = np.linspace(-8.5, 12.5, 500)
CELL = GRID[1] - GRID[0]


def bump(mean: np.ndarray) -> np.ndarray:
    """Density of a unit Gaussian in the plane on GRID × GRID."""
    parts = [np.exp(-((GRID - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in mean]
    return np.outer(parts[0], parts[1])


def hinge(p: np.ndarray, q: np.ndarray, t: float) -> float:
    """∫ (p − tq)₊²/q over the plane."""
    return float((np.maximum(p - t * q, 0) ** 2 / np.maximum(q, 1e-300)).sum() * CELL**2)


@given(
    share=st.floats(0.01, 1),
    shift=st.floats(0.2, 1.9),
    radii=st.tuples(*[st.floats(0.5, 1)] * 3),
    angles=st.tuples(*[st.floats(0, 2 * math.pi)] * 2),
    t=st.one_of(st.floats(0, 2), st.floats(-1.2, 0.5)),
)
@settings(deadline=None, max_examples=25)
def test_no_neighbours_exceed_the_explicit_pairs_quadratic_hinge(share, shift, radii, angles, t):
    """Theorem 2 of docs/accounting.md, the other record anywhere in the ball and the two records at any angles."""
    t = max(1 + t * share, 0.0) if t < 0.5 else t  # near 1 − q is where it is not obvious
    turns = np.array([0.0, angles[0], angles[1]])
    u, a, b = (shift / 2 * r * np.array([math.cos(turn), math.sin(turn)]) for r, turn in zip(radii, turns, strict=True))
    other = (1 - share) * bump(u)
    p, q = other + share * bump(a), other + share * bump(b)
    plain = bump(np.zeros(2))
    explicit = hinge((1 - share) * plain + share * bump(np.array([shift, 0.0])), plain, t)
    assert hinge(p, q, t) <= explicit * (1 + 1e-5) + 1e-12


@pytest.mark.parametrize(("mu", "count", "delta"), [(0.1, 60, 1e-5), (0.05, 1000, 1e-8), (0.4, 10, 1e-6)])
def test_certificate_of_a_gaussian_is_above_its_epsilon_and_close(mu: float, count: int, delta: float) -> None:
    exact = gaussian_epsilon(delta, mu * math.sqrt(count))
    bound = certified_epsilon([(gaussian_occurrences(mu), count)], delta, mu / 50)
    assert exact < bound < 1.15 * exact


@given(
    share=st.floats(0.0005, 0.9),
    noise=st.floats(0.7, 20),
    count=st.integers(1, 2000),
    log_delta=st.floats(-28, -3),
)
@settings(deadline=None, max_examples=8)
def test_certificate_is_above_the_explicit_pair(share: float, noise: float, count: int, log_delta: float) -> None:
    occurrences, delta = at_most_once(share, noise), math.exp(log_delta)
    step = max(share / noise / 10, 2e-4)
    bound = certified_epsilon([(occurrences, count)], delta, step)
    part = pair_losses(occurrences, step, 40.0, upper=False)
    assert bound >= epsilon_at(Composition([(part, count)]), delta, upper=False)


def test_certificate_is_void_where_small_orders_decide() -> None:
    assert certified_epsilon([(gaussian_occurrences(6.0), 1)], 1e-3, 0.01) == math.inf


@pytest.mark.parametrize(("q", "s", "most"), [(1.0, 0.05, 1.12), (0.3, 0.05, 1.12), (0.5, 2.0, 1.6)])
def test_what_is_cut_off_becomes_the_least_outcome_that_is_worth_as_much(q, s, most):
    """T + √E[(r − T)² | r > T] by quadrature, from above and near it where the shift is small."""
    pmf = _finite_losses(at_most_once(q, 1 / s), 1e-6 if s < 1 else 1e-4, 1e-10)
    T, merged = (math.exp(pmf.losses[np.flatnonzero(pmf.masses)[place]]) for place in (-2, -1))
    at_cut = (math.log((T - 1 + q) / q) + s * s / 2) / s
    over = quad(
        lambda x: (1 - q + q * math.exp(s * x - s * s / 2) - T) ** 2 * norm.pdf(x), at_cut, at_cut + 40, epsabs=0
    )
    assert 1 <= (merged - T) / math.sqrt(over[0] / norm.sf(at_cut)) < most
