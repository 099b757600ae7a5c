"""Logistic regression on the classes 0 and 1, no intercept of its own."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from silodp.federation.models import kernels
from silodp.federation.models.linear import Linear


@dataclass(frozen=True)
class Logistic(Linear):
    """Loss log(1 + exp(z)) − y·z with z = ⟨w, x⟩; its gradient is (1/(1 + e^{−z}) − y)·x."""

    link: int = kernels.LOGISTIC

    worst_error: ClassVar[float] = 1.0

    @classmethod
    def build(cls, features: int, classes: int | None) -> "Logistic":
        """The model for records of `features` features; needs two classes."""
        if classes != 2:
            raise ValueError(f"logistic: classes = {classes}: must be 2 (use softmax for more)")
        return cls(features)

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return functional.softplus(outputs) - y * outputs

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        return ((outputs > 0) != (y > 0)).to(outputs.dtype)

    def residuals(self, outputs: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid(outputs) - y[:, None]
