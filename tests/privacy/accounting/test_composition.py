"""Composed losses against closed forms and exact laws of small distributions."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from silodp.privacy.accounting.losses import Composition, LossPmf, chernoff_order, epsilon_at, pair_losses
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import gaussian_occurrences


@pytest.mark.parametrize(
    ("mu", "count", "delta"),
    [(0.1, 100, 1e-5), (0.02, 2500, 1e-12), (0.5, 25, 1e-40), (3.0, 60, 1e-9), (0.003, 60000, 1e-6), (1.0, 1, 1e-3)],
)
def test_composed_gaussians_meet_their_closed_form_from_both_sides(mu: float, count: int, delta: float) -> None:
    exact = gaussian_epsilon(delta, mu * math.sqrt(count))
    step = exact / 1e4 if count == 1 else min(math.sqrt(exact / count) / 100, mu / 8)
    reach = mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta * 1e-8 / count))
    for upper in (False, True):
        part = pair_losses(gaussian_occurrences(mu), step, reach, upper=upper)
        epsilon = epsilon_at(Composition([(part, count)]), delta, upper=upper)
        assert epsilon == pytest.approx(exact, rel=5e-4)
        assert epsilon >= exact - 1e-12 if upper else epsilon <= exact + 1e-12


@given(
    st.lists(st.floats(0.001, 1), min_size=2, max_size=12),
    st.integers(-6, 3),
    st.integers(1, 7),
    st.floats(1e-9, 0.4),
)
@example([1.0, 1.0], 2, 1, 0.375)
@settings(deadline=None, max_examples=80)
def test_composition_of_small_distributions_is_exact(raw: list[float], first: int, count: int, delta: float) -> None:
    masses = np.array(raw) / sum(raw)
    part = LossPmf(0.25, first, masses)
    law = np.array([1.0])
    for _ in range(count):
        law = np.convolve(law, masses)
    losses = (count * first + np.arange(len(law))) * 0.25

    def divergence(epsilon: float) -> float:
        return float(law @ np.maximum(-np.expm1(np.minimum(epsilon - losses, 0)), 0))

    upper = epsilon_at(Composition([(part, count)]), delta, upper=True)
    lower = epsilon_at(Composition([(part, count)]), delta, upper=False)
    assert lower <= upper + 1e-12
    assert divergence(upper + 1e-12) <= delta * (1 + 1e-12)
    assert upper <= max(chernoff_order(Composition([(part, count)]).log_moment, delta)[1], 0) + 1e-12
    # Below every loss δ is so large that the upper end may be Chernoff's.
    if upper > max(losses[0], 0) and math.log(count) + math.log(masses.max()) < 0:
        assert divergence(max(upper - 1e-3, 0)) >= delta * (1 - 1e-6)
    if lower > 0:
        assert divergence(max(lower - 1e-12, 0)) >= delta * (1 - 1e-12)


def test_infinite_loss_is_infinite_only_from_delta_on() -> None:
    part = LossPmf(0.1, -1, np.array([0.4, 0.2, 0.399]), 0.001)
    assert epsilon_at(Composition([(part, 1)]), 0.0009, upper=True) == math.inf
    assert epsilon_at(Composition([(part, 1)]), 0.002, upper=True) < 0.11
    assert epsilon_at(Composition([(part, 3)]), 0.002, upper=True) == math.inf
