"""The convolutional network by a few large products: clipped sums and local steps of all chains, for a device.

Patches are strided views, maxima are comparisons that keep their place as a byte, and the adjoint of the patches is 25
shifted sums. Products over records share the first layer's patches between points; a chain, a silo at a point, has
weights of its own. On CUDA the sums are compiled, and a local step is captured once as a graph.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from silodp.models.base import Block, clip_factors, square_sums
from silodp.models.cpu.convnet_maps import KERNEL

_WINDOW = KERNEL**2


class Shape(NamedTuple):
    """Sizes of a network in plain numbers, which PyTorch's compiler can follow."""

    channels: int
    side: int
    classes: int
    filters: tuple[int, int]
    sides: tuple[int, int, int, int]


class _Layers(NamedTuple):
    """Activations of g·b pairs, or of chains: leading axes (g, b), with b = 1 for chains of weights of their own."""

    first: Tensor  # (…, f1, half, half), after ReLU
    first_place: Tensor
    patches: Tensor  # (g, b, f1·25, second²)
    second: Tensor  # (g, b, f2·quarter²), after ReLU
    second_place: Tensor
    third: Tensor
    fourth: Tensor
    logits: Tensor


def take_maxima(values: Tensor) -> tuple[Tensor, Tensor]:
    """Maxima (…, s//2, s//2) of 2×2 windows of (…, s, s), and the place 0 … 3 of each, the first of equal ones."""
    side = values.shape[-1] // 2 * 2
    corners = [values[..., row:side:2, column:side:2] for row in (0, 1) for column in (0, 1)]
    largest = functools.reduce(torch.maximum, corners)
    place = torch.full_like(largest, 3, dtype=torch.uint8)
    for number in (2, 1, 0):
        place = torch.where(corners[number] == largest, number, place)
    return largest, place


def spread_maxima(gradients: Tensor, place: Tensor, side: int) -> Tensor:
    """The adjoint of `take_maxima`: gradients (…, p, p) at their places in (…, side, side), 0 elsewhere."""

    def rows(*places: int) -> Tensor:
        return torch.stack([torch.where(place == number, gradients, 0) for number in places], -1).flatten(-2)

    spread, left = torch.stack([rows(0, 1), rows(2, 3)], -2).flatten(-3, -2), side - 2 * gradients.shape[-1]
    return functional.pad(spread, (0, left, 0, left)) if left else spread


def take_patches(images: Tensor) -> Tensor:
    """(n, c, s, s) → (n, c·25, (s−4)²), one copy of strided views."""
    n, channels, side, _ = images.shape
    views = images.unfold(2, KERNEL, 1).unfold(3, KERNEL, 1).permute(0, 1, 4, 5, 2, 3)
    return views.reshape(n, channels * _WINDOW, (side - KERNEL + 1) ** 2)


def add_patches(patches: Tensor, channels: int, side: int) -> Tensor:
    """The adjoint of `take_patches`, (n, channels, side, side)."""
    reach, out = KERNEL - 1, side - KERNEL + 1
    parts = patches.reshape(-1, channels, KERNEL, KERNEL, out, out)
    shifted = (
        functional.pad(parts[:, :, u, v], (v, reach - v, u, reach - u)) for u in range(KERNEL) for v in range(KERNEL)
    )
    return functools.reduce(torch.add, shifted)


def _forward(shape: Shape, tensors: list[Tensor], first_maps: Tensor, g: int, b: int) -> _Layers:
    """From the first convolution's output (g, b, f1, first, first)."""
    _, _, w2, b2, w3, b3, w4, b4, w5, b5 = tensors
    (f1, f2), (_, half, second, _) = shape.filters, shape.sides
    first, first_place = take_maxima(first_maps)
    first = first.relu()
    patches = take_patches(first.reshape(g * b, f1, half, half)).reshape(g, b, f1 * _WINDOW, second**2)
    maps = torch.matmul(w2.flatten(2)[:, None], patches) + b2[:, None, :, None]
    maxima, second_place = take_maxima(maps.reshape(g, b, f2, second, second))
    a2 = maxima.relu().flatten(2)
    a3 = torch.baddbmm(b3[:, None], a2, w3.mT).relu()
    a4 = torch.baddbmm(b4[:, None], a3, w4.mT).relu()
    return _Layers(first, first_place, patches, a2, second_place, a3, a4, torch.baddbmm(b5[:, None], a4, w5.mT))


