"""Messages of a round that are made together are the silos' own messages, added up."""

import math

import pytest
import small
import torch
from small import DTYPES, MODEL_CASES, TOLERANCE, Point

from silodp.algorithms import ALGORITHMS
from silodp.federation.server import TOGETHER

SIZES = (6, 6, 6)
POINTS = [Point(None, 0.1, math.inf), Point(1.0, 0.1, 0.5), Point(6.0, 0.2, 3.0)]
KINDS = {
    "minibatch_sgd": ["gradient"],
    "fedprox_spider": ["gradient", "difference"],
    "one_pass_accelerated_sgd": ["gradient"],
}


def pair(name, model, dtype, sizes=SIZES, **options):
    """Two federations that differ only in whether small messages are made together."""
    case = MODEL_CASES[model]
    silos, made, method = small.records(case, sizes, DTYPES[dtype]), case.model(), ALGORITHMS[name](3)
    plans = small.plans(method, POINTS, sizes)
    together, apart = (small.federation(made, silos, plans, POINTS, 2, **options) for _ in range(2))
    apart.together = set()
    start = small.start(made, DTYPES[dtype])
    return together, apart, start.expand(len(POINTS), -1) + torch.arange(len(POINTS))[:, None].to(start) / 10


@pytest.mark.parametrize(("dtype", "update"), [("float64", "mean"), ("float32", "sum")])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("model", MODEL_CASES)
def test_the_mean_is_that_of_the_messages(model, name, dtype, update):
    together, apart, weights = pair(name, model, dtype, server_update=update)
    for kind in KINDS[name]:
        assert kind in together.together
        previous = weights - 0.2 if kind == "difference" else None
        factor = torch.tensor([1.0, 0.5, 2.0]).to(weights) if kind == "difference" else None
        ours, theirs = (f.mean_message(weights, 1, kind, previous, factor) for f in (together, apart))
        scale = float(theirs.abs().max())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE[dtype] * scale)
        assert not torch.equal(ours[1], ours[2])


def test_only_messages_alike_and_small_are_made_together():
    alike = pair("minibatch_sgd", "linear", "float64")[0]
    assert alike.together == {"gradient"}
    assert pair("minibatch_sgd", "linear", "float64", sizes=(6, 9, 6))[0].together == set()
    assert pair("minibatch_sgd", "linear", "float64", sizes=(TOGETHER * 4,) * 3)[0].together == set()
    assert pair("minibatch_sgd", "linear", "float64", sizes=(6,))[0].together == set()
