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


def drawn(M, K=None, rounds=6, sizes=SIZES):
    """Records of every message, silo by silo, told by their features."""
    case, point = MODEL_CASES["linear"], [Point(1.0, 0.1, 1.0)]
    silos = small.records(case, sizes, torch.float64)
    method = ALGORITHMS["one_pass_accelerated_sgd"](rounds)
    plans = small.plans(method, point, sizes, batch_records=K)
    federation = small.federation(case.model(), silos, plans, point, M)
    seen: dict[int, list[int]] = {silo: [] for silo in range(len(sizes))}
    gradient_sum = type(case.model()).clipped_gradient_sum

    class Spy:
        def clipped_gradient_sum(self, weights, x, y, clip):
            for row in x:
                found = [
                    (silo, i) for silo, (z, _) in enumerate(silos) for i in range(len(z)) if torch.equal(z[i], row)
                ]
                assert len(found) == 1
                seen[found[0][0]].append(found[0][1])
            return gradient_sum(case.model(), weights, x, y, clip)

    federation.messages.model = Spy()
    small.iterates(method, federation, small.start(case.model(), torch.float64), 1)
    return seen


def test_every_record_is_used_once_when_all_silos_take_part():
    assert all(sorted(numbers) == list(range(6)) for numbers in drawn(3).values())
    assert all(sorted(numbers) == list(range(6)) for numbers in drawn(3, K=2, rounds=3).values())


def test_no_record_is_used_twice_when_silos_are_drawn():
    seen = drawn(2)
    assert all(len(numbers) == len(set(numbers)) for numbers in seen.values())
    assert sum(map(len, seen.values())) == 2 * 6


def test_the_order_is_random():
    orders = {tuple(numbers) for numbers in drawn(3).values()}
    assert len(orders) > 1
    assert tuple(range(6)) not in orders


def test_replacing_a_record_moves_one_message_only():
    case = MODEL_CASES["linear"]
    x, y = small.records(case, (6,), torch.float64)[0]
    other = y.clone()
    other[2] += 100
    method, point = ALGORITHMS["one_pass_accelerated_sgd"](6), [Point(1.0, 0.1, 1.0)]
    w = torch.zeros((1, 4), dtype=torch.float64)
    moved = []
    for r in range(6):
        a, b = (
            small.federation(case.model(), [(x, labels)], small.plans(method, point, (6,)), point).message(w, 0, r)
            for labels in (y, other)
        )
        moved.append(float((a - b).norm()))
    assert sum(distance > 0 for distance in moved) == 1
    assert max(moved) <= 2 + 1e-12


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


def test_noise_of_larger_batches_is_that_of_their_sensitivity():
    one = ALGORITHMS["one_pass_accelerated_sgd"](100).plan(Budget(100, 100, 0.5, 1e-4, 1.0))
    five = ALGORITHMS["one_pass_accelerated_sgd"](20).plan(Budget(100, 20, 0.5, 1e-4, 1.0, 5))
    assert five["gradient"].noise == pytest.approx(one["gradient"].noise / 5)
    assert five.noise_multiplier == pytest.approx(one.noise_multiplier)
    assert five.sampling == "5 of 100 without replacement over the run"


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
