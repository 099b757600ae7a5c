"""Calibrated noise is private and hardly more than needed."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting.accountant import end_of_round_epsilon, upper_of
from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.privacy.calibration import calibrated_plan, favourable_plan, noise_multiplier
from silodp.privacy.message_counts import Counts, draws
from silodp.privacy.plan import Budget
from silodp.privacy.true_epsilon import upper_end


def one_gaussian(noise: float) -> Counts:
    return {draws("all", 1, 1, noise): 1}


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (18.0, 1e-9)])
def test_gaussian_noise_is_the_analytic_one(epsilon: float, delta: float) -> None:
    exact = 1 / gaussian_mu(epsilon, delta)
    found = noise_multiplier(one_gaussian, epsilon, delta, tolerance=1e-6)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-6)


@given(st.floats(0.3, 30), st.integers(1, 200), st.integers(1, 30))
@settings(deadline=None, max_examples=8)
def test_noise_is_on_the_private_side_and_tight(epsilon: float, batch: int, rounds: int) -> None:
    def counts(noise: float) -> Counts:
        return {draws("with", 200, batch, noise): rounds}

    found = noise_multiplier(counts, epsilon, 1e-5, tolerance=1e-3)
    assert upper_of(counts(found), 1e-5) <= epsilon
    assert upper_of(counts(found * math.exp(-1e-3)), 1e-5) > epsilon, "the promise: at most e^tolerance times the least"


def test_a_scale_can_be_calibrated_for_two_kinds_of_messages() -> None:
    method = ALGORITHMS["fedprox_spider"].with_options({"rounds": 10, "phase_length": 2})
    plan = calibrated_plan(method.plan(Budget(300, 10, 2.0, 1e-5, 2.0)))
    assert plan["gradient"].records > plan["difference"].records > 1
    assert 1.99 < upper_end([plan]) <= 2.0


def test_what_cannot_be_reached_is_said() -> None:
    fixed = one_gaussian(1.0)
    with pytest.raises(ValueError, match="not reached at any noise multiplier"):
        noise_multiplier(lambda noise: fixed | one_gaussian(noise), 0.1, 1e-5)
    with pytest.raises(ValueError, match="reached with any noise multiplier"):
        noise_multiplier(lambda noise: fixed, 100.0, 1e-5)
    with pytest.raises(ValueError, match="epsilon = 0: must be positive"):
        noise_multiplier(one_gaussian, 0, 1e-5)


def test_favourable_noise_is_where_the_lower_end_is_the_claim():
    plan = ALGORITHMS["local_sgd"](5).plan(Budget(40, 5, 6.0, 1e-3, 6.0))
    favourable, calibrated = favourable_plan(plan), calibrated_plan(plan)
    (step,) = favourable.releases
    bracket = end_of_round_epsilon(step.steps, 5, 40, step.noise_multiplier, 1e-3)
    assert bracket.lower == pytest.approx(6.0, rel=1e-3)
    assert bracket.lower <= 6.0 < bracket.upper
    assert step.noise < calibrated.releases[0].noise


def test_favourable_noise_of_one_message_a_round_is_calibrated():
    plan = ALGORITHMS["minibatch_sgd"](5).plan(Budget(40, 5, 6.0, 1e-3, 6.0))
    assert favourable_plan(plan) == calibrated_plan(plan)
