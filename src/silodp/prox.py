"""Proximal maps of the convex part f¹ of a loss: `prox(weights (G, d), stepsize (G, 1)) → (G, d)`."""

from collections.abc import Callable

import torch
from torch import Tensor

Prox = Callable[[Tensor, Tensor], Tensor]


def no_prox(weights: Tensor, stepsize: Tensor) -> Tensor:
    """The proximal map of f¹ = 0."""
    return weights


def ball(radius: float) -> Prox:
    """Π_W for W the ball of `radius` around 0: the proximal map of its indicator, whatever the step size."""
    if not radius > 0:
        raise ValueError(f"radius = {radius}: must be positive")

    def project(weights: Tensor, stepsize: Tensor) -> Tensor:
        norms = weights.norm(dim=1, keepdim=True)
        # A norm that is not a number fails the comparison, so that divergence still shows.
        return torch.where(norms > radius, weights * (radius / norms), weights)

    return project
