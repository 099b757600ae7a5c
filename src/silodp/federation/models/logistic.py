"""Logistic regression on the classes 0 and 1, no intercept of its own."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from silodp.federation.models import kernels
from silodp.federation.models.linear import Linear, TwoClasses


@dataclass(frozen=True)
class Logistic(TwoClasses, Linear):
    """Loss log(1 + exp(z)) − y·z with z = ⟨w, x⟩; its gradient is (1/(1 + e^{−z}) − y)·x."""

    link: int | None = kernels.LOGISTIC
    curvature: ClassVar[float | None] = 0.25

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return functional.softplus(outputs) - y * outputs

    def residuals(self, outputs: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid(outputs) - y[:, None]
