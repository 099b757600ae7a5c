"""Proximal maps of the convex part f¹ of a loss: `prox(weights (G, d), stepsize (G, 1)) → (G, d)`."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Prox = Callable[[Tensor, Tensor], Tensor]


def no_prox(weights: Tensor, stepsize: Tensor) -> Tensor:
    """The proximal map of f¹ = 0."""
    return weights


def ball(radius: float) -> Prox:
    """Π_W for W the ball of `radius` around 0: the proximal map of its indicator, whatever the step size."""

    def project(weights: Tensor, stepsize: Tensor) -> Tensor:
        norms = weights.norm(dim=1, keepdim=True)
        # A norm that is not a number fails the comparison, so that divergence still shows.
        return torch.where(norms > radius, weights * (radius / norms), weights)

    return project


def soft_threshold(weight: float) -> Prox:
    """Proximal map of f¹ = λ‖w‖₁: every coordinate moves towards 0 by ηλ and stops there."""
    return lambda weights, stepsize: weights - weights.clamp(-stepsize * weight, stepsize * weight)


def ridge(weight: float) -> Prox:
    """Proximal map of f¹ = (λ/2)‖w‖²: w/(1 + ηλ)."""
    return lambda weights, stepsize: weights / (1 + stepsize * weight)


@dataclass(frozen=True)
class Regulariser:
    """f¹(w) = λ‖w‖₁ or (λ/2)‖w‖² or nothing, plus the indicator of a ball around 0 where there is a radius.

    At most one λ, `l1` or `l2`, is positive.
    """

    l1: float = 0.0
    l2: float = 0.0
    radius: float | None = None

    @property
    def prox(self) -> Prox:
        """Proximal map: the penalty's, then the projection; for these penalties the two in a row are the joint map."""
        shrink: Prox = soft_threshold(self.l1) if self.l1 else ridge(self.l2) if self.l2 else no_prox
        if self.radius is None:
            return shrink
        project = ball(self.radius)
        return lambda weights, stepsize: project(shrink(weights, stepsize), stepsize)

    def penalty(self, weights: Tensor) -> Tensor:
        """λ‖w‖₁ or (λ/2)‖w‖² of every point, (G,)."""
        if self.l1:
            return self.l1 * weights.abs().sum(1)
        # Not 0·‖w‖², which is no number where a run has diverged.
        return self.l2 / 2 * (weights**2).sum(1) if self.l2 else torch.zeros_like(weights[:, 0])
