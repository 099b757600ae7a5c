"""Convex losses with kinks, and their Moreau envelopes in closed form (convex paper, Theorems 2.2 and 2.4).

The envelope f_β(w) = min_v f(v) + (β/2)‖w − v‖² over all v is β-smooth, at most L²/(2β) below f, and its gradient has
norm at most L. `smoothing` is β; without it, gradients are subgradients. Losses and errors are those of f itself.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from silodp.models.base import clip_factors, finite_records, square_sums, squares, zero_unless_finite
from silodp.models.linear import Linear, TwoClasses


@dataclass(frozen=True)
class _Nonsmooth(Linear):
    """A loss of ⟨w, x⟩ with slopes in [−1, 1]: a record's gradient is s·x for a slope s, and its norm at most ‖x‖."""

    smoothing: float | None = None
    link: int | None = None
    curvature: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if self.smoothing is not None and not self.smoothing > 0:
            raise ValueError(f"smoothing = {self.smoothing}: must be positive")

    def slopes(self, outputs: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        """Derivative of the loss by the output, (B, G); `scale` (B, 1) is β/‖x‖², infinite for the loss itself."""
        raise NotImplementedError

    @zero_unless_finite
    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        x, finite = finite_records(x)
        squared = (x**2).sum(1, keepdim=True)
        scale = torch.full_like(squared, torch.inf) if self.smoothing is None else self.smoothing / squared
        slopes = self.slopes(x @ weights.T, y, scale)
        shares = slopes * clip_factors(squares(slopes) * square_sums(x, 1, keepdim=True), clip)
        return torch.where(torch.isfinite(shares) & finite[:, None], shares, 0).T @ x


@dataclass(frozen=True)
class Absolute(_Nonsmooth):
    """|⟨w, x⟩ − y|; the envelope's slope is β(⟨w, x⟩ − y)/‖x‖², cut to [−1, 1] (Huber's loss)."""

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs - y).abs()

    def slopes(self, outputs: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        return _clipped_slope(outputs - y[:, None], scale)


@dataclass(frozen=True)
class Hinge(TwoClasses, _Nonsmooth):
    """max(0, 1 − m), m = ±⟨w, x⟩ for the classes 1, 0; the envelope's slope by m is −β(1 − m)/‖x‖², cut to [−1, 0]."""

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (1 - (2 * y - 1) * outputs).clamp(min=0)

    def slopes(self, outputs: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        sign = (2 * y - 1)[:, None]
        return -sign * _clipped_slope((1 - sign * outputs).clamp(min=0), scale)


@dataclass(frozen=True)
class L1(_Nonsmooth):
    """‖w − x‖₁, minimised by the coordinates' medians; the envelope's gradient is β(w − x), cut to [−1, 1] each."""

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        """Distances (G, B)."""
        return (weights[:, None] - x).abs().sum(2)

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return outputs

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        return outputs

    @zero_unless_finite
    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        away = x[:, None] - weights
        gradients = -_clipped_slope(
            away, torch.full_like(away, torch.inf if self.smoothing is None else self.smoothing)
        )
        scaled = gradients * clip_factors((gradients**2).sum(2), clip)[..., None]
        return torch.where(torch.isfinite(scaled).all(2, keepdim=True), scaled, 0).sum(0)


def _clipped_slope(residuals: Tensor, scale: Tensor) -> Tensor:
    """scale·residual cut to [−1, 1]; for an infinite scale the sign, 0 at 0."""
    return torch.where(torch.isinf(scale), residuals.sign(), (scale * residuals).clamp(-1, 1))
