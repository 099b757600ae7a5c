"""The convolutional network of the non-convex paper's CIFAR-10 figures, over a stack of points."""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from silodp.models.base import (
    Block,
    Network,
    Steps,
    clip_factors,
    softmax_residual,
    square_sums,
    zero_unless_finite,
)
from silodp.models.cpu import convnet_kernels
from silodp.models.cpu.convnet_maps import KERNEL, POOL, sides

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
    def _sizes(self) -> convnet_kernels.Sizes:
        return self.channels, self.side, *self.filters, *self.hidden, self.classes

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        if weights.device.type == "cpu":
            return convnet_kernels.outputs(self._sizes, weights, x, self.workspace)
        return self.plain_outputs(weights, x)

    def plain_outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        """The same logits by tensor operations, for any device."""
        out = weights.new_empty((len(weights), len(x), self.classes))
        for points, records in self._pieces(len(weights), len(x), weights.element_size()):
            with _exact():
                out[points, records] = _Pass(self, weights[points], x[records]).logits
        return out

    @zero_unless_finite
    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        if weights.device.type == "cpu":
            return convnet_kernels.gradient_sum(self._sizes, weights, x, y, clip, self.workspace)
        return self._plain_sum(weights, x, y, clip)

    @zero_unless_finite
    def plain_clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        """The same sum by tensor operations, for any device."""
        return self._plain_sum(weights, x, y, clip)

    def _plain_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        out = torch.zeros_like(weights, memory_format=torch.contiguous_format)
        for points, records in self._pieces(len(weights), len(x), weights.element_size()):
            with _exact():
                _Pass(self, weights[points], x[records]).add_gradients(y[records], clip[points], out[points])
        return out

    def _compiled_steps(self, weights: Tensor, steps: Steps) -> Tensor | None:
        return convnet_kernels.local_steps(self._sizes, weights, steps, self.workspace)

    def _pieces(self, points: int, records: int, item: int) -> list[tuple[slice, slice]]:
        """Cuts of points and records, together covering all; `item` is the size of a number in bytes."""
        g, b = self.piece_sizes(points, records, item)
        return [
            (slice(first, first + g), slice(start, start + b))
            for first in range(0, points, g)
            for start in range(0, records, b)
        ]

    def piece_sizes(self, points: int, records: int, item: int) -> tuple[int, int]:
        """(points, records) worked on at once: the most that fit the workspace, at least one of each."""
        pair, record = self._footprint()
        budget = self.workspace / item
        some = min(records, RECORDS)
        # A point takes its gathered convolution weights and the gradients of one tensor at a time.
        point = 2 * max(block.stop - block.start for block in self.blocks)
        g = min(max(int((budget - some * record) // (point + some * pair)), 1), points)
        return g, min(max(int((budget - g * point) // (record + g * pair)), 1), records)

    def _footprint(self) -> tuple[int, int]:
        """Numbers held at once for a pair of a point and a record, and for a record whatever the points."""
        first, half, second, quarter = self.sides
        (f1, f2), square = self.filters, KERNEL**2
        maps = f1 * first**2, f1 * half**2, f2 * second**2, f2 * quarter**2
        patches = f1 * square * second**2
        # Index of a maximum: an int64, two numbers in float32. A step of the backward pass holds patches and a copy.
        held = maps[0] + 3 * maps[1] + 2 * maps[2] + 4 * maps[3] + 2 * sum(self.hidden)
        gradients = f1 * square * (self.channels + f2)
        return held + 2 * patches + maps[0] + gradients, self.channels * square * first**2


def _exact() -> AbstractContextManager:
    """cuDNN without TF32, which would leave convolutions three digits, and without sums in an order of the moment."""
    return torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)


class _Pass:
    """Forward and backward pass of g points over b records: (b, g·filters, …) for images, (g, b, …) after."""

    def __init__(self, net: ConvNet, weights: Tensor, x: Tensor):
        self.net, self.g, self.b = net, len(weights), len(x)
        self.x = x.reshape(self.b, net.channels, net.side, net.side)
        self.w = net.unpacked(weights)
        w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = self.w
        z1 = functional.conv2d(self.x, w1.flatten(0, 1), b1.flatten())
        self.a1, self.i1 = functional.max_pool2d(z1, POOL, return_indices=True)
        del z1
        self.a1.relu_()
        z2 = functional.conv2d(self.a1, w2.flatten(0, 1), b2.flatten(), groups=self.g)
        a2, self.i2 = functional.max_pool2d(z2, POOL, return_indices=True)
        del z2
        self.a2 = a2.relu_().reshape(self.b, self.g, -1).transpose(0, 1).contiguous()
        self.a3 = torch.baddbmm(b3[:, None], self.a2, w3.mT).relu_()
        self.a4 = torch.baddbmm(b4[:, None], self.a3, w4.mT).relu_()
        self.logits = torch.baddbmm(b5[:, None], self.a4, w5.mT)

    def add_gradients(self, y: Tensor, clip: Tensor, out: Tensor) -> None:
        """Add the clipped gradients of the records, summed, to `out` (g, d)."""
        net, g, b = self.net, self.g, self.b
        (f1, f2), (first, _, second, quarter) = net.filters, net.sides
        _, _, w2, _, w3, _, w4, _, w5, _ = self.w
        d5 = softmax_residual(self.logits, y)
        d4 = torch.bmm(d5, w5) * (self.a4 > 0)
        d3 = torch.bmm(d4, w4) * (self.a3 > 0)
        d2 = (torch.bmm(d3, w3) * (self.a2 > 0)).transpose(0, 1).reshape(b, g * f2, quarter, quarter)
        d2 = functional.max_unpool2d(d2, self.i2, [POOL, POOL], output_size=[second, second])
        patches = functional.unfold(self.a1.reshape(b * g, f1, *self.a1.shape[2:]), KERNEL)
        g2 = torch.bmm(d2.reshape(b * g, f2, -1), patches.mT).reshape(b, g, -1)
        del patches
        d1 = functional.conv_transpose2d(d2, w2.flatten(0, 1), groups=g) * (self.a1 > 0)
        d1 = functional.max_unpool2d(d1, self.i1, [POOL, POOL], output_size=[first, first])
        g1 = torch.bmm(d1.flatten(2), functional.unfold(self.x, KERNEL).mT).reshape(b, g, -1)
        # Per-record gradients of both convolutions, (b, g, …), biases included.
        built = [g1, d1.sum((2, 3)).reshape(b, g, -1), g2, d2.sum((2, 3)).reshape(b, g, -1)]
        del d1, d2
        dense = [(d3, self.a2), (d4, self.a3), (d5, self.a4)]
        squared = torch.stack([part.square().sum(2) for part in built]).sum(0)
        squared += torch.stack([square_sums(d, 2) * (a.square().sum(2) + 1) for d, a in dense]).sum(0).T
        factors = clip_factors(squared, clip)
        # One product a point: its records' factors with their gradients.
        sums = [torch.bmm(factors.T[:, None], part.transpose(0, 1))[:, 0] for part in built]
        for d, a in dense:
            scaled = d * factors.T[..., None]
            sums += [torch.bmm(scaled.mT, a).flatten(1), scaled.sum(1)]
        for block, part in zip(net.blocks, sums, strict=True):
            out[:, block.start : block.stop] += part
