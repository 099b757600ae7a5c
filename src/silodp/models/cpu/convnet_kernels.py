"""Compiled CPU kernels of the convolutional network: outputs, clipped gradient sums and one-record local steps.

Each point of the stack is worked on by itself, so its bits depend neither on the other points nor on the threads. A
record's patches are gathered once for all points.
"""

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from silodp.models.base import Steps
from silodp.models.cpu.compiled import njit
from silodp.models.cpu.convnet_maps import (
    KERNEL,
    add,
    add_turned,
    back,
    dense,
    map_gradients,
    maps,
    patches_of,
    places,
    product_of_squares,
    residuals,
    sides,
    transpose_filters,
)
from silodp.models.cpu.kernels import FAST, factor
from silodp.models.threads import side_by_side

# Records that go through the dense layers together; their patches and activations stay in the last cache.
RECORD_BLOCK = 32
# Points whose maps are made from a record's patches while these stay in a core's own cache.
POINTS = 8
# Local steps whose patches and noise are held while every point of the stack takes them.
STEP_BLOCK = 16

# channels, side, filters of both convolutions, units of both hidden layers, classes
Sizes = tuple[int, int, int, int, int, int, int]


def outputs(sizes: Sizes, weights: Tensor, x: Tensor, workspace: int) -> Tensor:
    """Logits (G, B, classes) of weights (G, d) for records x (B, features); `workspace` is in bytes a thread."""
    out = torch.empty((len(weights), len(x), sizes[-1]), dtype=weights.dtype)
    _run(_logits, sizes, weights, x, (out.numpy(),), workspace)
    return out


def gradient_sum(sizes: Sizes, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor, workspace: int) -> Tensor:
    """Clipped gradient sums (G, d); arguments as `Model.clipped_gradient_sum`.

    A record whose gradient is not a number leaves one in the sum of its point.
    """
    out = torch.zeros(weights.shape, dtype=weights.dtype)
    _run(_gradient_sums, sizes, weights, x, (y.numpy(), clip.numpy(), out.numpy()), workspace)
    return out


def local_steps(sizes: Sizes, weights: Tensor, steps: Steps, workspace: int) -> Tensor:
    """One-record steps, (G, d). A step that is not a number leaves none in its point."""
    weights = weights.clone(memory_format=torch.contiguous_format)
    columns = steps.clip.numpy(), steps.stepsize.numpy(), steps.noise.numpy()
    draws = np.empty((0, 0), dtype=weights.numpy().dtype) if steps.base is None else steps.base.numpy()
    for begin in range(0, len(steps.x), STEP_BLOCK):
        part = slice(begin, begin + STEP_BLOCK)
        _run(_steps, sizes, weights, steps.x[part], (steps.y[part].numpy(), *columns, draws[part]), workspace)
    return weights


