"""The sensitivity that the accounting rests on, over all floats: whatever a record and a query hold, NaN included.

Rounding aside, a record's share of a sum is at most L long, so replacing one moves the sum by at most 2L.
"""

import math

import numpy as np
import pytest
import small
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from small import DTYPES, MODEL_CASES, STREAMS

from silodp.federation.messages import Messages
from silodp.models import MODELS
from silodp.models.base import Steps, sequential_steps

RECORDS, POINTS = 3, 2
ROUNDING = {"float32": 1e-4, "float64": 1e-9}
CASES = MODEL_CASES | small.KINKED_CASES
# Every registered model, the one of images too; both envelopes of a loss with kinks.
MADE = {name: case.model() for name, case in CASES.items()} | {
    "convnet": MODELS["convnet"](3 * 16 * 16, 2),
    "absolute-envelope": MODELS["absolute"](small.FEATURES, None, smoothing=0.7),
    "hinge-envelope": MODELS["hinge"](small.FEATURES, 2, smoothing=0.7),
}
CLIP = st.sampled_from([1e-6, 1.0, 1e4])


def test_no_registered_model_is_left_out():
    assert {name.partition("-")[0] for name in MADE} == set(MODELS)


def floats(dtype, shape):
    """Arrays of any floats of the dtype: infinite, not a number, subnormal, the largest; and of ordinary ones."""
    width = 32 if dtype == "float32" else 64
    info = np.finfo(dtype)
    root = float(np.sqrt(info.max, dtype=dtype))
    ends = [0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, info.max, info.tiny, info.smallest_subnormal, root]
    ends += [float(np.dtype(dtype).type(value)) for value in (1e20, 1e18, 1e-18, 1e-22, -1 / root)]
    number = st.sampled_from([float(value) for value in ends]) | st.floats(width=width) | st.floats(-3, 3, width=width)
    return hnp.arrays(dtype, shape, elements=number)


def query(model, dtype):
    """Weights of both points: any floats, or one ordinary point scaled by anything."""
    ordinary = np.random.default_rng(0).standard_normal((POINTS, model.size)).astype(dtype)

    def times(scale):
        with np.errstate(all="ignore"):
            return ordinary * np.dtype(dtype).type(scale)

    scaled = st.floats(width=32).map(times)
    return scaled | floats(dtype, (POINTS, model.size)) if model.size < 100 else scaled


def labels(name, dtype, size):
    if CASES.get(name.partition("-envelope")[0], CASES["softmax"]).classes is None:
        return floats(dtype, size)
    integers = hnp.arrays(np.int64, size, elements=st.integers(0, 1))
    return (
        integers if name.startswith(("softmax", "perceptron", "convnet")) else integers.map(lambda y: y.astype(dtype))
    )


def features(model):
    return getattr(model, "features", 3 * 16 * 16)


def length(rows):
    """Norms of rows, in extended precision."""
    return np.sqrt((rows.detach().numpy().astype(np.longdouble) ** 2).sum(-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MADE)
def test_a_record_moves_a_sum_by_two_clips_at_most(name, dtype):
    model = MADE[name]

    @settings(max_examples=5 if name == "convnet" else 25, deadline=None, derandomize=True, database=None)
    @given(st.data(), CLIP)
    def check(data, clip):
        x = torch.from_numpy(data.draw(floats(dtype, (RECORDS + 1, features(model))), "x"))
        y = torch.from_numpy(data.draw(labels(name, dtype, RECORDS + 1), "y"))
        weights = torch.from_numpy(data.draw(query(model, dtype), "w"))
        limit = torch.full((POINTS,), clip, dtype=DTYPES[dtype])
        slack = clip * RECORDS * ROUNDING[dtype]
        for k in range(RECORDS + 1):
            alone = model.clipped_gradient_sum(weights, x[k : k + 1], y[k : k + 1], limit)
            assert torch.isfinite(alone).all()
            assert (length(alone) <= clip + slack).all()
        first, second = (
            model.clipped_gradient_sum(weights, x[rows], y[rows], limit) for rows in ([0, 1, 2], [0, 3, 2])
        )
        assert torch.isfinite(first).all()
        assert (length(first.double() - second.double()) <= 2 * clip + slack).all()

    check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in MADE if name != "convnet"])
