"""Rounding of local steps at the largest weights that a federation may have, held against more digits."""

import math

import numpy as np
import pytest
import torch
from three_silos import run_plan

from silodp.config.errors import ConfigError
from silodp.models.linear import Linear
from silodp.silos.run_plan import rounding

# ηL and the allowed share of a sensitivity.
STEP, ALLOWED = 0.1, 2.0**-20


def worst_record(weights):
    """Features in [−1, 1] whose first half pulls a product up as far as the second takes it down, to 0 at last."""
    x = np.where(np.arange(len(weights)) < len(weights) // 2, 0.8, -0.8) * weights.min() / weights
    for place in (-1, 0):
        x[place] -= float(x.astype(np.longdouble) @ weights) / weights[place]
    return x


@pytest.mark.parametrize("K", [1, 10])
@pytest.mark.parametrize("d", [8, 64, 512, 2048])
def test_steps_at_the_bound_round_by_less_than_is_allowed(d, K):
    """At d = 2,048 weights were accepted at which a step was off by 8.9 times what is allowed."""
    generator, one = np.random.default_rng(d), torch.ones(1, dtype=torch.float64)
    bound = ALLOWED * STEP / (K * (2 * d + 8) * 2.0**-53) / math.sqrt(d)
    assert rounding(K, d, bound, STEP) == pytest.approx(ALLOWED, rel=1e-3)
    worst = 0.0
    for _ in range(20):
        start = bound * generator.uniform(0.9, 1, d)
        x = np.array([worst_record(start)] * K)
        steps = Linear.build(d, None).local_steps
        given = torch.from_numpy(start)[None], torch.from_numpy(x), 0 * torch.from_numpy(x[:, 0])
        found = steps(*given, one, STEP * one, 0 * one, None, contracted=True)[0].numpy()
        exact = start.astype(np.longdouble)
        for record in x.astype(np.longdouble):
            gradient = (record @ exact) * record * min(2 / (STEP * (record @ record)), 1)
            exact = exact - STEP * gradient * min(1, 1 / max(np.sqrt(gradient @ gradient), 1e-30))
        worst = max(worst, float(np.sqrt(((found - exact) ** 2).sum())))
    assert 2 * worst <= ALLOWED * 2 * STEP


def test_larger_weights_are_refused():
    options = {"noise_at": "end"}
    run_plan(name="local_sgd", options=options, bound=1e3)
    with pytest.raises(ConfigError, match=r"bound = 1e\+09: too large for \d+ local steps in float64"):
        run_plan(name="local_sgd", options=options, bound=1e9)
