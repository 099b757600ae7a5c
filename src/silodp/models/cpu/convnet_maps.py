"""Compiled pieces of the convolutional network: one record at one point through the convolutions and back.

Layouts are those that matrix products and the copies between them are fastest with: maps of the first convolution as
(filters, positions) until their maxima are taken, then (positions, filters). `convnet_kernels` puts them together.
"""

import numpy as np

from silodp.models.base import LEAST_SQUARE
from silodp.models.cpu.compiled import njit
from silodp.models.cpu.kernels import FAST

# Side of the filters, and of the windows that maxima are taken over.
KERNEL, POOL = 5, 2


@njit(cache=True, nogil=True)
def sides(side):
    """Sides of the first convolution's output, of its maxima, and the same of the second, for images of `side`."""
    first = side - KERNEL + 1
    second = first // POOL - KERNEL + 1
    return first, first // POOL, second, second // POOL


@njit(cache=True, nogil=True, fastmath=FAST)
def patches_of(image, channels, side, out):
    """The columns (channels·5·5, outputs) whose product with the filters is the convolution of `image`."""
    first, row = side - KERNEL + 1, 0
    for c in range(channels):
        for down in range(KERNEL):
            for right in range(KERNEL):
                column = out[row]
                row += 1
                for v in range(first):
                    start = (c * side + v + down) * side + right
                    given, into = image[start : start + first], column[v * first : (v + 1) * first]
                    for h in range(first):
                        into[h] = given[h]


@njit(cache=True, nogil=True, fastmath=FAST)
def pool_first(z, side, bias, out, at):
    """ReLU of 2×2 maxima of z (filters, side²) to out (half², filters); where each stands to at (filters, half²).

    Returns 0, or a value that is no number where z has one that is not finite: a maximum would lose it.
    """
    filters, half = len(z), side // POOL
    zero = z.dtype.type(0)
    seen = zero
    for c in range(filters):
        row, where, shift = z[c], at[c], bias[c]
        for i in range(side * side):
            seen += row[i] * zero
        for v in range(half):
            top = row[POOL * v * side : (POOL * v + 1) * side]
            below = row[(POOL * v + 1) * side : (POOL * v + 2) * side]
            for h in range(half):
                a, b = top[2 * h], top[2 * h + 1]
                first, i = (b, 1) if b > a else (a, 0)
                a, b = below[2 * h], below[2 * h + 1]
                second, j = (b, 1) if b > a else (a, 0)
                best, i = (second, j + side) if second > first else (first, i)
                best += shift
                out[v * half + h, c] = best if best > 0 else zero
                where[v * half + h] = POOL * v * side + 2 * h + i
    return seen


@njit(cache=True, nogil=True, fastmath=FAST)
def pool_second(z, side, bias, out, at):
    """The same of z (side², filters) to out (filters·half²,), `at` (half², filters)."""
    filters, half = z.shape[1], side // POOL
    zero = z.dtype.type(0)
    seen = zero
    for i in range(side * side):
        for c in range(filters):
            seen += z[i, c] * zero
    for v in range(half):
        for h in range(half):
            i = POOL * v * side + POOL * h
            where = at[v * half + h]
            for c in range(filters):
                best, k = z[i, c], 0
                k = 1 if z[i + 1, c] > best else k
                best = z[i + 1, c] if z[i + 1, c] > best else best
                k = side if z[i + side, c] > best else k
                best = z[i + side, c] if z[i + side, c] > best else best
                k = side + 1 if z[i + side + 1, c] > best else k
                best = z[i + side + 1, c] if z[i + side + 1, c] > best else best
                best += bias[c]
                out[c * half * half + v * half + h] = best if best > 0 else zero
                where[c] = i + k
    return seen


@njit(cache=True, nogil=True, fastmath=FAST)
def columns(a, half, filters, out):
    """Patches (outputs, 5·5·filters) of maps a (half², filters)."""
    second, run = half - KERNEL + 1, KERNEL * filters
    flat = a.reshape(-1)
    for v in range(second):
        for h in range(second):
            row = out[v * second + h]
            for down in range(KERNEL):
                start = ((v + down) * half + h) * filters
                given, into = flat[start : start + run], row[down * run : (down + 1) * run]
                for i in range(run):
                    into[i] = given[i]


@njit(cache=True, nogil=True, fastmath=FAST)
def add_columns(columns, half, filters, out):
    """The transpose of `columns`: each patch added to where it was taken from, out (half², filters)."""
    second, run = half - KERNEL + 1, KERNEL * filters
    flat = out.reshape(-1)
    flat[:] = 0
    for v in range(second):
        for h in range(second):
            row = columns[v * second + h]
            for down in range(KERNEL):
                start = ((v + down) * half + h) * filters
                given, into = row[down * run : (down + 1) * run], flat[start : start + run]
                for i in range(run):
                    into[i] += given[i]


@njit(cache=True, nogil=True, fastmath=FAST)
def transpose_filters(given, f1, f2, rows, columns):
    """The second convolution's filters (f2, f1, 5, 5), flat, in the order of `columns`: as rows and as columns."""
    for f in range(f2):
        row = rows[f]
        for c in range(f1):
            some = given[(f * f1 + c) * KERNEL * KERNEL : (f * f1 + c + 1) * KERNEL * KERNEL]
            for i in range(KERNEL * KERNEL):
                row[i * f1 + c] = some[i]
                columns[i * f1 + c, f] = some[i]