def test_a_record_moves_a_local_step_by_two_clips_at_most(name, dtype):
    model = MADE[name]

    @settings(max_examples=15, deadline=None, derandomize=True, database=None)
    @given(st.data(), CLIP)
    def check(data, clip):
        x = torch.from_numpy(data.draw(floats(dtype, (2, features(model))), "x"))
        y = torch.from_numpy(data.draw(labels(name, dtype, 2), "y"))
        weights = torch.from_numpy(data.draw(query(model, dtype), "w"))
        limit = torch.full((POINTS,), clip, dtype=DTYPES[dtype])
        step, noise = torch.full_like(limit, 0.5), torch.full_like(limit, 0.3)
        base = torch.ones((1, model.size), dtype=DTYPES[dtype])
        first, second = (
            model.local_steps(weights, x[k : k + 1], y[k : k + 1], limit, step, noise, base) for k in (0, 1)
        )
        assert torch.equal(torch.isfinite(first), torch.isfinite(weights - 0.5 * 0.3 * base))
        known = torch.isfinite(weights).all(1)
        unit = np.finfo(dtype).eps * (length(weights[known]) + clip + math.sqrt(model.size))
        moved = length(first[known].double() - second[known].double())
        assert (moved <= 0.5 * 2 * clip * (1 + ROUNDING[dtype]) + 4 * unit).all()

    check()


BAD = [math.nan, math.inf, -math.inf, "largest", "long"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", MADE)
def test_a_record_that_is_not_finite_contributes_zero(name, value, dtype):
    """To a sum and to every local step, and leaves the records beside it alone."""
    model, generator = MADE[name], np.random.default_rng(3)
    largest = {"largest": torch.finfo(DTYPES[dtype]).max, "long": 4 * torch.finfo(DTYPES[dtype]).max ** 0.5}
    x = torch.from_numpy(generator.standard_normal((5, features(model)))).to(DTYPES[dtype])
    y = torch.from_numpy(generator.integers(0, 2, 5))
    y = y if name.startswith(("softmax", "perceptron", "convnet")) else y.to(DTYPES[dtype])
    x[2] = largest.get(value, value)
    weights = torch.from_numpy(0.3 * generator.standard_normal((POINTS, model.size))).to(DTYPES[dtype])
    limit = torch.tensor([0.4, math.inf], dtype=DTYPES[dtype])
    others = [0, 1, 3, 4]
    if name != "l1" or value is math.nan:  # whose gradient is a sign: short however long the record
        found = model.clipped_gradient_sum(weights, x, y, limit)
        torch.testing.assert_close(found, model.clipped_gradient_sum(weights, x[others], y[others], limit))
        step, noise = torch.full_like(limit, 0.1), torch.tensor([0.5, 0.0], dtype=DTYPES[dtype])
        base = torch.from_numpy(generator.standard_normal((5, model.size))).to(DTYPES[dtype])
        stepped = model.local_steps(weights, x, y, limit, step, noise, base)
        wanted = sequential_steps(model, weights, Steps(x[:2], y[:2], limit, step, noise, base[:2]))
        wanted = wanted - step[:, None] * noise[:, None] * base[2]
        wanted = sequential_steps(model, wanted, Steps(x[3:], y[3:], limit, step, noise, base[3:]))
        torch.testing.assert_close(stepped, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("clipping", ["record", "per_tensor", "batch_mean"])
@pytest.mark.parametrize("name", ["linear", "softmax", "perceptron-2", "perceptron-3"])
def test_a_record_moves_a_message_by_its_stated_sensitivity(name, clipping, dtype):
    model = MADE[name]
    bound = {"record": 2 / RECORDS, "per_tensor": 2 * len(model.blocks) ** 0.5 / RECORDS, "batch_mean": 2}[clipping]

    @settings(max_examples=20, deadline=None, derandomize=True, database=None)
    @given(st.data(), CLIP)
    def check(data, clip):
        x = torch.from_numpy(data.draw(floats(dtype, (RECORDS + 1, features(model))), "x"))
        y = torch.from_numpy(data.draw(labels(name, dtype, RECORDS + 1), "y"))
        weights = torch.from_numpy(data.draw(query(model, dtype), "w"))
        limit = torch.full((POINTS,), clip, dtype=DTYPES[dtype])
        sent = [
            small.sent(
                Messages(model, [(x[rows], y[rows])], STREAMS),
                weights,
                0,
                RECORDS,
                limit,
                limit,
                round=0,
                sampler="all",
                clipping=clipping,
            )
            for rows in ([0, 1, 2], [3, 1, 2])
        ]
        assert all(torch.isfinite(one).all() for one in sent)
        slack = clip * 10 * ROUNDING[dtype]
        assert (length(sent[0].double() - sent[1].double()) <= bound * clip + slack).all()

    check()
