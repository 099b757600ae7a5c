"""Compiled kernels against tensor operations, at the sizes where their loops are cut."""

import json
import math
import os
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from small import DTYPES

from silodp.models import MODELS
from silodp.models.base import Steps, sequential_steps, zero_unless_finite
from silodp.models.cpu import kernels
from silodp.models.linear import Linear, Logistic
from silodp.models.perceptron import Perceptron
from silodp.models.threads import use_threads

NEAR = {"float64": 1e-11, "float32": 2e-5}


def perceptron(records, hidden, dtype, points=3, features=6, seed=0):
    generator = np.random.default_rng(seed)
    model = MODELS["perceptron"](features, 2, hidden=hidden)
    x = torch.from_numpy(generator.standard_normal((records, features))).to(DTYPES[dtype])
    y = torch.from_numpy(generator.integers(0, 2, records))
    weights = torch.from_numpy(generator.standard_normal((points, model.size))).to(DTYPES[dtype])
    return model, weights, x, y


plain_sum = zero_unless_finite(Perceptron._plain_sum)


def close(found, wanted, dtype):
    scale = wanted.abs().max().item()
    assert (found - wanted).abs().max().item() <= NEAR[dtype] * scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "records", [1, 7, kernels.RECORD_BLOCK - 1, kernels.RECORD_BLOCK, kernels.RECORD_BLOCK + 1, 2500]
)
@pytest.mark.parametrize("hidden", [1, 5])
def test_perceptron_gradient_sums_at_every_cut_of_the_records(records, hidden, dtype):
    model, weights, x, y = perceptron(records, hidden, dtype)
    clip = torch.tensor([0.2, 2.0, math.inf], dtype=DTYPES[dtype])
    close(model.clipped_gradient_sum(weights, x, y, clip), plain_sum(model, weights, x, y, clip), dtype)
    close(model.outputs(weights, x), model._forward(weights, x)[1], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("name", ["perceptron", "linear", "logistic", "softmax"])
@pytest.mark.parametrize("steps", [1, kernels.STEP_BLOCK - 1, kernels.STEP_BLOCK, kernels.STEP_BLOCK + 1, 40])
def test_local_steps_at_every_cut_of_the_steps(steps, name, noisy, dtype):
    model, weights, x, y = perceptron(steps, 5, dtype)
    plain = SimpleNamespace(clipped_gradient_sum=partial(plain_sum, model))
    if name == "softmax":
        model = plain = MODELS[name](6, 3)
        weights, y = weights[:, : model.size].contiguous(), y + (torch.arange(steps) % 2)
    elif name != "perceptron":
        model = plain = MODELS[name](6, 2)
        weights, y = weights[:, :6].contiguous(), y.to(x)
    clip = torch.tensor([0.2, 2.0, math.inf], dtype=DTYPES[dtype])
    stepsize = torch.tensor([0.3, 0.05, 0.01], dtype=DTYPES[dtype])
    noise = torch.tensor([0.5, 0.0, 0.1] if noisy else [0.0] * 3, dtype=DTYPES[dtype])
    base = torch.from_numpy(np.random.default_rng(1).standard_normal((steps, model.size))).to(DTYPES[dtype])
    arguments = weights, x, y, clip, stepsize, noise, base if noisy else None
    close(model.local_steps(*arguments), sequential_steps(plain, weights, Steps(*arguments[1:])), dtype)


@pytest.fixture
def threads():
    yield use_threads
    use_threads(1)


@pytest.mark.parametrize("points", [1, 2, 3, 7])
def test_results_do_not_depend_on_threads(points, threads):
    model, weights, x, y = perceptron(33, 5, "float32", points)
    clip = torch.linspace(0.1, 3, points)
    stepsize, noise = torch.full((points,), 0.05), torch.full((points,), 0.1)
    base = torch.randn((33, model.size), generator=torch.Generator().manual_seed(0))
    found = []
    for count in (1, 2, 3):
        threads(count)
        found.append(
            [
                model.clipped_gradient_sum(weights, x, y, clip),
                model.outputs(weights, x),
                model.local_steps(weights, x, y, clip, stepsize, noise, base),
            ]
        )
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_the_library_of_the_kernels_matrix_products_is_loaded_before_its_threads_are_limited():
    code = (
        "from silodp.models.threads import use_threads; use_threads(1); import numba, scipy.linalg.blas;"
        "from threadpoolctl import threadpool_info; print([pool['num_threads'] for pool in threadpool_info()])"
    )
    unset = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], env=unset, capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) == {1}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_model_that_is_not_finite_stays_so_and_shows_it_in_its_outputs(value, dtype):
    """Divergence is told by it: neither a step nor the clip may make such a model look sound again."""
    model, weights, x, y = perceptron(5, 4, dtype)
    weights[0, model.blocks[2].start], weights[1] = value, value
    clip = torch.tensor([1.0, 1.0, 1.0], dtype=DTYPES[dtype])
    stepsize, noise = torch.full_like(clip, 0.1), torch.zeros_like(clip)
    stepped = weights - 0.1 * model.clipped_gradient_sum(weights, x, y, clip)
    for after in (stepped, model.local_steps(weights, x, y, clip, stepsize, noise, None)):
        assert not torch.isfinite(after[0]).all()
        assert not torch.isfinite(after[1]).all()
        assert torch.isfinite(after[2]).all()
        outputs = torch.isfinite(model.outputs(after, x))
        assert not outputs[1].any()
        assert outputs[2].all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("model", [Linear, Logistic])
def test_the_local_steps_of_an_affine_point_are_the_same_bits_in_every_stack(model, dtype):
    """Points are worked on many at a time; none may see another, or how many there are."""
    rng = torch.Generator().manual_seed(3)
    points, features, steps = 150, 7, 70
    w, x, base = (torch.randn(n, features, generator=rng, dtype=dtype) for n in (points, steps, steps))
    y, clip = (torch.rand(n, generator=rng, dtype=dtype) for n in (steps, points))
    noise, eta = torch.linspace(0, 1, points, dtype=dtype), torch.full((points,), 0.01, dtype=dtype)
    whole = model(features).local_steps(w, x, y, clip, eta, noise, base)
    assert not torch.equal(whole, w)
    for part in (torch.arange(9), torch.tensor([0]), torch.arange(3, 140), torch.arange(140, 150)):
        alone = model(features).local_steps(w[part], x, y, clip[part], eta[part], noise[part], base)
        assert torch.equal(alone, whole[part])