def _backward(shape: Shape, tensors: list[Tensor], layers: _Layers, hot: Tensor) -> tuple[Tensor, Tensor, list]:
    """Gradients by the maps of the first convolution (g, b, f1, first²), of the second (g, b, f2, second²), and (δ, a)
    of the dense layers; `hot` (g or 1, b, classes) is 1 at a record's class."""
    _, _, w2, _, w3, _, w4, _, w5, _ = tensors
    (f1, f2), (first, half, second, quarter) = shape.filters, shape.sides
    g, b, _ = layers.logits.shape
    d5 = torch.softmax(layers.logits, 2) - hot
    d4 = torch.bmm(d5, w5) * (layers.fourth > 0)
    d3 = torch.bmm(d4, w4) * (layers.third > 0)
    inner = (torch.bmm(d3, w3) * (layers.second > 0)).reshape(g, b, f2, quarter, quarter)
    d2 = spread_maxima(inner, layers.second_place, second).flatten(3)
    # No name holds the gradients by patches, the largest tensor here, beyond their sum.
    d1 = add_patches(torch.matmul(w2.flatten(2).mT[:, None], d2).reshape(g * b, -1, second**2), f1, half)
    d1 = d1.reshape(layers.first.shape)
    d1 = spread_maxima(d1 * (layers.first > 0), layers.first_place, first).flatten(3)
    return d1, d2, [(d3, layers.second), (d4, layers.third), (d5, layers.fourth)]


def _sound_factors(built: list[Tensor], dense: list[tuple[Tensor, Tensor]], clip: Tensor) -> tuple[Tensor, Tensor]:
    """Clip factors (g, b), and whether a pair's squared norm is finite; `built` are gradients (g, b, …)."""
    squared = torch.stack([part.square().flatten(2).sum(2) for part in built]).sum(0)
    squared = squared + torch.stack([square_sums(d, 2) * (a.square().sum(2) + 1) for d, a in dense]).sum(0)
    sound = torch.isfinite(squared)
    return torch.where(sound, clip_factors(squared, clip[:, None]), 0), sound


def unpack(blocks: Sequence[Block], weights: Tensor) -> list[Tensor]:
    """The tensors that lie one after another in the rows of `weights`, (g, d)."""
    return [weights[:, block.start : block.stop].reshape(-1, *block.shape) for block in blocks]


def tensor_outputs(shape: Shape, blocks: Sequence[Block], weights: Tensor, x: Tensor) -> Tensor:
    """Logits (g, b, classes) of a piece."""
    return _first_pass(shape, unpack(blocks, weights), x)[0].logits


def _first_pass(shape: Shape, tensors: list[Tensor], x: Tensor) -> tuple[_Layers, Tensor]:
    g, b, first = len(tensors[0]), len(x), shape.sides[0]
    patches = take_patches(x.reshape(b, shape.channels, shape.side, shape.side))
    # One product for each record, with the weights of all points: the patches are shared.
    maps = torch.matmul(tensors[0].flatten(2).flatten(0, 1), patches) + tensors[1].reshape(-1, 1)
    maps = maps.reshape(b, g, shape.filters[0], first, first).transpose(0, 1)
    return _forward(shape, tensors, maps, g, b), patches


