"""Many shuffled sums together: both ends against exact laws of small cases, and against Gaussian sums of like size."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from events import delivered_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sums import coordinate_law

from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.privacy.shuffling.p_vec import SumParameters
from silodp.privacy.shuffling.shuffled_plan import (
    SumRelease,
    _convex,
    calibrated_sums,
    composed_lower,
    composed_upper,
    delivered_shuffled_sums,
    shuffled_plan,
)

# Two silos of three records; two of a silo's three are drawn, so four participants a sum.
PARAMETERS = SumParameters(4, levels=2, noise_bits=20)
OTHERS = [np.array([[0.3, -0.2], [-0.8, 0.1]]), np.array([[0.1, 0.6], [0.5, 0.5], [-0.4, 0.2]])]
PAIRS = [((1.0, 0.0), (-1.0, 0.0)), ((0.7, 0.7), (-0.7, -0.7)), ((0.25, 0.3), (-0.75, -0.6)), ((0.0, 1.0), (0.6, -0.8))]


def law(record: tuple[float, ...], others: list[np.ndarray], parameters: SumParameters) -> np.ndarray:
    """Exact law of the ones in all coordinates: mean over what the silos draw, two records each, no record twice."""
    silos = [np.vstack([others[0], record]), others[1]]
    batches = [list(itertools.combinations(range(3), 2))] * 2
    total: np.ndarray | float = 0.0
    for first, second in itertools.product(*batches):
        rows = np.vstack([silos[0][list(first)], silos[1][list(second)]])
        joint = np.ones(())
        for column in rows.T:
            joint = np.multiply.outer(joint, coordinate_law(column + 1, parameters, 2.0))
        total = total + joint / 9
    return np.asarray(total)


def divergence(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    weight = math.exp(epsilon)
    return float(max(np.maximum(p - weight * q, 0).sum(), np.maximum(q - weight * p, 0).sum()))


@pytest.mark.parametrize("delta", [0.05, 1e-3, 1e-6])
def test_a_sum_over_drawn_records_keeps_its_promise_for_every_pair_tried(delta):
    """Exact laws of the sums in two coordinates; draws of both silos are part of them."""
    kinds = [SumRelease(PARAMETERS, 1, 2 / 3)]
    upper, lower = composed_upper(kinds, 2, delta), composed_lower(kinds, delta)
    found = [divergence(law(a, OTHERS, PARAMETERS), law(b, OTHERS, PARAMETERS), upper) for a, b in PAIRS]
    assert 0 < lower < upper < math.inf
    assert max(found) <= delta


@pytest.mark.parametrize("delta", [0.05, 1e-3, 1e-6])
def test_the_lower_end_is_reached_by_two_silos(delta):
    """All send −1 but one record, which is 1 in one silo: exactly, one sum and a sequence of two."""
    others = [np.full((2, 1), -1.0), np.full((3, 1), -1.0)]
    p, q = law((1.0,), others, PARAMETERS), law((-1.0,), others, PARAMETERS)
    for count in (1, 2):
        if count == 2:
            p, q = np.multiply.outer(p, p), np.multiply.outer(q, q)
        kinds = [SumRelease(PARAMETERS, count, 2 / 3)]
        lower = composed_lower(kinds, delta)
        assert divergence(p, q, lower) >= delta * (1 - 1e-9)
        assert divergence(p, q, lower + 0.01) < delta, "and it is the ε of these two"
        assert divergence(p, q, composed_upper(kinds, 1, delta)) <= delta


def test_a_record_drawn_twice_is_not_covered():
    """Why records are drawn without replacement: two participants change (errata, Algorithms 8 and 10). On the lattice
    their rounding changes nothing, so this is exact."""
    once, twice = (SumParameters(1000, levels, 5).lower_delta(1.0) for levels in (8, 16))
    assert once < 1e-6 < 3e-3 < twice


def test_adaptive_questions_do_not_help():
    """The second sum asks along the first coordinate or the second, as the first result says: exact, both orders."""
    kinds, delta = [SumRelease(PARAMETERS, 2, 2 / 3)], 1e-3
    upper = composed_upper(kinds, 1, delta)
    laws = {
        (record, way): law((way * record,), [np.full((2, 1), -way), np.full((3, 1), -way)], PARAMETERS)
        for record in (1.0, -1.0)
        for way in (1.0, -1.0)
    }
    middle = PARAMETERS.trials / 2
    joint = {}
    for record in (1.0, -1.0):
        first = laws[record, 1.0]
        joint[record] = np.stack([mass * laws[record, 1.0 if k < middle else -1.0] for k, mass in enumerate(first)])
    assert 0 < divergence(joint[1.0], joint[-1.0], upper) <= delta


@pytest.mark.parametrize(("share", "count", "looseness"), [(0.2, 20, 1.5), (0.5, 4, 1.6), (1.0, 10, 1.2)])
def test_many_fine_levels_and_bits_are_a_gaussian_sum(share, count, looseness):
    """d = 1: noise of the same multiplier, records drawn without replacement. The lower ends agree to 2 %."""
    parameters = SumParameters(1000, levels=16, noise_bits=16)
    multiplier = math.sqrt(parameters.trials / 4) / parameters.levels
    one = dp_event.GaussianDpEvent(multiplier)
    drawn = dp_event.SampledWithoutReplacementDpEvent(1000, round(1000 * share), one)
    gaussian = delivered_epsilon(dp_event.SelfComposedDpEvent(drawn, count), 1e-5)
    kinds = [SumRelease(parameters, count, share)]
    assert composed_lower(kinds, 1e-5, step=1e-4) == pytest.approx(gaussian.lower, rel=0.02)
    assert gaussian.lower * 0.98 < composed_upper(kinds, 1, 1e-5) < looseness * gaussian.upper


def test_calibrated_sums_keep_the_claim_with_little_to_spare():
    sizes = ((70, 20, 0.2), (350, 4, 1.0))
    numbers = calibrated_sums(sizes, 11, 1.0, 1e-4)
    kinds = [SumRelease(one, count, share) for one, (_, count, share) in zip(numbers, sizes, strict=True)]
    assert 0.85 < composed_upper(kinds, 11, 1e-4) <= 1.0
    assert [one.participants for one in numbers] == [70, 350]
    assert calibrated_sums((*sizes, (70, 0, 0.2)), 11, 1.0, 1e-4)[:2] == numbers, "a kind that is never sent is free"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 40))
def test_the_hull_lies_below_the_points_and_above_convex_functions_below_them(seed, size):
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.uniform(0.1, 1, size))
    convex = np.maximum.reduce([slope * x + rng.normal() for slope in rng.normal(size=4)])
    hull = _convex(x, convex + rng.exponential(size=size))
    assert (hull >= convex - 1e-9).all()
    assert (np.diff(np.diff(hull) / np.diff(x)) >= -1e-9).all()


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_the_lower_end_of_a_plan_is_as_fine_as_its_epsilon(epsilon):
    """Losses are rounded down on a lattice; a coarse one would leave little of a small ε."""
    release = Release("gradient", 5, 20, 1.0, sampler="subset")
    plan = shuffled_plan(PrivacyPlan("sdp_prox_sgd", Budget(100, 5, epsilon, 1e-4, 1.0), (release,)), 3, 2)
    (_, parameters), *_ = plan.shuffled_sum.kinds
    fine = composed_lower([SumRelease(parameters, 5, 0.2)], 1e-4, step=1e-4)
    assert delivered_shuffled_sums(plan).lower == pytest.approx(fine, rel=1e-3)
