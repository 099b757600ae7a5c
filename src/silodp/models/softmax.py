"""Multinomial logistic regression with intercepts."""

from dataclasses import dataclass

import torch
from torch import Tensor

from silodp.models.base import (
    Block,
    Classifier,
    Steps,
    clip_factors,
    finite_records,
    softmax_residual,
    square_sums,
    zero_unless_finite,
)
from silodp.models.cpu import kernels


@dataclass(frozen=True)
class Softmax(Classifier):
    """Logits W x + b, cross-entropy loss; a record's gradient is δ xᵀ and δ, so its squared norm is ‖δ‖²(‖x‖² + 1)."""

    features: int
    classes: int

    @classmethod
    def build(cls, features: int, classes: int | None) -> "Softmax":
        """The model for records of `features` features and `classes` ≥ 2 classes."""
        assert classes is not None
        return cls(features, classes)

    @property
    def blocks(self) -> tuple[Block, ...]:
        weight = Block("weight", 0, (self.classes, self.features))
        return (weight, Block("bias", weight.stop, (self.classes,)))

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        weight, bias = self.unpacked(weights)
        return torch.einsum("bf,gcf->gbc", x, weight) + bias[:, None]

    @property
    def steps_program(self) -> tuple[str, tuple[int, ...]] | None:
        return "softmax", (self.features, self.classes)

    def _compiled_steps(self, weights: Tensor, steps: Steps) -> Tensor:
        return kernels.softmax_local_steps(self.classes, weights, steps)

    @property
    def _terms(self) -> int:
        return self.features

    @zero_unless_finite
    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        x, finite = finite_records(x)
        return _sum_of_products(softmax_residual(self.outputs(weights, x), y), x, finite, clip)

    def joint_gradient_sum(
        self,
        weights: Tensor,
        previous: Tensor | None,
        factors: tuple[float, float],
        x: Tensor,
        y: Tensor,
        clip: Tensor,
    ) -> Tensor:
        seen, finite = finite_records(x)
        delta = factors[0] * softmax_residual(self.outputs(weights, seen), y)
        if previous is not None:
            delta = delta - factors[1] * softmax_residual(self.outputs(previous, seen), y)
        return _sum_of_products(delta, seen, finite, clip)


def _sum_of_products(delta: Tensor, x: Tensor, finite: Tensor, clip: Tensor) -> Tensor:
    """(G, d) sum of δ xᵀ and δ over the records, of δ (G, B, classes), each scaled to norm at most `clip`."""
    squared_norms = square_sums(delta, 2).T * ((x**2).sum(1, keepdim=True) + 1)
    delta = delta * clip_factors(squared_norms, clip).T[..., None]
    delta = torch.where((torch.isfinite(delta).all(2) & finite)[..., None], delta, 0)
    return torch.cat([torch.einsum("gbc,bf->gcf", delta, x).flatten(1), delta.sum(1)], dim=1)