@njit(cache=True, nogil=True, fastmath=FAST)
def places(sizes):
    """Where the ten tensors begin in a flat vector, and its length."""
    channels, side, f1, f2, h1, h2, classes = sizes
    last = sides(side)[3]
    lengths = (
        f1 * channels * KERNEL**2,
        f1,
        f2 * f1 * KERNEL**2,
        f2,
        h1 * f2 * last**2,
        h1,
        h2 * h1,
        h2,
        classes * h2,
        classes,
    )
    starts = np.zeros(11, dtype=np.int64)
    for i in range(10):
        starts[i + 1] = starts[i] + lengths[i]
    return starts


@njit(cache=True, nogil=True, fastmath=FAST)
def maps(sizes, w, at, filters2, patches, z1, scratch, z2, a1, at1, a2, at2):
    """A record through both convolutions of one point; fills all but the arguments before `z1`.

    Returns 0, or a value that is no number where a map has one that is not finite.
    """
    channels, side, f1, _, _, _, _ = sizes
    first, half, second, _ = sides(side)
    np.dot(w[at[0] : at[1]].reshape((f1, channels * KERNEL * KERNEL)), patches, z1)
    seen = pool_first(z1, first, w[at[1] : at[2]], a1, at1)
    columns(a1, half, f1, scratch)
    np.dot(scratch, filters2, z2)
    return seen + pool_second(z2, second, w[at[3] : at[4]], a2, at2)


@njit(cache=True, nogil=True, fastmath=FAST)
def dense(a, w, bias, out, relu):
    """out = a·wᵀ + bias, with ReLU if `relu`; a (records, inputs), w flat (units, inputs)."""
    zero = a.dtype.type(0)
    np.dot(a, w.reshape((len(bias), a.shape[1])).T, out)
    for k in range(len(out)):
        row = out[k]
        for j in range(len(bias)):
            value = row[j] + bias[j]
            # What is no number is not above 0 and must stay to be seen.
            row[j] = zero if relu and value <= 0 else value


@njit(cache=True, nogil=True, fastmath=FAST)
def back(delta, w, active, out):
    """out = (delta·w) where `active` is above 0; delta (records, units), w flat (units, inputs)."""
    zero = delta.dtype.type(0)
    np.dot(delta, w.reshape((delta.shape[1], active.shape[1])), out)
    for k in range(len(out)):
        row, on = out[k], active[k]
        for j in range(active.shape[1]):
            row[j] = row[j] if on[j] > 0 else zero


@njit(cache=True, nogil=True, fastmath=FAST)
def residuals(logits, y):
    """The derivative of the cross-entropy by logits (records, classes), in place."""
    for k in range(len(logits)):
        row = logits[k]
        highest, total = row[0], row[0] * 0
        for c in range(len(row)):
            highest = max(highest, row[c])
        for c in range(len(row)):
            row[c] = np.exp(row[c] - highest)
            total += row[c]
        for c in range(len(row)):
            row[c] /= total
        row[y[k]] -= 1


@njit(cache=True, nogil=True, fastmath=FAST)
def product_of_squares(delta, a):
    """‖δ‖²(‖a‖² + 1), the squared norm of a dense layer's gradient; the first factor as `square_sums` has it."""
    squared, size = delta[0] * 0, delta[0] * 0 + 1
    for i in range(len(delta)):
        squared += delta[i] * delta[i]
    for i in range(len(a)):
        size += a[i] * a[i]
    least = delta.dtype.type(LEAST_SQUARE)
    return (least if squared < least else squared) * size


@njit(cache=True, nogil=True, fastmath=FAST)
def map_gradients(sizes, filters2, patches, d2, at2, a1, at1, scratch, gradients):
    """A record's gradients of both convolutions from d2 (f2·last²,).

    Fills the arrays of `scratch` and `gradients`; returns the sum of the squares of the gradients.
    """
    patched, spread2, moved, d1, spread1 = scratch
    g1, b1, g2, b2 = gradients
    _, side, f1, f2, _, _, _ = sizes
    zero = d2.dtype.type(0)
    half = sides(side)[1]
    cells = len(at2)
    spread2[:] = zero
    b2[:] = zero
    for i in range(cells):
        for f in range(f2):
            value = d2[f * cells + i]
            spread2[at2[i, f], f] = value
            b2[f] += value
    columns(a1, half, f1, patched)
    np.dot(patched.T, spread2, g2)
    np.dot(spread2, filters2, moved)
    add_columns(moved, half, f1, d1)
    spread1[:] = zero
    b1[:] = zero
    for i in range(half * half):
        for c in range(f1):
            if a1[i, c] > 0:
                spread1[c, at1[c, i]] = d1[i, c]
                b1[c] += d1[i, c]
    np.dot(patches, spread1.T, g1)
    squared = zero
    for part in (g1.reshape(-1), b1, g2.reshape(-1), b2):
        total = zero
        for i in range(len(part)):
            total += part[i] * part[i]
        squared += total
    return squared


@njit(cache=True, nogil=True, fastmath=FAST)
def add(part, values, out):
    for i in range(len(values)):
        out[i] += part * values[i]


@njit(cache=True, nogil=True, fastmath=FAST)
def add_turned(part, g1, g2, f1, f2, out1, out2):
    """Gradients of both convolutions' filters, in the layouts of `map_gradients`, times `part`, to the model's own."""
    for c in range(f1):
        into = out1[c * len(g1) : (c + 1) * len(g1)]
        for i in range(len(g1)):
            into[i] += part * g1[i, c]
    for f in range(f2):
        for c in range(f1):
            into = out2[(f * f1 + c) * KERNEL * KERNEL : (f * f1 + c + 1) * KERNEL * KERNEL]
            for i in range(KERNEL * KERNEL):
                into[i] += part * g2[i * f1 + c, f]
