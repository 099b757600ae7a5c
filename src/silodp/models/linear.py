"""Linear models, squared, logistic and sigmoid loss; no intercept of their own (append a constant column for one)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from silodp.models.base import (
    Block,
    Model,
    Steps,
    clip_factors,
    finite_records,
    square_sums,
    squares,
    zero_unless_finite,
)
from silodp.models.cpu import kernels


@dataclass(frozen=True)
class Linear(Model):
    """Predicts ⟨w, x⟩; the loss of a record is (⟨w, x⟩ − y)²/2 and its gradient (⟨w, x⟩ − y)·x."""

    features: int
    link: int | None = kernels.IDENTITY

    worst_error: ClassVar[float] = math.inf
    curvature: ClassVar[float | None] = 1.0

    @classmethod
    def build(cls, features: int, classes: int | None, **options: Any) -> Self:
        """The model for records of `features` features; `options` are fields that the config names."""
        return cls(features, **options)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (Block("weight", 0, (self.features,)),)

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
        x, finite = finite_records(x)
        residuals = self.residuals(x @ weights.T, y)
        shares = residuals * clip_factors(squares(residuals) * square_sums(x, 1, keepdim=True), clip)
        return torch.where(torch.isfinite(shares) & finite[:, None], shares, 0).T @ x

    @property
    def steps_program(self) -> tuple[str, tuple[int, ...]] | None:
        if self.link is None:
            return None
        return "logistic" if self.link == kernels.LOGISTIC else "identity", (self.features,)

    def _compiled_steps(self, weights: Tensor, steps: Steps) -> Tensor | None:
        if self.link is None:
            return None
        return kernels.affine_local_steps(self.link, weights, steps._replace(y=steps.y.to(steps.x.dtype)))

    @property
    def _terms(self) -> int:
        return self.features


class TwoClasses:
    """The error of a linear model of the classes 1 and 0; named before the model in a class's bases."""

    worst_error: ClassVar[float] = 1.0

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        return ((outputs > 0) != (y > 0)).to(outputs.dtype)


@dataclass(frozen=True)
class Logistic(TwoClasses, Linear):
    """Loss log(1 + exp(z)) − y·z with z = ⟨w, x⟩; its gradient is (1/(1 + e^{−z}) − y)·x."""

    link: int | None = kernels.LOGISTIC
    curvature: ClassVar[float | None] = 0.25

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return functional.softplus(outputs) - y * outputs

    def residuals(self, outputs: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid(outputs) - y[:, None]


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
