"""Parameters of the shuffled sums: the proven δ against enumeration, its price, and what splitting ε costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from small_sums import enumerated_delta

from silodp.privacy.shuffling.binomial_noise import (
    _rounded_totals,
    rounded_moment,
    shift_delta,
    shift_moments,
    vector_delta,
)
from silodp.privacy.shuffling.p_vec import SumParameters, _root, calibrate, fewest_bits, ideal_variance
from silodp.theory import THEOREMS


def by_fractions(n: int, p: Fraction, shift: int, weight: Fraction) -> Fraction:
    """Hockey-stick divergence of Bin(n, p) and its shift, the larger order, in exact arithmetic."""
    mass = [math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)]
    zeros = [Fraction(0)] * shift
    pairs = list(zip(mass + zeros, zeros + mass, strict=True))
    return max(sum(max(a - weight * b, 0) for a, b in pairs), sum(max(b - weight * a, 0) for a, b in pairs))


@pytest.mark.parametrize(("n", "p", "shift"), [(30, "1/2", 1), (30, "1/4", 3), (12, "1/10", 5), (80, "1/2", 8)])
@pytest.mark.parametrize("weight", ["1", "3/2", "8"])
def test_one_coordinate_is_exact(n, p, shift, weight):
    found = shift_delta(n, float(Fraction(p)), shift, math.log(Fraction(weight)))
    assert found == pytest.approx(float(by_fractions(n, Fraction(p), shift, Fraction(weight))), rel=1e-9)


@pytest.mark.parametrize("p", [0.5, 0.3])
def test_two_coordinates_are_bounded_by_the_proof_for_every_pair_tried(p):
    """All sums of three participants enumerated; the neighbours are the worst of random and axis-parallel ones."""
    parameters = SumParameters(3, levels=2, noise_bits=40, chance=p)
    rng = np.random.default_rng(5)
    others = rng.uniform(-0.7, 0.7, (2, 2))
    pairs = [((1.0, 0.0), (-1.0, 0.0)), ((0.7, 0.7), (-0.7, -0.7)), ((0.25, 0.3), (-0.75, -0.6))]
    angles = rng.uniform(0, 2 * math.pi, (6, 2))
    pairs += [((math.cos(a), math.sin(a)), (math.cos(b), math.sin(b))) for a, b in angles]
    worst = {}
    for epsilon in (0.5, 1.0, 2.0):
        exact = [
            enumerated_delta(np.vstack([others, a]), np.vstack([others, b]), parameters, epsilon) for a, b in pairs
        ]
        worst[epsilon] = max(exact)
        bound = parameters.delta(2, epsilon)
        assert 0 < worst[epsilon] <= bound
        assert worst[epsilon] <= parameters.lower_delta(epsilon) * 3, "no pair is far from the axis-parallel one"
    assert parameters.delta(2, 1.0) < worst[0.5], "within a factor of two in ε of what happens"


def test_one_coordinates_guarantee_is_reached():
    """P_1D: an input −L turned into L with all others on the lattice has exactly the δ that is claimed."""
    parameters = SumParameters(4, levels=3, noise_bits=12)
    first, second = np.array([[1.0], [-1.0], [1.0], [-1.0]]), np.array([[1.0], [-1.0], [1.0], [1.0]])
    for epsilon in (0.2, 1.0):
        assert enumerated_delta(first, second, parameters, epsilon) == pytest.approx(parameters.delta(1, epsilon))


def test_moments_are_sums_over_the_binomial():
    (moments,) = shift_moments(400, 0.3, 4, np.array([2.5]), 1e-9)
    x = np.arange(401)
    low, high = binom.ppf(5e-10, 400, 0.3), binom.isf(5e-10, 400, 0.3)
    good = x[(x >= low) & (x <= high)]
    for k in (1, 4):
        both = [
            np.sum(
                binom.pmf(good, 400, 0.3)
                * np.exp(2.5 * (binom.logpmf(good, 400, 0.3) - binom.logpmf(good + s, 400, 0.3)))
            )
            for s in (k, -k)
        ]
        assert moments[k] == pytest.approx(math.log(max(both)), rel=1e-8)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.floats(1e-3, 0.3), st.integers(0, 10_000))
def test_rounding_never_exceeds_its_bound(dimension, scale, seed):
    """Quadratic moments, random real shifts on the sphere: the mean over the rounding, coordinate by coordinate."""
    moments = scale * np.arange(9.0) ** 2
    v = np.random.default_rng(seed).standard_normal(dimension) ** 3
    v = np.minimum(np.abs(v / np.linalg.norm(v)) * 8, 8 - 1e-12)
    whole = np.floor(v).astype(int)
    exact = np.log((1 - v + whole) * np.exp(moments[whole]) + (v - whole) * np.exp(moments[whole + 1])).sum()
    assert exact <= rounded_moment(moments, dimension, 8.0) * (1 + 1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 3.0), st.floats(1e-3, 10.0))
def test_the_height_above_a_parabola_is_the_highest_of_many_points(seed, scale, a):
    """β(a), the largest log E exp φ(rounded v) − a v² over v in [0, g], φ growing; d and radius² enter linearly."""
    moments = np.append(0.0, np.random.default_rng(seed).exponential(scale, 6)).cumsum()
    k, f = np.arange(6)[:, None], np.linspace(0, 1, 4001)
    heights = np.log((1 - f) * np.exp(moments[:-1, None]) + f * np.exp(moments[1:, None])) - a * (k + f) ** 2
    beta = _rounded_totals(moments[None], np.array([[a]]), 1, 0.0)[0, 0]
    assert beta == pytest.approx(heights.max(), rel=1e-6, abs=1e-6)
    assert _rounded_totals(moments[None], np.array([[a]]), 3, 2.0)[0, 0] == pytest.approx(4 * a + 3 * beta)


def test_calibrated_sums_keep_their_promise_with_few_bits():
    found = fewest_bits(200, 16, 10, 1.0, 1e-5)
    assert found.delta(10, 1.0, 1e-8) <= 1e-5
    fewer = SumParameters(200, 16, found.noise_bits - max(1, found.noise_bits // 100))
    assert fewer.delta(10, 1.0, 1e-8) > 1e-5
    lower, upper = found.epsilon(10, 1e-5)
    assert 0.85 < lower <= upper <= 1.002
    assert 1 < calibrate(200, 10, 1.0, 1e-5).variance(2.0) / ideal_variance(1.0, 1e-5) <= 1.5


def test_variance_is_the_theorems():
    parameters = SumParameters(50, 20, 10, 0.25)
    wanted = THEOREMS["nonconvex-scalar-sum"](N=50, g=20, b=10, p=0.25, width=6.0).value
    assert parameters.variance(6.0) == pytest.approx(wanted)


def test_without_noise_nothing_is_private():
    bare = SumParameters(10, 4, 0)
    assert bare.delta(1, 5.0) == bare.delta(3, 5.0) == 1.0
    assert bare.epsilon(3, 1e-6) == (math.inf, math.inf)
    assert vector_delta(8, 0.5, 10, 2, 1.0, 1e-9) == 1.0, "fewer noise bits than the shift"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SumParameters(0, 1, 1), "participants = 0: must be at least 1"),
        (lambda: SumParameters(1, 0, 1), "levels = 0: must be at least 1"),
        (lambda: SumParameters(1, 1, -1), "noise_bits = -1: must be at least 0"),
        (lambda: SumParameters(1, 1, 1, 0.6), "chance = 0.6: must lie above 0"),
        (lambda: calibrate(10, 2, 1.0, 1.0), "delta = 1.0: must lie strictly"),
    ],
)
def test_bad_input_is_one_line(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("root", [1e-3, 0.3, 0.999, 1.0, 1.5, 7.0, 200.0])
def test_a_root_lies_between_its_ends_which_are_near_each_other(root):
    low, high = _root(lambda epsilon: 0.5 ** (1 + epsilon / root), 0.25)
    assert low <= root * (1 + 1e-12)
    assert root * (1 - 1e-12) <= high <= low * 1.01


def test_a_root_is_0_where_nothing_is_needed_and_infinite_where_nothing_helps():
    assert _root(lambda epsilon: 0.25 * math.exp(-epsilon), 0.25) == (0.0, 0.0)
    assert _root(lambda epsilon: 0.5, 0.25) == (math.inf, math.inf)
