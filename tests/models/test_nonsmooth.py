"""Envelopes of hinge, absolute and ℓ1 loss by numerical minimisation; the losses themselves: test_gradients.py."""

import math

import numpy as np
import pytest
import small
import torch
from scipy.optimize import minimize_scalar
from small import KINKED_CASES

from silodp.models import MODELS


def example(name, smoothing, records, points):
    case = KINKED_CASES[name]
    ((x, y),) = small.records(case, (records,), torch.float64)
    weights = torch.from_numpy(np.random.default_rng(1).standard_normal((points, small.FEATURES)))
    return MODELS[name](small.FEATURES, case.classes, smoothing=smoothing), weights, x, y


def each(model, weights, x, y):
    """Gradient of every record, (B, G, d)."""
    limit = torch.full((len(weights),), math.inf, dtype=torch.float64)
    return torch.stack([model.clipped_gradient_sum(weights, x[i : i + 1], y[i : i + 1], limit) for i in range(len(x))])


def envelope(name, w, x, y, beta):
    """min_v f(v) + (β/2)‖w − v‖², on the line through w along x where f is of ⟨v, x⟩, else coordinate by coordinate."""
    if name == "l1":
        options = {"bounds": None, "method": "bounded", "options": {"xatol": 1e-12}}
        parts = []
        for a, b in zip(w, x, strict=True):
            options["bounds"] = sorted((a, b))
            parts.append(minimize_scalar(lambda v, a=a, b=b: abs(v - b) + beta / 2 * (a - v) ** 2, **options).fun)
        return sum(parts)

    def loss(v):
        z = v @ x
        return abs(z - y) if name == "absolute" else max(0.0, 1 - (2 * y - 1) * z)

    far = 1.1 / beta
    found = minimize_scalar(
        lambda t: loss(w + t * x) + beta / 2 * t * t * (x @ x),
        bounds=(-far, far),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return found.fun


@pytest.mark.parametrize("beta", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("name", KINKED_CASES)
def test_gradients_are_those_of_the_numerical_envelope(name, beta):
    """Central differences of the minimum over v, on a random record: within 1e-4."""
    model, weights, x, y = example(name, beta, records=3, points=2)
    found = each(model, weights, x, y)
    for i in range(3):
        for g in range(2):
            w, record, label = weights[g].numpy(), x[i].numpy(), float(y[i])
            for j in range(small.FEATURES):
                step = np.zeros(small.FEATURES)
                step[j] = 1e-4
                up, down = (envelope(name, w + s * step, record, label, beta) for s in (1, -1))
                assert float(found[i, g, j]) == pytest.approx((up - down) / 2e-4, abs=1e-3)


@pytest.mark.parametrize("name", KINKED_CASES)
def test_the_envelope_is_smooth_and_its_gradient_no_longer_than_the_loss_s(name):
    beta = 2.0
    model, weights, x, y = example(name, beta, records=30, points=6)
    g = each(model, weights, x, y)
    lipschitz = math.sqrt(small.FEATURES) if name == "l1" else x.norm(dim=1).max().item()
    assert float(g.norm(dim=2).max()) <= lipschitz + 1e-12
    for a in range(6):
        for b in range(a):
            moved = float((weights[a] - weights[b]).norm())
            assert float((g[:, a] - g[:, b]).norm(dim=1).max()) <= beta * moved + 1e-12


@pytest.mark.parametrize("name", KINKED_CASES)
@pytest.mark.parametrize("smoothing", [0.0, -1.0])
def test_smoothing_must_be_positive(name, smoothing):
    with pytest.raises(ValueError, match=f"smoothing = {smoothing}: must be positive"):
        MODELS[name](3, 2, smoothing=smoothing)
