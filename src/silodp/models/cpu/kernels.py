"""Compiled CPU kernels of the stack: the two-class perceptron's clipped gradient sums, and one-record local steps.

A point's result depends neither on the other points of the stack nor on the number of threads. Models fall back to
tensor operations where a kernel does not apply.
"""

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from silodp.models.base import Steps
from silodp.models.cpu.compiled import njit
from silodp.models.threads import side_by_side

IDENTITY, LOGISTIC = 0, 1

# Sums may be reordered for vector instructions; NaN and infinity keep their meaning: a result without a number is what
# tells that a record or a point is for tensor operations instead.
FAST = {"reassoc", "contract", "arcp", "nsz"}
# Records worked on at once, so that a block of hidden activations stays in a core's second-level cache.
RECORD_BLOCK = 1024
# Steps whose base noise is held in cache while every point of the stack takes them.
STEP_BLOCK = 64
# Points of an affine model that take a step side by side, so that their chains of dependent operations overlap.
LANES = 128


@njit(inline="always")
def sigmoid(z):
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


@njit(inline="always")
def factor(squared, limit):
    # NaN fails the comparison and stays NaN in the product, as it must to be seen.
    if squared <= limit * limit:
        return squared * 0 + 1
    return limit / math.sqrt(squared)


def perceptron_gradient_sum(hidden: int, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
    """Clipped gradient sums (G, d) of the two-class perceptron; arguments as `Model.clipped_gradient_sum`."""
    out = torch.empty_like(weights)
    arrays = weights.contiguous().numpy(), x.contiguous().numpy(), y.numpy(), clip.numpy(), out.numpy()
    side_by_side(functools.partial(_perceptron_points, hidden, *arrays), len(weights))
    return out


def perceptron_outputs(hidden: int, weights: Tensor, x: Tensor) -> Tensor:
    """Logits (G, B, 2) of the two-class perceptron."""
    out = torch.empty((len(weights), len(x), 2), dtype=weights.dtype)
    arrays = weights.contiguous().numpy(), x.contiguous().numpy(), out.numpy()
    side_by_side(functools.partial(_perceptron_logits, hidden, *arrays), len(weights))
    return out


@njit(cache=True, nogil=True, fastmath=FAST)
def _perceptron_logits(hidden, weights, x, out, start, stop):
    records, features = x.shape
    split = hidden * features
    out_v = split + hidden
    zero = x.dtype.type(0)
    z = np.empty((min(records, RECORD_BLOCK), hidden), dtype=x.dtype)
    for g in range(start, stop):
        w = weights[g, :split].reshape((hidden, features))
        bias = weights[g, split:out_v]
        v = weights[g, out_v : out_v + 2 * hidden].reshape((2, hidden))
        c = weights[g, out_v + 2 * hidden :]
        for begin in range(0, records, len(z)):
            end = min(begin + len(z), records)
            pre = z[: end - begin]
            np.dot(x[begin:end], w.T, pre)
            for k in range(end - begin):
                row = pre[k]
                first, second = c[0], c[1]
                for j in range(hidden):
                    a = row[j] + bias[j]
                    a = zero if a < 0 else a
                    first += v[0, j] * a
                    second += v[1, j] * a
                out[g, begin + k, 0] = first
                out[g, begin + k, 1] = second


@njit(cache=True, nogil=True, fastmath=FAST)
def _perceptron_points(hidden, weights, x, y, clip, out, start, stop):
    records, features = x.shape
    block = min(records, RECORD_BLOCK)
    split = hidden * features
    out_v = split + hidden
    zero, one = x.dtype.type(0), x.dtype.type(1)
    # Hidden units by records: every inner loop runs over records, and nothing is summed across a vector's lanes.
    scratch = np.empty(hidden * block, dtype=x.dtype)
    first_part = np.empty((hidden, features), dtype=x.dtype)
    norms = np.empty(records, dtype=x.dtype)
    for k in range(records):
        total = one
        for f in range(features):
            total += x[k, f] * x[k, f]
        norms[k] = total
    logit = np.empty(block, dtype=x.dtype)
    active = np.empty(block, dtype=x.dtype)
    backward = np.empty(block, dtype=x.dtype)
    for g in range(start, stop):
        w = weights[g, :split].reshape((hidden, features))
        bias = weights[g, split:out_v]
        v = weights[g, out_v : out_v + 2 * hidden].reshape((2, hidden))
        c = weights[g, out_v + 2 * hidden :]
        total_w = out[g, :split].reshape((hidden, features))
        total_b = out[g, split:out_v]
        total_v = out[g, out_v : out_v + 2 * hidden].reshape((2, hidden))
        total_b[:] = 0
        total_v[:] = 0
        total_c = zero
        limit = clip[g]
        for begin in range(0, records, block):
            size = min(records - begin, block)
            part = x[begin : begin + size]
            z = scratch[: hidden * size].reshape((hidden, size))
            np.dot(w, part.T, z)
            for k in range(size):
                logit[k] = c[1] - c[0]
                active[k] = one
                backward[k] = zero
            for j in range(hidden):
                # With two classes δ₂ = s(−1, 1): one number a record, and only the difference of V's rows matters.
                u, shift = v[1, j] - v[0, j], bias[j]
                uu = u * u
                for k in range(size):
                    a = z[j, k] + shift
                    on = a > 0
                    a = a if on else zero
                    z[j, k] = a
                    logit[k] += u * a
                    active[k] += a * a
                    backward[k] += uu if on else zero
            for k in range(size):
                s = sigmoid(logit[k]) - y[begin + k]
                s *= factor(s * s * (backward[k] * norms[begin + k] + 2 * active[k]), limit)
                total_c += s
                logit[k] = s
            for j in range(hidden):
                u = v[1, j] - v[0, j]
                sum_b, sum_v = zero, zero
                for k in range(size):
                    a, s = z[j, k], logit[k]
                    sum_v += s * a
                    delta = s * u if a > 0 else zero
                    sum_b += delta
                    z[j, k] = delta
                total_b[j] += sum_b
                total_v[1, j] += sum_v
            if begin == 0:
                np.dot(z, part, total_w)
            else:
                np.dot(z, part, first_part)
                total_w += first_part
        for j in range(hidden):
            total_v[0, j] = -total_v[1, j]
        out[g, out_v + 2 * hidden] = -total_c
        out[g, out_v + 2 * hidden + 1] = total_c


def perceptron_local_steps(hidden: int, weights: Tensor, steps: Steps) -> Tensor:
    """One-record steps of the two-class perceptron."""
    features = steps.x.shape[1]
    split = hidden * features

    def swap(vectors: Tensor, rows: int) -> Tensor:
        # The kernel runs along hidden units, so the first layer's matrix is turned: (hidden, features) and back.
        given = vectors.numpy()
        turned = np.empty_like(given)

        def transpose_rows(start: int, stop: int) -> None:
            matrices = given[start:stop, :split].reshape(stop - start, rows, -1).swapaxes(1, 2)
            turned[start:stop, :split].reshape(matrices.shape)[:] = matrices
            turned[start:stop, split:] = given[start:stop, split:]

        side_by_side(transpose_rows, len(given))
        return torch.from_numpy(turned)

    base = None if steps.base is None else swap(steps.base, hidden)
    done = _in_blocks(_perceptron_steps, hidden, swap(weights, hidden), steps._replace(base=base), len(weights))
    return swap(done, features)


def affine_local_steps(link: int, weights: Tensor, steps: Steps) -> Tensor:
    """One-record steps of linear (`IDENTITY`) or logistic (`LOGISTIC`) regression."""
    weights = weights.clone(memory_format=torch.contiguous_format)
    return _in_blocks(_affine_steps, (link, steps.curvature), weights, steps, -(-len(weights) // LANES))


def softmax_local_steps(classes: int, weights: Tensor, steps: Steps) -> Tensor:
    """One-record steps of multinomial logistic regression."""
    weights = weights.clone(memory_format=torch.contiguous_format)
    return _in_blocks(_softmax_steps, classes, weights, steps, len(weights))


def _in_blocks(kernel: Any, option: Any, weights: Tensor, steps: Steps, units: int) -> Tensor:
    """Run `kernel` in place over `weights`, a block of steps at a time, its units of work side by side."""
    columns = steps.clip.numpy(), steps.stepsize.numpy(), steps.noise.numpy()
    w, features, labels = weights.numpy(), steps.x.contiguous().numpy(), steps.y.numpy()
    draws = np.empty((0, 0), dtype=w.dtype) if steps.base is None else steps.base.numpy()
    for begin in range(0, len(features), STEP_BLOCK):
        part = slice(begin, begin + STEP_BLOCK)
        arrays = w, features[part], labels[part], *columns, draws[part]
        side_by_side(functools.partial(kernel, option, *arrays), units)
    return weights


@njit(cache=True, nogil=True, fastmath=FAST)
def _perceptron_steps(hidden, weights, x, y, clip, stepsize, noise, base, start, stop):
    records, features = x.shape
    split = hidden * features
    out_v = split + hidden
    last = out_v + 2 * hidden
    zero, one = x.dtype.type(0), x.dtype.type(1)
    pre = np.empty(hidden, dtype=x.dtype)
    acts = np.empty(hidden, dtype=x.dtype)
    deltas = np.empty(hidden, dtype=x.dtype)
    for g in range(start, stop):
        w = weights[g]
        first = w[:split].reshape((features, hidden))
        bias, v0, v1 = w[split:out_v], w[out_v : out_v + hidden], w[out_v + hidden : last]
        eta = stepsize[g]
        level = noise[g] * eta if len(base) else zero
        for j in range(hidden):
            pre[j] = zero
        for f in range(features):
            value, column = x[0, f], first[f]
            for j in range(hidden):
                pre[j] += column[j] * value
        for k in range(records):
            row, following = x[k], x[min(k + 1, records - 1)]
            size = one
            for f in range(features):
                size += row[f] * row[f]
            logit, active, backward = w[last + 1] - w[last], zero, zero
            for j in range(hidden):
                a = pre[j] + bias[j]
                on = a > 0
                a = a if on else zero
                u = v1[j] - v0[j] if on else zero
                logit += u * a
                active += a * a
                backward += u * u
                acts[j] = a
                deltas[j] = u
                pre[j] = zero
            s = sigmoid(logit) - y[k]
            s *= eta * factor(s * s * (backward * size + 2 * (active + 1)), clip[g])
            for j in range(hidden):
                deltas[j] *= s
                acts[j] *= s
            # One pass over the matrix takes the step and multiplies with the record that follows.
            if level > 0:
                z = base[k]
                turned = z[:split].reshape((features, hidden))
                for f in range(features):
                    value, ahead, column, draw = row[f], following[f], first[f], turned[f]
                    for j in range(hidden):
                        new = column[j] - (deltas[j] * value + level * draw[j])
                        column[j] = new
                        pre[j] += new * ahead
                for j in range(hidden):
                    bias[j] -= deltas[j] + level * z[split + j]
                    v0[j] -= level * z[out_v + j] - acts[j]
                    v1[j] -= level * z[out_v + hidden + j] + acts[j]
                w[last] -= level * z[last] - s
                w[last + 1] -= level * z[last + 1] + s
            else:
                for f in range(features):
                    value, ahead, column = row[f], following[f], first[f]
                    for j in range(hidden):
                        new = column[j] - deltas[j] * value
                        column[j] = new
                        pre[j] += new * ahead
                for j in range(hidden):
                    bias[j] -= deltas[j]
                    v0[j] += acts[j]
                    v1[j] -= acts[j]
                w[last] += s
                w[last + 1] -= s


# Sums stay in their order, so that a lane without noise is what it is in a stack without any.
@njit(cache=True, nogil=True, fastmath=FAST - {"reassoc"})
def _affine_steps(option, weights, x, y, clip, stepsize, noise, base, start, stop):
    # Up to LANES points at a time, features by points: a step's sums and its sigmoid are short chains of their own, and
    # many of them side by side keep the core busy. No lane looks at another.
    link, curvature = option
    records, features = x.shape
    zero = x.dtype.type(0)
    w = np.empty((features, LANES), dtype=x.dtype)
    output, limit = np.empty(LANES, dtype=x.dtype), np.empty(LANES, dtype=x.dtype)
    eta, level = np.empty(LANES, dtype=x.dtype), np.empty(LANES, dtype=x.dtype)
    for block in range(start, stop):
        first = block * LANES
        points = min(LANES, len(weights) - first)
        lanes = min(LANES, (points + 15) // 16 * 16)
        noisy = False
        for lane in range(lanes):
            g = first + min(lane, points - 1)
            limit[lane], eta[lane], level[lane] = clip[g], stepsize[g], noise[g] * stepsize[g] if len(base) else zero
            noisy = noisy or level[lane] > 0
            for f in range(features):
                w[f, lane] = weights[g, f]
        for k in range(records):
            row = x[k]
            size = zero
            output[:lanes] = zero
            for f in range(features):
                value, column = row[f], w[f]
                size += value * value
                for lane in range(lanes):
                    output[lane] += column[lane] * value
            if curvature > 0:
                bend = x.dtype.type(curvature) * size
                for lane in range(lanes):
                    residual = (sigmoid(output[lane]) if link == LOGISTIC else output[lane]) - y[k]
                    # Above 2 a step would overshoot its record and expand distances.
                    residual *= 2 / max(bend * eta[lane], 2)
                    output[lane] = residual * eta[lane] * factor(residual * residual * size, limit[lane])
            else:
                for lane in range(lanes):
                    residual = (sigmoid(output[lane]) if link == LOGISTIC else output[lane]) - y[k]
                    output[lane] = residual * eta[lane] * factor(residual * residual * size, limit[lane])
            if noisy:
                for f in range(features):
                    value, draw, column = row[f], base[k, f], w[f]
                    for lane in range(lanes):
                        column[lane] = column[lane] - output[lane] * value - level[lane] * draw
            else:
                for f in range(features):
                    value, column = row[f], w[f]
                    for lane in range(lanes):
                        column[lane] -= output[lane] * value
        for lane in range(points):
            for f in range(features):
                weights[first + lane, f] = w[f, lane]


@njit(cache=True, nogil=True, fastmath=FAST)
def _softmax_steps(classes, weights, x, y, clip, stepsize, noise, base, start, stop):
    records, features = x.shape
    split = classes * features
    zero, one = x.dtype.type(0), x.dtype.type(1)
    pre, deltas = np.empty(classes, dtype=x.dtype), np.empty(classes, dtype=x.dtype)
    for g in range(start, stop):
        matrix, bias = weights[g, :split].reshape((classes, features)), weights[g, split:]
        eta = stepsize[g]
        level = noise[g] * eta if len(base) else zero
        for c in range(classes):
            total, row = zero, matrix[c]
            for f in range(features):
                total += row[f] * x[0, f]
            pre[c] = total
        for k in range(records):
            record, following = x[k], x[min(k + 1, records - 1)]
            size, largest = one, pre[0] + bias[0]
            for f in range(features):
                size += record[f] * record[f]
            for c in range(classes):
                deltas[c] = pre[c] + bias[c]
                largest = max(largest, deltas[c])
            total = zero
            for c in range(classes):
                deltas[c] = math.exp(deltas[c] - largest)
                total += deltas[c]
            squared = zero
            for c in range(classes):
                deltas[c] = deltas[c] / total - (one if c == y[k] else zero)
                squared += deltas[c] * deltas[c]
            share = eta * factor(squared * size, clip[g])
            # One pass over the matrix takes the step and multiplies with the record that follows.
            for c in range(classes):
                step, row, ahead = share * deltas[c], matrix[c], zero
                if level > 0:
                    draw = base[k, c * features : (c + 1) * features]
                    for f in range(features):
                        new = row[f] - (step * record[f] + level * draw[f])
                        row[f] = new
                        ahead += new * following[f]
                    bias[c] -= step + level * base[k, split + c]
                else:
                    for f in range(features):
                        new = row[f] - step * record[f]
                        row[f] = new
                        ahead += new * following[f]
                    bias[c] -= step
                pre[c] = ahead
