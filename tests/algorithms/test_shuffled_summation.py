"""SDP Prox-SGD over P_vec: the join of protocol, federation and plan."""

import dataclasses

import numpy as np
import pytest
import torch

import small
from silodp.algorithms import ALGORITHMS
from silodp.privacy.delivered import delivered
from silodp.privacy.plan import Budget
from silodp.privacy.shuffle_sums import SumParameters
from silodp.privacy.shuffled_plan import ShuffledSums, composed, shuffled_plan
from silodp.rng import Streams
from silodp.shuffled_summation import ShuffledSummation, shuffled_summation
from small import MODEL_CASES, Point

SIZES = (12, 12, 12)
POINTS = [Point(None, 0.1, 1.0), Point(None, 0.1, 5.0)]


def mean(summation=None, round=0):
    made = MODEL_CASES["linear"].model()
    silos = small.records(MODEL_CASES["linear"], SIZES, torch.float64)
    plans = small.plans(ALGORITHMS["sdp_prox_sgd"](4, silos=3, taking_part=3), POINTS, SIZES)
    federation = small.federation(made, silos, plans, POINTS, summation=summation)
    weights = small.start(made, torch.float64).expand(2, -1)
    return federation.mean_message(weights, round).numpy()


def test_fine_levels_without_noise_are_the_ideal_sum():
    """Rounding to g levels moves a coordinate's mean by less than 2L/g."""
    found = mean(ShuffledSummation([SumParameters(9, 1 << 20, 0)] * 2, Streams(1)))
    error = np.abs(found - mean()).max(1)
    assert (error < 2 * np.array([1.0, 5.0]) / (1 << 20) + 1e-12).all()
    assert error.max() > 0


def test_the_mean_of_a_round_is_unbiased():
    parameters = SumParameters(9, 8, 20)
    draws = np.stack([mean(ShuffledSummation([parameters] * 2, Streams(seed))) for seed in range(300)])
    spread = np.array([2.0, 10.0])[:, None] * np.sqrt(parameters.variance(1.0)) / 9
    assert (np.abs(draws.mean(0) - mean()) < 5 * spread / np.sqrt(300)).all()
    assert (draws.std(0) > 0.7 * spread).all()
    assert (draws.std(0) < 1.3 * spread).all()


def made(name="sdp_prox_sgd", epsilon=2.0, rounds=10):
    plan = ALGORITHMS[name](rounds, silos=5, taking_part=5).plan(Budget(70, rounds, epsilon, 1e-4, 9.0))
    return shuffled_plan(plan, 5, 3)


def test_the_delivered_epsilon_is_the_claim_and_near_it():
    plan = made()
    found = delivered(plan)
    assert 0.8 * 2.0 < found.lower < found.upper <= 2.0
    assert "P_vec" in found.method
    sums = plan.shuffled_sum
    assert sums.bits_per_silo(7) == 7 * 3 * (sums.parameters.levels + sums.parameters.noise_bits)


def test_fewer_noise_bits_than_planned_deliver_more_than_the_claim():
    plan = made()
    half = dataclasses.replace(plan.shuffled_sum.parameters, noise_bits=plan.shuffled_sum.parameters.noise_bits // 2)
    assert delivered(dataclasses.replace(plan, shuffled_sum=ShuffledSums(half, 3))).upper > 2.0


def test_sums_that_share_records_compose_upwards():
    sums = ShuffledSums(SumParameters(100, 8, 60), 3)
    values = [composed(sums, count, 1e-4) for count in (1, 2, 8)]
    assert sums.parameters.epsilon(3, 1e-4)[1] <= values[0] * 1.01 < values[1] < values[2] < 8 * values[0] * 1.5


def test_a_record_that_is_drawn_again_is_refused():
    with pytest.raises(ValueError, match="summation: 'shuffled': must be ideal for sdp_prox_svrg"):
        made("sdp_prox_svrg")


def test_a_protocol_for_another_dimension_is_refused():
    with pytest.raises(ValueError, match="dimension = 3: must be 4"):
        shuffled_summation([made()], 4, Streams(1))
