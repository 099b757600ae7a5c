"""The profile of one release bounds every configuration of gradients tried, and is reached where it should be."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import binom, norm

from silodp.privacy.accounting.mechanisms import gaussian_log_profile
from silodp.privacy.message_counts import Occurrences, at_most_once, replace_one_profile, where_sum_is, with_replacement

EPSILONS = np.array([0.0, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0])


def on_a_line(weights, first, second, epsilons=EPSILONS):
    """(E,) ∫ (P − e^ε Q)₊ of two mixtures of unit Gaussians with the given weights and means, by a fine sum."""
    x = np.linspace(min(first.min(), second.min()) - 8, max(first.max(), second.max()) + 8, 8001)
    p = weights @ np.exp(-((x - first[:, None]) ** 2) / 2)
    q = weights @ np.exp(-((x - second[:, None]) ** 2) / 2)
    return np.maximum(p - np.exp(epsilons)[:, None] * q, 0).sum(axis=1) * (x[1] - x[0]) / math.sqrt(2 * math.pi)


def gaussian_delta(epsilon: float, mu: float) -> float:
    return math.exp(gaussian_log_profile(epsilon, mu))


def bbg(occurrences: Occurrences, epsilon: float) -> float:
    """Balle, Barthe and Gaboardi's bound for sampling with replacement, Gaussian groups."""
    p, s = occurrences.weights, occurrences.shift
    inner = math.log1p(math.expm1(epsilon) / (1 - p[0]))
    return occurrences.tail + sum(p[j] * gaussian_delta(inner, j * s) for j in range(1, len(p)))