def block_of(sizes: Sizes, records: int, item: int, workspace: int) -> int:
    """Records whose patches are held at once in `workspace` bytes; `item` is the size of a number. At least one."""
    channels, side, f1, f2, h1, h2, _ = sizes
    first, half, second, last = sides(side)
    inner = f2 * last**2
    record = channels * KERNEL**2 * first**2 + POINTS * (2 * f1 * half**2 + 3 * inner + 2 * (h1 + h2))
    fixed = POINTS * 4 * f1 * KERNEL**2 * f2 + inner * h1 + 3 * f1 * KERNEL**2 * second**2
    return int(min(max((workspace / item - fixed) // record, 1), records, RECORD_BLOCK))


def _run(kernel: Any, sizes: Sizes, weights: Tensor, x: Tensor, rest: tuple[Any, ...], workspace: int) -> None:
    features = x.reshape(len(x), -1).contiguous().numpy()
    block = block_of(sizes, len(x), features.itemsize, workspace)
    side_by_side(functools.partial(kernel, sizes, block, weights.contiguous().numpy(), features, *rest), len(weights))


@njit(cache=True, nogil=True, fastmath=FAST)
def _logits(sizes, block, weights, x, out, start, stop):
    channels, side, f1, f2, h1, h2, _ = sizes
    first, half, second, last = sides(side)
    cells = last**2
    kind, at = x.dtype, places(sizes)
    patches = np.empty((channels * KERNEL**2, first**2), dtype=kind)
    rows = np.empty((f2, f1 * KERNEL**2), dtype=kind)
    filters2 = np.empty((POINTS, f1 * KERNEL**2, f2), dtype=kind)
    z1, z2 = np.empty((f1, first**2), dtype=kind), np.empty((second**2, f2), dtype=kind)
    columns = np.empty((second**2, f1 * KERNEL**2), dtype=kind)
    a1, at1 = np.empty((half**2, f1), dtype=kind), np.empty((f1, half**2), dtype=np.int32)
    a2, at2 = np.empty((POINTS, block, f2 * cells), dtype=kind), np.empty((cells, f2), dtype=np.int32)
    a3, a4 = np.empty((block, h1), dtype=kind), np.empty((block, h2), dtype=kind)
    for some in range(start, stop, POINTS):
        points = min(POINTS, stop - some)
        for g in range(points):
            transpose_filters(weights[some + g, at[2] : at[3]], f1, f2, rows, filters2[g])
        for begin in range(0, len(x), block):
            size = min(block, len(x) - begin)
            for k in range(size):
                patches_of(x[begin + k], channels, side, patches)
                for g in range(points):
                    w, a = weights[some + g], a2[g, k]
                    seen = maps(sizes, w, at, filters2[g], patches, z1, columns, z2, a1, at1, a, at2)
                    a[0] += seen
            for g in range(points):
                w = weights[some + g]
                dense(a2[g, :size], w[at[4] : at[5]], w[at[5] : at[6]], a3[:size], True)
                dense(a3[:size], w[at[6] : at[7]], w[at[7] : at[8]], a4[:size], True)
                dense(a4[:size], w[at[8] : at[9]], w[at[9] : at[10]], out[some + g, begin : begin + size], False)


@njit(cache=True, nogil=True, fastmath=FAST)
def _gradient_sums(sizes, block, weights, x, y, clip, out, start, stop):
    channels, side, f1, f2, h1, h2, classes = sizes
    first, half, second, last = sides(side)
    cells = last**2
    kind, at = x.dtype, places(sizes)
    patches = np.empty((block, channels * KERNEL**2, first**2), dtype=kind)
    rows = np.empty((POINTS, f2, f1 * KERNEL**2), dtype=kind)
    filters2 = np.empty((POINTS, f1 * KERNEL**2, f2), dtype=kind)
    z1, z2 = np.empty((f1, first**2), dtype=kind), np.empty((second**2, f2), dtype=kind)
    columns = np.empty((second**2, f1 * KERNEL**2), dtype=kind)
    moved = np.empty_like(columns)
    a1 = np.empty((POINTS, block, half**2, f1), dtype=kind)
    at1 = np.empty((POINTS, block, f1, half**2), dtype=np.int32)
    a2 = np.empty((POINTS, block, f2 * cells), dtype=kind)
    at2 = np.empty((POINTS, block, cells, f2), dtype=np.int32)
    a3, a4 = np.empty((POINTS, block, h1), dtype=kind), np.empty((POINTS, block, h2), dtype=kind)
    d5 = np.empty((POINTS, block, classes), dtype=kind)
    d2, d3, d4 = np.empty_like(a2), np.empty_like(a3), np.empty_like(a4)
    d1, spread1, spread2 = np.empty((half**2, f1), dtype=kind), np.empty_like(z1), np.empty_like(z2)
    g1, g2 = np.empty((channels * KERNEL**2, f1), dtype=kind), np.empty((f1 * KERNEL**2, f2), dtype=kind)
    b1, b2 = np.empty(f1, dtype=kind), np.empty(f2, dtype=kind)
    scratch, gradients = (columns, spread2, moved, d1, spread1), (g1, b1, g2, b2)
    sum1, sum2 = np.empty((POINTS, channels * KERNEL**2, f1), dtype=kind), np.empty_like(filters2)
    layers = np.empty((h1, f2 * cells), dtype=kind), np.empty((h2, h1), dtype=kind), np.empty((classes, h2), dtype=kind)
    for begin in range(0, len(x), block):
        size = min(block, len(x) - begin)
        for k in range(size):
            patches_of(x[begin + k], channels, side, patches[k])
        for some in range(start, stop, POINTS):
            points = min(POINTS, stop - some)
            for g in range(points):
                transpose_filters(weights[some + g, at[2] : at[3]], f1, f2, rows[g], filters2[g])
            for k in range(size):
                for g in range(points):
                    w, a = weights[some + g], a2[g, k]
                    seen = maps(
                        sizes, w, at, filters2[g], patches[k], z1, columns, z2, a1[g, k], at1[g, k], a, at2[g, k]
                    )
                    a[0] += seen
            for g in range(points):
                w = weights[some + g]
                dense(a2[g, :size], w[at[4] : at[5]], w[at[5] : at[6]], a3[g, :size], True)
                dense(a3[g, :size], w[at[6] : at[7]], w[at[7] : at[8]], a4[g, :size], True)
                dense(a4[g, :size], w[at[8] : at[9]], w[at[9] : at[10]], d5[g, :size], False)
                residuals(d5[g, :size], y[begin : begin + size])
                back(d5[g, :size], w[at[8] : at[9]], a4[g, :size], d4[g, :size])
                back(d4[g, :size], w[at[6] : at[7]], a3[g, :size], d3[g, :size])
                back(d3[g, :size], w[at[4] : at[5]], a2[g, :size], d2[g, :size])
            sum1[:] = 0
            sum2[:] = 0
            for k in range(size):
                for g in range(points):
                    total = out[some + g]
                    squared = map_gradients(
                        sizes, rows[g], patches[k], d2[g, k], at2[g, k], a1[g, k], at1[g, k], scratch, gradients
                    )
                    for delta, a in ((d3[g, k], a2[g, k]), (d4[g, k], a3[g, k]), (d5[g, k], a4[g, k])):
                        squared += product_of_squares(delta, a)
                    part = factor(squared, clip[some + g])
                    d3[g, k] *= part
                    d4[g, k] *= part
                    d5[g, k] *= part
                    add(part, g1.reshape(-1), sum1[g].reshape(-1))
                    add(part, g2.reshape(-1), sum2[g].reshape(-1))
                    add(part, b1, total[at[1] : at[2]])
                    add(part, b2, total[at[3] : at[4]])
            for g in range(points):
                total = out[some + g]
                add_turned(kind.type(1), sum1[g], sum2[g], f1, f2, total[at[0] : at[1]], total[at[2] : at[3]])
                for number, (delta, a) in enumerate(((d3[g], a2[g]), (d4[g], a3[g]), (d5[g], a4[g]))):
                    np.dot(delta[:size].T, a[:size], layers[number])
                    add(kind.type(1), layers[number].reshape(-1), total[at[4 + 2 * number] : at[5 + 2 * number]])
                    for k in range(size):
                        add(kind.type(1), delta[k], total[at[5 + 2 * number] : at[6 + 2 * number]])


@njit(cache=True, nogil=True, fastmath=FAST)
def _steps(sizes, block, weights, x, y, clip, stepsize, noise, base, start, stop):
    channels, side, f1, f2, h1, h2, classes = sizes
    first, half, second, last = sides(side)
    cells = last**2
    kind, at = x.dtype, places(sizes)
    patches = np.empty((block, channels * KERNEL**2, first**2), dtype=kind)
    rows, filters2 = np.empty((f2, f1 * KERNEL**2), dtype=kind), np.empty((f1 * KERNEL**2, f2), dtype=kind)
    z1, z2 = np.empty((f1, first**2), dtype=kind), np.empty((second**2, f2), dtype=kind)
    columns = np.empty((second**2, f1 * KERNEL**2), dtype=kind)
    moved = np.empty_like(columns)
    a1, at1 = np.empty((half**2, f1), dtype=kind), np.empty((f1, half**2), dtype=np.int32)
    a2, at2 = np.empty((1, f2 * cells), dtype=kind), np.empty((cells, f2), dtype=np.int32)
    a3, a4, d5 = np.empty((1, h1), dtype=kind), np.empty((1, h2), dtype=kind), np.empty((1, classes), dtype=kind)
    d2, d3, d4 = np.empty_like(a2), np.empty_like(a3), np.empty_like(a4)
    d1, spread1, spread2 = np.empty_like(a1), np.empty_like(z1), np.empty_like(z2)
    g1, g2 = np.empty((channels * KERNEL**2, f1), dtype=kind), np.empty((f1 * KERNEL**2, f2), dtype=kind)
    b1, b2 = np.empty(f1, dtype=kind), np.empty(f2, dtype=kind)
    scratch, gradients = (columns, spread2, moved, d1, spread1), (g1, b1, g2, b2)
    for begin in range(0, len(x), block):
        size = min(block, len(x) - begin)
        for k in range(size):
            patches_of(x[begin + k], channels, side, patches[k])
        for g in range(start, stop):
            w, eta = weights[g], stepsize[g]
            level = noise[g] * eta if len(base) else eta * 0
            for k in range(size):
                transpose_filters(w[at[2] : at[3]], f1, f2, rows, filters2)
                seen = maps(sizes, w, at, filters2, patches[k], z1, columns, z2, a1, at1, a2[0], at2)
                a2[0, 0] += seen
                dense(a2, w[at[4] : at[5]], w[at[5] : at[6]], a3, True)
                dense(a3, w[at[6] : at[7]], w[at[7] : at[8]], a4, True)
                dense(a4, w[at[8] : at[9]], w[at[9] : at[10]], d5, False)
                residuals(d5, y[begin + k : begin + k + 1])
                back(d5, w[at[8] : at[9]], a4, d4)
                back(d4, w[at[6] : at[7]], a3, d3)
                back(d3, w[at[4] : at[5]], a2, d2)
                squared = map_gradients(sizes, rows, patches[k], d2[0], at2, a1, at1, scratch, gradients)
                squared += product_of_squares(d3[0], a2[0]) + product_of_squares(d4[0], a3[0])
                part = -eta * factor(squared + product_of_squares(d5[0], a4[0]), clip[g])
                add_turned(part, g1, g2, f1, f2, w[at[0] : at[1]], w[at[2] : at[3]])
                add(part, b1, w[at[1] : at[2]])
                add(part, b2, w[at[3] : at[4]])
                if level > 0:
                    add(-level, base[begin + k, : at[4]], w[: at[4]])
                for number, (delta, a) in enumerate(((d3[0], a2[0]), (d4[0], a3[0]), (d5[0], a4[0]))):
                    here, after, end = at[4 + 2 * number], at[5 + 2 * number], at[6 + 2 * number]
                    add(part, delta, w[after:end])
                    if level > 0:
                        add(-level, base[begin + k, after:end], w[after:end])
                    for j in range(len(delta)):
                        row = w[here + j * len(a) : here + (j + 1) * len(a)]
                        if level > 0:
                            # One pass over the matrix for gradient and noise.
                            draw, scaled = base[begin + k, here + j * len(a) : here + (j + 1) * len(a)], part * delta[j]
                            for i in range(len(a)):
                                row[i] += scaled * a[i] - level * draw[i]
                        else:
                            add(part * delta[j], a, row)
