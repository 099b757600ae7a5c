"""One pass: every record in one message, and what that means for privacy."""

import math

import dp_accounting
import pytest
import small
import torch
from small import MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.plan import Budget

SIZES = (6, 6, 6)


def test_noise_of_theorem_2_3_where_it_is_proven_and_of_the_exact_mechanism_beyond():
    """8 ln(1.25/1e-4)/0.25 = 301.87 at ε = 1/2; the exact Gaussian mechanism delivers ε itself at ε = 3."""
    method = ALGORITHMS["one_pass_accelerated_sgd"](100)
    plan = method.plan(Budget(100, 100, 0.5, 1e-4, 1.0))
    assert plan["gradient"].noise ** 2 == pytest.approx(8 * math.log(12500) / 0.25, rel=1e-12)
    assert plan["gradient"].noise ** 2 == pytest.approx(301.87, rel=1e-4)
    assert plan.event == dp_accounting.GaussianDpEvent(plan["gradient"].noise / 2)
    assert delivered_epsilon(plan, 1e-4).upper <= 0.5
    for epsilon in (1.5, 3.0, 18.0):
        found = delivered_epsilon(method.plan(Budget(100, 100, epsilon, 1e-4, 1.0)), 1e-4)
        assert epsilon * (1 - 1e-6) <= found.upper <= epsilon


def test_the_pass_is_over_with_the_smallest_silo():
    method, sizes, point = ALGORITHMS["one_pass_accelerated_sgd"](6), (6, 3), [Point(1.0, 0.1, 1.0)]
    case = MODEL_CASES["linear"]
    silos, plans = small.records(case, sizes, torch.float64), small.plans(method, point, sizes)
    assert [plan["gradient"].count for plan in plans[0]] == [6, 3]
    federation = small.federation(case.model(), silos, plans, point)
    found = small.iterates(method, federation, small.start(case.model(), torch.float64), 1)
    assert all(torch.equal(w, found[2]) for w in found[3:])
    assert not torch.equal(found[1], found[2])


def test_training_takes_as_many_rounds_as_the_smallest_silo_has_records():
    method = ALGORITHMS["one_pass_accelerated_sgd"](35)
    assert method.fitted(287, None).rounds == 287
    assert method.fitted(287, 10).rounds == 28
    assert ALGORITHMS["minibatch_sgd"](35).fitted(287, None).rounds == 35