def piece_sum(shape: Shape, tensors: list[Tensor], x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
    """Clipped gradient sums (g, d) of a piece; `tensors` are those of its g points."""
    g, b = len(clip), len(x)
    layers, patches = _first_pass(shape, tensors, x)
    hot = functional.one_hot(y, shape.classes).to(clip.dtype)[None]
    d1, d2, dense = _backward(shape, tensors, layers, hot)
    by_record = d1.transpose(0, 1).reshape(b, g * shape.filters[0], -1)
    g1 = torch.bmm(by_record, patches.mT).reshape(b, g, -1).transpose(0, 1)
    g2 = torch.matmul(d2, layers.patches.mT).flatten(2)
    # Per-record gradients of both convolutions, (g, b, …), biases included.
    built = [g1, d1.sum(3), g2, d2.sum(3)]
    factors, sound = _sound_factors(built, dense, clip)
    kept = sound[..., None]
    sums = [torch.bmm(factors[:, None], torch.where(kept, part, 0)).squeeze(1) for part in built]
    for d, a in dense:
        scaled = torch.where(kept, d * factors[..., None], 0)
        sums += [torch.bmm(scaled.mT, torch.where(kept, a, 0)).flatten(1), scaled.sum(1)]
    return torch.cat(sums, 1)


@functools.cache
def _compiled_piece_sum() -> Callable[..., Tensor]:
    # A grid has more shapes of pieces than PyTorch compiles by default; the rest would run slowly, and round otherwise.
    torch._dynamo.config.recompile_limit = 64
    return torch.compile(piece_sum, dynamic=False)


def tensor_clipped_sum(
    shape: Shape, blocks: Sequence[Block], weights: Tensor, x: Tensor, y: Tensor, clip: Tensor
) -> Tensor:
    """Clipped gradient sums (g, d) of a piece, compiled on CUDA."""
    form = _compiled_piece_sum() if weights.device.type == "cuda" else piece_sum
    return form(shape, unpack(blocks, weights), x, y, clip)


def add_step(
    shape: Shape,
    blocks: Sequence[Block],
    weights: Tensor,
    patches: Tensor,
    hot: Tensor,
    clip: Tensor,
    stepsize: Tensor,
) -> None:
    """One clipped gradient step of all chains in place: `weights` (S·G, d), a record a silo.

    `patches` (S, c·25, first²) are the records', `hot` (S·G, 1, classes) is 1 at their classes; clip and η (S·G,).
    """
    tensors = unpack(blocks, weights)
    chains, silos = len(weights), len(patches)
    f1, first = shape.filters[0], shape.sides[0]
    maps = torch.bmm(tensors[0].flatten(2).reshape(silos, -1, patches.shape[1]), patches)
    maps = maps.reshape(chains, 1, f1, first**2) + tensors[1][:, None, :, None]
    layers = _forward(shape, tensors, maps.reshape(chains, 1, f1, first, first), chains, 1)
    d1, d2, dense = _backward(shape, tensors, layers, hot)
    g1 = torch.bmm(d1.reshape(silos, -1, first**2), patches.mT).reshape(chains, 1, -1)
    g2 = torch.matmul(d2, layers.patches.mT).flatten(2)
    built = [g1, d1.sum(3), g2, d2.sum(3)]
    factors, sound = _sound_factors(built, dense, clip)
    steps, kept, at = factors * stepsize[:, None], sound[..., None], 0
    for part in built:
        step = torch.where(kept, part * steps[..., None], 0).squeeze(1)
        weights[:, at : at + step.shape[1]] -= step
        at += step.shape[1]
    for d, a in dense:
        step, inputs = torch.where(kept, d * steps[..., None], 0), torch.where(kept, a, 0)
        size = step.shape[2] * inputs.shape[2]
        weights[:, at : at + size].view(chains, step.shape[2], -1).baddbmm_(step.mT, inputs, alpha=-1)
        weights[:, at + size : at + size + step.shape[2]] -= step.squeeze(1)
        at += size + step.shape[2]


class _Step:
    """A step of all chains from buffers that each record is copied into; on CUDA captured once, then replayed."""

    def __init__(
        self, shape: Shape, blocks: Sequence[Block], weights: Tensor, clip: Tensor, stepsize: Tensor, scale: Tensor
    ):
        """`weights` (S, G, d) are changed in place; clip and η are (G,), `scale` (S, G)."""
        self.shape, self.blocks, self.weights, silos = shape, blocks, weights, len(weights)
        self.patches = weights.new_zeros((silos, shape.channels * _WINDOW, shape.sides[0] ** 2))
        self.hot = weights.new_zeros((silos, 1, 1, shape.classes))
        self.noise = weights.new_zeros((silos, 1, weights.shape[2]))
        self.clip, self.stepsize = clip.repeat(silos), stepsize.repeat(silos)
        self.moves = (scale * stepsize)[..., None]
        self.graph: torch.cuda.CUDAGraph | None = None
        if weights.device.type == "cuda":
            self._capture()

    def run(self) -> None:
        hot = self.hot.expand(-1, self.weights.shape[1], -1, -1).reshape(-1, 1, self.shape.classes)
        flat = self.weights.view(-1, self.weights.shape[2])
        add_step(self.shape, self.blocks, flat, self.patches, hot, self.clip, self.stepsize)
        self.weights.addcmul_(self.moves, self.noise, value=-1)

    def _capture(self) -> None:
        before, side = self.weights.clone(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.run()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.run()
        self.weights.copy_(before)

    def take(self, x: Tensor, y: Tensor, noise: Tensor | None) -> None:
        """Step on a record of each silo: x (S, features), y (S,), draws (S, d)."""
        images = x.reshape(len(x), self.shape.channels, self.shape.side, self.shape.side)
        self.patches.copy_(take_patches(images))
        self.hot.copy_(functional.one_hot(y, self.shape.classes)[:, None, None])
        if noise is not None:
            self.noise.copy_(noise[:, None])
        self.graph.replay() if self.graph is not None else self.run()


def chain_steps(
    shape: Shape,
    blocks: Sequence[Block],
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    clip: Tensor,
    stepsize: Tensor,
    scale: Tensor,
    draws: Tensor | None,
) -> Tensor:
    """Models (S, G, d) after K steps from `weights` (G, d): x (S, K, …), y (S, K), scale (S, G), draws (S, K, d)."""
    chains = weights.expand(len(x), -1, -1).clone()
    step = _Step(shape, blocks, chains, clip, stepsize, scale)
    for k in range(x.shape[1]):
        step.take(x[:, k], y[:, k], None if draws is None else draws[:, k])
    return chains
