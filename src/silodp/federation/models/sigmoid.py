"""A smooth non-convex loss of two classes: the sigmoid loss, a smooth count of errors that outliers cannot dominate."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from silodp.federation.models.linear import Linear, TwoClasses


@dataclass(frozen=True)
class Sigmoid(TwoClasses, Linear):
    """Loss 1/(1 + e^m) of the margin m = ±⟨w, x⟩ for the classes 1, 0; no intercept of its own.

    A record's gradient is ∓s(1 − s)·x with s the loss: L = ‖x‖/4, and β = ‖x‖²/(6√3), the largest |s''| by m.
    """

    link: int | None = None
    curvature: ClassVar[float | None] = None

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid((1 - 2 * y) * outputs)

    def residuals(self, outputs: Tensor, y: Tensor) -> Tensor:
        # Both factors by themselves, as 1 − s loses all digits where the margin is large.
        return (1 - 2 * y)[:, None] * torch.sigmoid(outputs) * torch.sigmoid(-outputs)
