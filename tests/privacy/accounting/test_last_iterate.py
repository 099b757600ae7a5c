"""Theorem 3 of docs/accounting.md: local steps that cannot expand distances, of which only the last iterate is seen."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr

from silodp.privacy.accounting.accountant import end_of_round_epsilon
from silodp.privacy.accounting.last_iterate import last_iterate_epsilon, last_iterate_profile, occurrence_exponents
from silodp.privacy.message_counts import at_most_once, replace_one_profile

EPSILON = np.array([0, 0.25, 0.5, 1, 1.5, 2])
Z = np.linspace(-14, 14, 561)
TWO_STEPS = occurrence_exponents(2, 4, 1e-12)
BOUND = last_iterate_profile(TWO_STEPS, 1.0, EPSILON)


def test_one_step_is_the_profile_of_one_release():
    bound = last_iterate_profile(occurrence_exponents(1, 4, 1e-12), 1.0, EPSILON)
    assert bound == pytest.approx(replace_one_profile(at_most_once(0.25, 1.0), EPSILON), rel=1e-9)


def test_two_steps_have_the_exponents_and_the_bound_worked_out_by_hand():
    none, exponents, weights, _ = TWO_STEPS
    assert none == 0.5625
    assert dict(zip(exponents, weights, strict=True)) == {0.5: 0.1875, 1.0: 0.1875, 2.0: 0.0625}
    worked_out = [0.156141, 0.092802, 0.054592, 0.017853, 0.005358, 0.001462]
    assert worked_out == pytest.approx(BOUND, abs=5e-7)


def least_drift(left):
    """min_j j + Σ_{i>j} (2i − 1)/mᵢ over ascending steps left: the j latest draws at once, the others evenly."""
    spread = [(2 * i - 1) / m for i, m in enumerate(left, start=1)]
    return min(j + sum(spread[j:]) for j in range(len(left) + 1))


def test_the_exponent_is_the_least_over_how_many_draws_are_absorbed_at_once():
    """All draws at once or none gave 3 for steps left 1, 2 and 6, where absorbing two of them at once gives 2.83."""
    assert least_drift((1, 2, 6)) == pytest.approx(2 + 5 / 6)
    K, n = 6, 4
    subsets = [left for size in range(1, K + 1) for left in itertools.combinations(range(1, K + 1), size)]
    wanted = sum((1 / n) ** len(left) * (1 - 1 / n) ** (K - len(left)) * least_drift(left) for left in subsets)
    _, exponents, weights, _ = occurrence_exponents(K, n, 1e-12)
    # The grid of exponents rounds up.
    assert wanted <= exponents @ weights <= 1.03 * wanted


def test_the_drift_of_any_draws_is_as_long_as_the_exponent_says():
    rng = np.random.default_rng(0)
    for _ in range(300):
        K = int(rng.integers(1, 12))
        left = sorted(rng.choice(np.arange(1, K + 1), size=int(rng.integers(1, K + 1)), replace=False).tolist())
        lengths = []
        for j in range(len(left) + 1):
            parts = np.zeros(K)  # of the drift, by steps left, where all shifts point one way
            for place, m in enumerate(left):
                parts[slice(m - 1, m) if place < j else slice(0, m)] += 1 if place < j else 1 / m
            lengths.append(float(parts @ parts))
        assert min(lengths) == pytest.approx(least_drift(left))


def law(maps, n):
    """Density on `Z` of x₂ = f₂(f₁(0) + z₁) + z₂, where each step draws the record with probability 1/n."""
    ways = [(maps[1], 1 / n), (maps[0], 1 - 1 / n)]
    first = sum(share * np.exp(-((Z - step(np.zeros(1))) ** 2) / 2) for step, share in ways)
    second = sum(share * (np.exp(-((Z[:, None] - step(Z)) ** 2) / 2) @ first) for step, share in ways)
    return second / second.sum()


def divergence(p, q):
    return np.maximum(p - np.exp(EPSILON)[:, None] * q, 0).sum(1)


def random_map(rng):
    """A piecewise linear map whose slopes lie in [−1, 1]."""
    knots = np.linspace(-14, 14, 15)
    rise = np.concatenate([[0.0], np.cumsum(rng.choice([-1, -0.5, 0, 0.5, 1], 14) * np.diff(knots))])
    values = rise - rise[7] + rng.uniform(-1, 1)
    return lambda x: np.interp(x, knots, values)


def near(map_, other):
    """`map_` cut to a distance of 1/2 from `other`: it still expands no distance."""
    return lambda x: np.clip(map_(x), other(x) - 0.5, other(x) + 0.5)


@pytest.mark.parametrize("seed", range(15))
def test_random_instances_lie_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    others = random_map(rng)
    # The record and its replacement, each 1/2 from the other records' map: s = 1 from each other at most.
    p, q = (law((others, near(random_map(rng), others)), 4) for _ in range(2))
    assert (np.maximum(divergence(p, q), divergence(q, p)) <= BOUND + 1e-9).all()


def test_a_linear_loss_lies_close_below_the_bound():
    def stays(x):
        return x

    p, q = law((stays, lambda x: x + 1), 4), law((stays, stays), 4)
    exact = [0.134826, 0.071370, 0.036951, 0.009511, 0.002340, 0.000548]
    assert np.maximum(divergence(p, q), divergence(q, p)) == pytest.approx(exact, abs=2e-5)
    assert (exact <= BOUND).all()


def test_without_contraction_the_bound_is_false():
    # One draw, at the first of two steps, and a second step that pulls positive and negative iterates apart.
    s = 4.0
    after = np.sign(Z) * s / 2
    p, q = (np.exp(-((Z[:, None] - after) ** 2) / 2) @ np.exp(-((Z - at) ** 2) / 2) for at in (s / 2, -s / 2))
    total_variation = 0.5 * np.abs(p / p.sum() - q / q.sum()).sum()
    assert total_variation == pytest.approx(0.911, abs=2e-3)
    assert total_variation > 2 * ndtr(s * np.sqrt(0.5) / 2) - 1


def test_mnist_at_18_is_certified_at_7():
    mnist = {"steps": 442, "rounds": 35, "n": 1238, "noise_multiplier": 0.394099, "delta": 1238**-2.0}
    bracket, smaller = end_of_round_epsilon(**mnist), last_iterate_epsilon(**mnist)
    assert smaller == pytest.approx(7.07, rel=0.005)
    assert bracket.lower < smaller < bracket.upper == pytest.approx(18, rel=2e-3)


@pytest.mark.parametrize("z", [0.02, 0.3, 5.0, 100.0])
def test_the_bound_holds_at_any_noise(z):
    bracket, bound = end_of_round_epsilon(7, 5, 50, z, 1e-4), last_iterate_epsilon(7, 5, 50, z, 1e-4)
    assert bracket.lower <= bound < np.inf


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_steps_rounds_and_records_are_one_at_least(wrong):
    sizes = [1, 1, 1]
    assert 0 < last_iterate_epsilon(*sizes, 2.0, 1e-5) < np.inf
    sizes[wrong] = 0
    with pytest.raises(ValueError, match="must be at least 1"):
        last_iterate_epsilon(*sizes, 2.0, 1e-5)
