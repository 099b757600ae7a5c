"""Proximal maps."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from silodp.federation.prox import Regulariser, ball


def test_the_nearest_point_of_the_ball():
    w = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [float("nan"), 1.0]], dtype=torch.float64)
    found = ball(2.0)(w, torch.ones(4, 1))
    np.testing.assert_allclose(found[0].numpy(), [1.2, 1.6], rtol=1e-15)
    assert torch.equal(found[1:3], w[1:3])
    assert torch.isnan(found[3, 0]), "divergence has to show"
    assert not ball(0.0)(w[:3], torch.ones(3, 1)).any()


PENALTIES = {
    "l1": Regulariser(l1=0.7),
    "l2": Regulariser(l2=0.7),
    "ball": Regulariser(radius=0.9),
    "l1 on a ball": Regulariser(l1=0.3, radius=0.9),
    "l2 on a ball": Regulariser(l2=0.3, radius=0.9),
    "none": Regulariser(),
}


@pytest.mark.parametrize("stepsize", [0.2, 1.5])
@pytest.mark.parametrize("name", PENALTIES)
def test_a_proximal_map_is_the_numeric_minimiser(name, stepsize):
    """argmin_v f¹(v) + ‖v − w‖²/(2η) by a constrained solver on v = a − b, a, b ≥ 0, where ‖v‖₁ is smooth."""
    regulariser = PENALTIES[name]
    weights = torch.from_numpy(np.random.default_rng(3).standard_normal((4, 3)))
    found = regulariser.prox(weights, torch.full((4, 1), stepsize, dtype=torch.float64)).numpy()
    for w, v in zip(weights.numpy(), found, strict=True):

        def objective(z, w=w):
            v = z[:3] - z[3:]
            penalty = regulariser.l1 * z.sum() + regulariser.l2 / 2 * (v @ v)
            return penalty + ((v - w) @ (v - w)) / (2 * stepsize)

        inside = {"type": "ineq", "fun": lambda z: regulariser.radius**2 - ((z[:3] - z[3:]) ** 2).sum()}
        best = minimize(
            objective,
            np.full(6, 0.1),
            bounds=[(0, None)] * 6,
            constraints=[] if regulariser.radius is None else [inside],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(v, best.x[:3] - best.x[3:], atol=2e-5)


def test_each_point_shrinks_by_its_own_step_and_a_number_that_is_none_stays_so():
    w = torch.tensor([[3.0, -0.5], [3.0, -0.5], [float("nan"), 1.0]], dtype=torch.float64)
    steps = torch.tensor([[1.0], [0.1], [1.0]], dtype=torch.float64)
    found = Regulariser(l1=2.0).prox(w, steps)
    torch.testing.assert_close(found[:2], torch.tensor([[1.0, 0.0], [2.8, -0.3]], dtype=torch.float64))
    assert torch.isnan(found[2, 0])
    assert Regulariser(l2=2.0).prox(w, steps)[0].tolist() == [1.0, -0.5 / 3]


def test_penalties_by_hand():
    w = torch.tensor([[3.0, -4.0], [float("inf"), 0.0]], dtype=torch.float64)
    assert Regulariser(l1=2.0).penalty(w)[0] == 14
    assert Regulariser(l2=2.0).penalty(w)[0] == 25
    assert Regulariser(radius=1.0).penalty(w).tolist() == [0, 0]
