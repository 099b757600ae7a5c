"""Linear regression: half the squared error, no intercept of its own (append a constant column for one)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from silodp.federation.models import kernels
from silodp.federation.models.base import (
    Block,
    clip_factors,
    sequential_steps,
    square_sums,
    squares,
    zero_unless_finite,
)


@dataclass(frozen=True)
class Linear:
    """Predicts ⟨w, x⟩; the loss of a record is (⟨w, x⟩ − y)²/2 and its gradient (⟨w, x⟩ − y)·x."""

    features: int
    link: int = kernels.IDENTITY

    worst_error: ClassVar[float] = math.inf

    @classmethod
    def build(cls, features: int, classes: int | None) -> "Linear":
        """The model for records of `features` features."""
        return cls(features)

    @property
    def size(self) -> int:
        return self.features

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (Block("weight", 0, (self.features,)),)

    def initial(self, generator: np.random.Generator) -> np.ndarray:
        return np.zeros(self.size)

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        return weights @ x.T

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (outputs - y) ** 2

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs - y) ** 2

    def residuals(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Derivative of the loss by the output, (B, G) for outputs (B, G)."""
        return outputs - y[:, None]

    @zero_unless_finite
    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        residuals = self.residuals(x @ weights.T, y)
        squared_norms = squares(residuals) * square_sums(x, 1, keepdim=True)
        return (residuals * clip_factors(squared_norms, clip)).T @ x

    def local_steps(
        self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor, stepsize: Tensor, noise: Tensor, base: Tensor | None
    ) -> Tensor:
        if weights.device.type != "cpu":
            return sequential_steps(self, weights, x, y, clip, stepsize, noise, base)
        done = kernels.affine_local_steps(self.link, weights, x, y.to(x.dtype), clip, stepsize, noise, base)
        return kernels.redone_steps(self, done, self.features, weights, x, y, clip, stepsize, noise, base)
