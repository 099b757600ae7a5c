"""Multinomial logistic regression with intercepts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from silodp.federation.models.base import (
    Block,
    clip_factors,
    cross_entropy,
    sequential_steps,
    softmax_residual,
    square_sums,
    zero_unless_finite,
)


@dataclass(frozen=True)
class Softmax:
    """Logits W x + b, cross-entropy loss; a record's gradient is δ xᵀ and δ, so its squared norm is ‖δ‖²(‖x‖² + 1)."""

    features: int
    classes: int

    worst_error: ClassVar[float] = 1.0

    @classmethod
    def build(cls, features: int, classes: int | None) -> "Softmax":
        """The model for records of `features` features and `classes` ≥ 2 classes."""
        if classes is None or classes < 2:
            raise ValueError(f"softmax: classes = {classes}: must be at least 2")
        return cls(features, classes)

    @property
    def size(self) -> int:
        return self.classes * (self.features + 1)

    @property
    def blocks(self) -> tuple[Block, ...]:
        weight = Block("weight", 0, (self.classes, self.features))
        return (weight, Block("bias", weight.stop, (self.classes,)))

    def initial(self, generator: np.random.Generator) -> np.ndarray:
        return np.zeros(self.size)

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        weight, bias = self._unpack(weights)
        return torch.einsum("bf,gcf->gbc", x, weight) + bias[:, None]

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(outputs, y)

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs.argmax(2) != y).to(outputs.dtype)

    @zero_unless_finite
    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        delta = softmax_residual(self.outputs(weights, x), y)
        squared_norms = square_sums(delta, 2).T * ((x**2).sum(1, keepdim=True) + 1)
        delta = delta * clip_factors(squared_norms, clip).T[..., None]
        weight = torch.einsum("gbc,bf->gcf", delta, x)
        return torch.cat([weight.flatten(1), delta.sum(1)], dim=1)

    def local_steps(
        self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor, stepsize: Tensor, noise: Tensor, base: Tensor | None
    ) -> Tensor:
        return sequential_steps(self, weights, x, y, clip, stepsize, noise, base)

    def _unpack(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        split = self.classes * self.features
        return weights[:, :split].reshape(-1, self.classes, self.features), weights[:, split:]
