"""A smooth non-convex loss of two classes: the sigmoid loss, a smooth count of errors that outliers cannot dominate."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from silodp.federation.models.base import sequential_steps
from silodp.federation.models.linear import Linear


@dataclass(frozen=True)
class Sigmoid(Linear):
    """Loss 1/(1 + e^m) of the margin m = ±⟨w, x⟩ for the classes 1, 0; no intercept of its own.

    A record's gradient is ∓s(1 − s)·x with s the loss: L = ‖x‖/4, and β = ‖x‖²/(6√3), the largest |s''| by m.
    """

    link: int = -1

    worst_error: ClassVar[float] = 1.0

    @classmethod
    def build(cls, features: int, classes: int | None) -> "Sigmoid":
        """The model for records of `features` features; needs two classes."""
        if classes != 2:
            raise ValueError(f"sigmoid: classes = {classes}: must be 2")
        return cls(features)

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid((1 - 2 * y) * outputs)

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        return ((outputs > 0) != (y > 0)).to(outputs.dtype)

    def residuals(self, outputs: Tensor, y: Tensor) -> Tensor:
        # Both factors by themselves, as 1 − s loses all digits where the margin is large.
        return (1 - 2 * y)[:, None] * torch.sigmoid(outputs) * torch.sigmoid(-outputs)

    def local_steps(
        self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor, stepsize: Tensor, noise: Tensor, base: Tensor | None
    ) -> Tensor:
        return sequential_steps(self, weights, x, y, clip, stepsize, noise, base)