@given(
    n=st.integers(2, 40),
    drawn=st.integers(1, 30),
    shift=st.floats(0.02, 4),
    a=st.floats(-0.5, 0.5),
    b=st.floats(-0.5, 0.5),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["same", "random", "extreme"]),
)
@settings(deadline=None, max_examples=40)
def test_no_neighbours_on_a_line_exceed_the_profile(n, drawn, shift, a, b, seed, kind):
    occurrences = with_replacement(n, drawn, 1 / shift, 1e-14)
    rng = np.random.default_rng(seed)
    top = len(occurrences.weights) - 1
    others = {
        "same": np.full(top, rng.uniform(-0.5, 0.5)),
        "random": rng.uniform(-0.5, 0.5, top),
        "extreme": rng.choice([-0.5, 0.5], top),
    }[kind]
    if kind == "extreme":
        a, b = float(np.sign(a + 1e-9)) / 2, float(np.sign(b + 1e-9)) / 2
    total = np.concatenate([[0.0], np.cumsum(others)])
    j = np.arange(top + 1)
    first, second = shift * (j * a - total), shift * (j * b - total)
    bound = replace_one_profile(occurrences, EPSILONS)
    for one, other in ((first, second), (second, first)):
        assert np.all(on_a_line(occurrences.weights, one, other) <= bound * (1 + 1e-5) + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_triangle_in_the_plane_exceeds_the_profile(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shift, weights = 1.7, np.array([0.6, 0.3, 0.1])
    angles = rng.uniform(0, 2 * math.pi, 4)
    a, b, u1, u2 = shift / 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    x = np.linspace(-11, 11, 400)
    cell = (x[1] - x[0]) ** 2

    def density(record: np.ndarray) -> np.ndarray:
        means = (np.zeros(2), record - u1, 2 * record - u1 - u2)
        parts = [w * np.outer(norm.pdf(x, m[0]), norm.pdf(x, m[1])) for w, m in zip(weights, means, strict=True)]
        return np.sum(parts, axis=0)

    bound = replace_one_profile(Occurrences(weights, 0.0, shift), EPSILONS)
    p, q = density(a), density(b)
    for epsilon, limit in zip(EPSILONS, bound, strict=True):
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell <= limit * (1 + 3e-4) + 1e-8


@given(n=st.integers(2, 2000), share=st.floats(0.001, 1.5), shift=st.floats(0.01, 6))
@settings(deadline=None, max_examples=25)
def test_profile_is_never_above_the_uniform_allocation_and_never_below_the_explicit_pair(n, share, shift):
    occurrences = with_replacement(n, max(int(share * n), 1), 1 / shift, 1e-13)
    bound = replace_one_profile(occurrences, EPSILONS)
    assert np.all(np.diff(bound) <= 1e-15)
    j = np.arange(len(occurrences.weights))
    assert np.all(bound <= [bbg(occurrences, float(epsilon)) * (1 + 1e-9) + 1e-15 for epsilon in EPSILONS])
    assert np.all(bound >= on_a_line(occurrences.weights, j * shift, 0.0 * j) * (1 - 1e-5) - 1e-9)


def test_profile_is_the_explicit_pair_beyond_small_losses_and_total_variation_at_zero() -> None:
    occurrences = with_replacement(100, 50, 1.0, 1e-15)
    j = np.arange(len(occurrences.weights))
    assert replace_one_profile(occurrences, np.array([3.0]))[0] == pytest.approx(
        on_a_line(occurrences.weights, j * 1.0, 0.0 * j, np.array([3.0]))[0], rel=1e-4
    )
    variations = sum(w * (2 * norm.cdf(k / 2) - 1) for k, w in enumerate(occurrences.weights))
    assert replace_one_profile(occurrences, np.array([0.0]))[0] == pytest.approx(variations)
    # The record at one end, its replacement at the other and all others half-way reach it.
    assert on_a_line(occurrences.weights, j / 2, -j / 2)[0] == pytest.approx(variations, rel=1e-5)


def test_at_most_once_is_the_known_formula_for_sampling_without_replacement() -> None:
    share, z = 0.3, 0.8
    for epsilon in (0.0, 0.7, 3.0):
        inner = math.log1p(math.expm1(epsilon) / share)
        assert replace_one_profile(at_most_once(share, z), np.array([epsilon]))[0] == pytest.approx(
            share * gaussian_delta(inner, 1 / z), rel=1e-10
        )


def test_occurrences_are_binomial_and_cut_where_told() -> None:
    occurrences = with_replacement(1238, 606, 2.0, 1e-12)
    assert occurrences.weights == pytest.approx(binom.pmf(np.arange(len(occurrences.weights)), 606, 1 / 1238))
    assert 0 < occurrences.tail <= 1e-12
    assert occurrences.weights.sum() + occurrences.tail == pytest.approx(1, abs=1e-14)
    assert binom.sf(len(occurrences.weights) - 2, 606, 1 / 1238) > 1e-12


def test_profile_does_not_overflow_at_large_epsilon() -> None:
    occurrences = with_replacement(50, 60, 0.02, 1e-14)
    bound = replace_one_profile(occurrences, np.array([1e3, 1e4, 1e5, 1e6, 1e7]))
    assert np.all(np.isfinite(bound))
    assert bound[-1] == pytest.approx(occurrences.tail)


WEIGHTS = st.lists(st.floats(1e-280, 1.0), min_size=1, max_size=30)


@given(WEIGHTS, st.floats(1e-3, 5.0), st.lists(st.floats(-600.0, 600.0), min_size=1, max_size=5))
def test_the_sum_takes_the_value_there(weights, shift, goals):
    log_weights, jumps, goals = np.log(weights), shift * np.arange(1, len(weights) + 1), np.array(goals)
    t = where_sum_is(log_weights, jumps, goals)
    found = logsumexp(log_weights - jumps**2 / 2 + jumps * t[:, None], axis=1)
    # The sum moves by at most its largest jump as t moves; t is found to some 1e-12 of itself.
    assert found == pytest.approx(goals, rel=1e-9, abs=1e-9 * jumps.max() * (1 + np.abs(t).max()))


def test_weights_of_zero_count_nothing():
    with np.errstate(divide="ignore"):
        log_weights = np.log(np.array([0.0, 0.5, 0.0, 0.25]))
    jumps, goal = np.array([1.0, 2.0, 3.0, 4.0]), np.array([-3.0, 0.0, 7.0])
    kept = [1, 3]
    assert where_sum_is(log_weights, jumps, goal) == pytest.approx(
        where_sum_is(log_weights[kept], jumps[kept], goal), rel=1e-12
    )
