"""Proximal maps."""

import numpy as np
import pytest
import torch

from silodp.prox import ball


def test_the_nearest_point_of_the_ball():
    w = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [float("nan"), 1.0]], dtype=torch.float64)
    found = ball(2.0)(w, torch.ones(4, 1)).numpy()
    np.testing.assert_allclose(found[:3], [[1.2, 1.6], [0.3, 0.4], [0, 0]], rtol=1e-15)
    assert np.isnan(found[3, 0]), "divergence has to show"


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan")])
def test_a_ball_needs_a_radius(radius):
    with pytest.raises(ValueError, match="must be positive"):
        ball(radius)
