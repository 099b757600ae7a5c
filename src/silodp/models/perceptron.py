"""A perceptron with one hidden ReLU layer, the network of the non-convex paper's MNIST and breast cancer figures."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from silodp.models import gpu
from silodp.models.base import (
    Block,
    Network,
    Steps,
    clip_factors,
    finite_records,
    softmax_residual,
    square_sums,
    within_reach,
    zero_unless_finite,
)
from silodp.models.cpu import kernels


@dataclass(frozen=True)
class Perceptron(Network):
    """Logits V relu(W x + b) + c with cross-entropy loss.

    A record's squared gradient norm is ‖δ₁‖²(‖x‖² + 1) + ‖δ₂‖²(‖a‖² + 1), a the hidden activations, δ the layers'
    deltas. With `hides_time` a record that is not finite does not show in the time, at the price of the kernel.
    """

    features: int
    hidden: int
    classes: int
    hides_time: bool = False

    @classmethod
    def build(cls, features: int, classes: int | None, hidden: int) -> "Perceptron":
        """The model for records of `features` features and `classes` ≥ 2 classes."""
        assert classes is not None
        return cls(features, hidden, classes)

    @property
    def blocks(self) -> tuple[Block, ...]:
        w = Block("hidden.weight", 0, (self.hidden, self.features))
        b = Block("hidden.bias", w.stop, (self.hidden,))
        v = Block("output.weight", b.stop, (self.classes, self.hidden))
        return (w, b, v, Block("output.bias", v.stop, (self.classes,)))

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        if gpu.runs_on_host(weights) and self.classes == 2:
            return kernels.perceptron_outputs(self.hidden, weights, x)
        return self._forward(weights, x)[1]

    @zero_unless_finite
    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        if gpu.runs_on_host(weights) and self._has_kernel:
            total = kernels.perceptron_gradient_sum(self.hidden, weights, x, y, clip)
            near = within_reach(x, y, weights, clip, self._terms) & torch.isfinite(total).all(1)
            if not bool(near.all()):
                total[~near] = self._plain_sum(weights[~near], x, y, clip[~near])
            return total
        return self._plain_sum(weights, x, y, clip)

    def _plain_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        x, finite = finite_records(x)
        a, logits = self._forward(weights, x)
        v = self.unpacked(weights)[2]
        delta2 = softmax_residual(logits, y)
        delta1 = torch.bmm(delta2, v) * (a > 0)
        squared_norms = square_sums(delta1, 2) * ((x**2).sum(1) + 1) + square_sums(delta2, 2) * ((a**2).sum(2) + 1)
        factors = clip_factors(squared_norms.T, clip).T[..., None]
        delta1, delta2 = delta1 * factors, delta2 * factors
        good = torch.isfinite(delta1).all(2) & torch.isfinite(delta2).all(2) & torch.isfinite(a).all(2) & finite
        delta1, delta2, a = (torch.where(good[..., None], part, 0) for part in (delta1, delta2, a))
        parts = [torch.einsum("gbh,bf->ghf", delta1, x), delta1.sum(1), torch.bmm(delta2.mT, a), delta2.sum(1)]
        return torch.cat([part.flatten(1) for part in parts], dim=1)

    @property
    def steps_program(self) -> tuple[str, tuple[int, ...]] | None:
        return "perceptron", (self.features, self.hidden, self.classes)

    def _compiled_steps(self, weights: Tensor, steps: Steps) -> Tensor | None:
        return kernels.perceptron_local_steps(self.hidden, weights, steps) if self._has_kernel else None

    def hiding_time(self) -> "Perceptron":
        return replace(self, hides_time=True)

    @property
    def _has_kernel(self) -> bool:
        return self.classes == 2 and not self.hides_time

    @property
    def _terms(self) -> int:
        return self.hidden * self.features

    def _forward(self, weights: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        w, b, v, c = self.unpacked(weights)
        a = torch.relu(torch.einsum("bf,ghf->gbh", x, w) + b[:, None])
        return a, torch.bmm(a, v.mT) + c[:, None]
