"""Bounds behind a shuffler, and the constant C that they amount to."""

import math

import pytest
from events import delivered_epsilon

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.plan import Budget
from silodp.privacy.shuffling.shuffled_gaussian import delivered_shuffled, shuffled_epsilon, shuffled_noise
from silodp.theory import THEOREMS

RUN = {"N": 1000, "M": 1000, "n": 50, "R": 35, "delta": 1e-6}


def test_more_noise_and_more_records_cost_less_privacy():
    base = shuffled_epsilon(4.0, **RUN)
    assert 0 < base < math.inf
    assert shuffled_epsilon(8.0, **RUN) < base
    assert shuffled_epsilon(4.0, **RUN | {"n": 100}) < base
    assert shuffled_epsilon(4.0, **RUN | {"R": 70}) > base


def test_one_silo_alone_is_its_own_transcript():
    """N = M = 1: one of n records a round, the local guarantee of K = 1, which is accounted for elsewhere."""
    local = ALGORITHMS["minibatch_sgd"](35, noise=3.0).plan(Budget(50, 35, 1.0, 1e-6, 1.0, 1))
    found = shuffled_epsilon(3.0, N=1, M=1, n=50, R=35, delta=1e-6)
    assert found == pytest.approx(delivered_epsilon(local, 1e-6).upper, rel=1e-3)


def test_the_chain_of_the_paper_wins_for_many_messages_of_many_silos():
    """One record a silo, half a million silos, one round: shuffling does what sampling cannot."""
    alone = gaussian_epsilon(1e-6, 2 / 8.0)
    assert shuffled_epsilon(8.0, N=500_000, M=500_000, n=1, R=1, delta=1e-6) < alone / 4


@pytest.mark.parametrize("epsilon", [0.5, pytest.param(2.0, marks=pytest.mark.slow)])
def test_calibrated_noise_just_keeps_its_promise_and_says_its_c(epsilon):
    sigma, C = shuffled_noise(epsilon, **RUN)
    assert epsilon * 0.99 <= shuffled_epsilon(sigma, **RUN) <= epsilon
    assert shuffled_epsilon(sigma * 0.999, **RUN) > epsilon
    theorem = THEOREMS["convex-4.1-noise"](n=50, N=1000, M=1000, R=35, L=1.0, epsilon=epsilon, delta=1e-6, C=C)
    assert theorem.value == pytest.approx(sigma**2)


def test_the_algorithms_plan_is_calibrated_and_needs_less_noise_than_without_a_shuffler():
    """600 of 2,000 silos: that nobody sees who took part counts, as it does not for a silo's own transcript."""
    method = ALGORITHMS["shuffled_minibatch_sgd"](35, silos=2000, cohort=600)
    plan = method.plan(Budget(50, 35, 1.0, 1e-6, 1.0))
    assert (plan["gradient"].records, plan.shuffler.N, plan.shuffler.M) == (1, 2000, 600)
    found = delivered_shuffled(plan)
    assert 0.99 <= found.upper <= 1.0
    assert delivered_epsilon(plan, 1e-6).lower > 1.0, "its own messages alone promise less"
    assert delivered_shuffled(method.plan(Budget(50, 35, None, 1e-6, 1.0))).upper == math.inf


def test_outside_the_theorem_there_is_noise_but_no_c():
    """Theorem 4.1 asks for hundreds of silos; the bounds do not."""
    sigma, C = shuffled_noise(1.0, **RUN | {"N": 10, "M": 5})
    assert math.isnan(C)
    assert 0.99 <= shuffled_epsilon(sigma, **RUN | {"N": 10, "M": 5}) <= 1.0


def test_a_plan_without_a_shuffler_is_refused():
    with pytest.raises(ValueError, match="has no shuffler"):
        delivered_shuffled(ALGORITHMS["minibatch_sgd"](3).plan(Budget(50, 3, 1.0, 1e-6, 1.0)))


@pytest.mark.parametrize("M", [0, 1001])
def test_silos_of_a_round_are_one_to_all(M):
    with pytest.raises(ValueError, match=f"M = {M}: must lie between 1 and N = 1000"):
        shuffled_epsilon(4.0, **RUN | {"M": M})
    assert all(math.isfinite(shuffled_epsilon(4.0, **RUN | {"M": inside})) for inside in (1, 1000))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_noise_is_for_a_positive_finite_epsilon(epsilon):
    with pytest.raises(ValueError, match="must be positive and finite"):
        shuffled_noise(epsilon, **RUN)
