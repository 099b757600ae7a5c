"""The papers' noise and batches written out by hand, at options where the result differs."""

import math

import pytest

from silodp.algorithms.fed_spider import FedSpider
from silodp.algorithms.fedprox_spider import FedProxSpider
from silodp.algorithms.local_sgd import LocalSGD
from silodp.algorithms.minibatch_sgd import MinibatchSGD
from silodp.privacy.plan import Budget

R, N, EPSILON, DELTA = 9, 200, 1.5, 1e-4
ONE, TWO = math.log(1 / DELTA), math.log(2 / DELTA)
BATCH = math.floor(N * math.sqrt(EPSILON) / (2 * math.sqrt(R)))
# An algorithm, and by kind of message σ²n²ε²/L², the number of messages and the records of each.
CASES = [
    (MinibatchSGD(R), {"gradient": (8 * R * ONE, R, BATCH)}),
    (MinibatchSGD(R, log_term="2/delta"), {"gradient": (8 * R * TWO, R, BATCH)}),
    (LocalSGD(R), {"step": (8 * BATCH * R * ONE, BATCH * R, 1)}),
    (FedSpider(R), {"gradient": (8 * R * TWO, R, BATCH), "difference": (32 * R * TWO, R - 1, BATCH)}),
    (
        FedSpider(R, fed_spider_releases="2R-1"),
        {"gradient": (8 * 17 * TWO, R, BATCH), "difference": (32 * 17 * TWO, R - 1, BATCH)},
    ),
    (FedProxSpider(R), {"gradient": (16 * R * ONE, R, BATCH)}),
    (FedProxSpider(R, spider_q1_noise="released"), {"gradient": (16 * ONE, R, BATCH)}),
    (FedProxSpider(R, spider_q1_noise="minibatch"), {"gradient": (8 * R * ONE, R, BATCH)}),
    (FedProxSpider(R, spider_q1_noise="minibatch", log_term="2/delta"), {"gradient": (8 * R * TWO, R, BATCH)}),
    (
        FedProxSpider(R, phase_length=4),
        {
            "gradient": (16 * R / 4 * ONE, 3, math.floor(N * math.sqrt(EPSILON) / 2 * math.sqrt(4 / R))),
            "difference": (64 * R * ONE, 6, BATCH),
        },
    ),
    (
        FedProxSpider(R, phase_length=12),
        {"gradient": (16 * ONE, 1, math.floor(N * math.sqrt(EPSILON) / 2)), "difference": (64 * R * ONE, 8, BATCH)},
    ),
]


@pytest.mark.parametrize(("algorithm", "kinds"), CASES, ids=lambda value: str(value)[:60])
def test_noise_and_batches_are_those_that_are_printed(algorithm, kinds):
    plan = algorithm.plan(Budget(N, R, EPSILON, DELTA, EPSILON))
    assert {release.kind for release in plan.releases if release.count} == set(kinds)
    for kind, (variance, count, records) in kinds.items():
        assert plan[kind].noise == pytest.approx(math.sqrt(variance) / (N * EPSILON)), kind
        assert (plan[kind].count, plan[kind].records) == (count, records), kind
