"""The convolutional network of the non-convex paper's CIFAR-10 figures, over a stack of points."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from silodp.models import gpu
from silodp.models.base import (
    Block,
    Network,
    Steps,
    zero_unless_finite,
)
from silodp.models.cpu import convnet_kernels
from silodp.models.cpu.convnet_maps import KERNEL, sides
from silodp.models.gpu.convnet_tensors import Shape, chain_steps, tensor_clipped_sum, tensor_outputs

# Records worked on at once before points are cut: below it, products with a point's own matrices get too thin.
RECORDS = 32


@dataclass(frozen=True)
class ConvNet(Network):
    """Two 5×5 convolutions, each with ReLU and 2×2 maxima, then three dense layers; cross-entropy loss.

    With 3×32×32 images, 6 and 16 `filters`, and layers of 120, 84 (`hidden`) and 10 units it has 62,006 parameters
    (non-convex paper, Appendix H.3). Per-record norms are exact: a dense layer's is ‖δ‖²(‖a‖² + 1), and a convolution's
    per-record gradients are built. `workspace` bounds temporary memory in bytes, of a thread on a CPU.
    """

    side: int
    classes: int
    channels: int = 3
    filters: tuple[int, int] = (6, 16)
    hidden: tuple[int, int] = (120, 84)
    workspace: int = 256 * 2**20

    @classmethod
    def build(cls, features: int, classes: int | None, workspace_mb: int = 256) -> "ConvNet":
        """The paper's network for square images of three channels, `features` values each, and `classes` ≥ 2."""
        assert classes is not None
        side = math.isqrt(features // 3)
        return cls(side, classes, workspace=workspace_mb * 2**20)

    @property
    def sides(self) -> tuple[int, int, int, int]:
        """Sides of the first convolution's output, of its maxima, and the same of the second."""
        return sides(self.side)

    @property
    def blocks(self) -> tuple[Block, ...]:
        (f1, f2), (h1, h2) = self.filters, self.hidden
        shapes: list[tuple[str, tuple[int, ...]]] = [
            ("conv1", (f1, self.channels, KERNEL, KERNEL)),
            ("conv2", (f2, f1, KERNEL, KERNEL)),
            ("dense1", (h1, f2 * self.sides[3] ** 2)),
            ("dense2", (h2, h1)),
            ("output", (self.classes, h2)),
        ]
        blocks: list[Block] = []
        for layer, shape in shapes:
            for name, size in ((f"{layer}.weight", shape), (f"{layer}.bias", shape[:1])):
                blocks.append(Block(name, blocks[-1].stop if blocks else 0, size))
        return tuple(blocks)

    @property
    def shape(self) -> Shape:
        return Shape(self.channels, self.side, self.classes, self.filters, self.sides)

    @property
    def _sizes(self) -> convnet_kernels.Sizes:
        return self.channels, self.side, *self.filters, *self.hidden, self.classes

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        if gpu.runs_on_host(weights):
            return convnet_kernels.outputs(self._sizes, weights, x, self.workspace)
        return self.plain_outputs(weights, x)

    def plain_outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        """The same logits by tensor operations, for any device."""
        out = weights.new_empty((len(weights), len(x), self.classes))
        for points, records in self.pieces(len(weights), len(x), weights.element_size()):
            out[points, records] = tensor_outputs(self.shape, self.blocks, weights[points], x[records])
        return out

    @zero_unless_finite
    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        if gpu.runs_on_host(weights):
            return convnet_kernels.gradient_sum(self._sizes, weights, x, y, clip, self.workspace)
        return self.plain_clipped_gradient_sum(weights, x, y, clip)

    def plain_clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        """The same sum by tensor operations, for any device."""
        out = torch.zeros_like(weights, memory_format=torch.contiguous_format)
        for points, records in self.pieces(len(weights), len(x), weights.element_size()):
            piece = weights[points], x[records], y[records], clip[points]
            out[points] += tensor_clipped_sum(self.shape, self.blocks, *piece)
        return out

    def chain_steps(
        self,
        weights: Tensor,
        x: Tensor,
        y: Tensor,
        clip: Tensor,
        stepsize: Tensor,
        scale: Tensor,
        draws: Tensor | None,
        *,
        contracted: bool = False,
    ) -> Tensor | None:
        """As in `Model`, by tensor operations."""
        if contracted:
            raise ValueError("convnet: local steps of this model may expand distances")
        # A chain holds its weights, their copy before a capture, and what a pair of a point and a record does.
        size = max(int(self.workspace / weights.element_size() // (len(x) * (2 * self.size + self.pair_numbers()))), 1)
        parts = [slice(start, start + size) for start in range(0, len(weights), size)]
        rates = [(clip[part], stepsize[part], scale[:, part], draws) for part in parts]
        steps = [
            chain_steps(self.shape, self.blocks, weights[part], x, y, *rate)
            for part, rate in zip(parts, rates, strict=True)
        ]
        return torch.cat(steps, 1)

    def _compiled_steps(self, weights: Tensor, steps: Steps) -> Tensor | None:
        return convnet_kernels.local_steps(self._sizes, weights, steps, self.workspace)

    def pieces(self, points: int, records: int, item: int) -> list[tuple[slice, slice]]:
        """Cuts of points and records, together covering all; `item` is the size of a number in bytes."""
        g, b = self.piece_sizes(points, records, item)
        return [
            (slice(first, first + g), slice(start, start + b))
            for first in range(0, points, g)
            for start in range(0, records, b)
        ]

    def piece_sizes(self, points: int, records: int, item: int) -> tuple[int, int]:
        """(points, records) worked on at once: the most that fit the workspace, at least one of each."""
        pair, record = self.pair_numbers(), self.channels * KERNEL**2 * self.sides[0] ** 2
        budget = self.workspace / item
        some = min(records, RECORDS)
        point = 2 * self.size  # its sums tensor by tensor, and in a row
        g = min(max(int((budget - some * record) // (point + some * pair)), 1), points)
        return g, min(max(int((budget - g * point) // (record + g * pair)), 1), records)

    def pair_numbers(self) -> int:
        """Numbers that tensor operations hold at once for a pair of a point and a record."""
        first, half, second, quarter = self.sides
        (f1, f2), square = self.filters, KERNEL**2
        maps = f1 * first**2, f1 * half**2, f2 * second**2, f2 * quarter**2
        held = 2 * maps[0] + 3 * maps[1] + 2 * maps[2] + 4 * maps[3] + 2 * sum(self.hidden)
        return held + 2 * f1 * square * second**2 + f1 * square * (self.channels + f2)
