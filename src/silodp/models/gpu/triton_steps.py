"""Local steps by Triton: a program for each chain, a silo at a point, with all its weights in registers.

K steps take one launch. Triton comes with PyTorch's CUDA builds; without a GPU its interpreter runs the same programs
(TRITON_INTERPRET=1 before this module is imported).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

# Padded weights of a chain that registers of one warp or four hold; larger models step silo by silo.
LARGEST, ONE_WARP = 16_384, 4096
# The models' least square.
_TINY = tl.constexpr(torch.finfo(torch.float32).tiny)


@triton.jit
def _factor(squared, clip):
    """Clip factor of a squared norm; 0 where it is not finite."""
    return tl.where(squared < float("inf"), tl.minimum(clip * tl.rsqrt(squared), 1.0), 0.0)


@triton.jit
def _scaled(values, factor):
    """values·factor, and 0 for a factor of 0 whatever the values are."""
    return tl.where(factor > 0, values * factor, 0.0)


@triton.jit
def _residual(logits, label, classes, c):
    """Derivative of the cross-entropy by the logits, 0 beyond the classes."""
    logits = tl.where(c < classes, logits, -float("inf"))
    powers = tl.exp(logits - tl.max(logits, 0))
    return powers / tl.sum(powers, 0) - (c == label).to(logits.dtype)


@triton.jit
def perceptron_steps(
    start, out, xs, ys, draws, clips, stepsizes, scales, K, G, D, noisy: tl.constexpr,
    F: tl.constexpr, H: tl.constexpr, C: tl.constexpr, FP: tl.constexpr, HP: tl.constexpr, CP: tl.constexpr,
):  # fmt: skip
    chain = tl.program_id(0)
    silo, point = chain // G, chain % G
    clip, eta, scale = tl.load(clips + point), tl.load(stepsizes + point), tl.load(scales + chain)
    f, h, c = tl.arange(0, FP), tl.arange(0, HP), tl.arange(0, CP)
    in_w, in_v = (h[:, None] < H) & (f[None, :] < F), (c[:, None] < C) & (h[None, :] < H)
    at_w, at_b = h[:, None] * F + f[None, :], H * F + h
    at_v, at_c = H * F + H + c[:, None] * H + h[None, :], H * F + H + C * H + c
    first = start + point * D
    w, b = tl.load(first + at_w, mask=in_w, other=0.0), tl.load(first + at_b, mask=h < H, other=0.0)
    v, bias = tl.load(first + at_v, mask=in_v, other=0.0), tl.load(first + at_c, mask=c < C, other=0.0)
    for k in range(K):
        row = (silo * K + k).to(tl.int64)
        x, y = tl.load(xs + row * F + f, mask=f < F, other=0.0), tl.load(ys + row)
        a = tl.sum(w * x[None, :], 1) + b
        active = a > 0
        a = tl.where(a <= 0, 0.0, a)
        delta2 = _residual(tl.sum(v * a[None, :], 1) + bias, y, C, c)
        delta1 = tl.where(active, tl.sum(v * delta2[:, None], 0), 0.0)
        squared = tl.maximum(tl.sum(delta1 * delta1, 0), _TINY) * (tl.sum(x * x, 0) + 1)
        squared += tl.maximum(tl.sum(delta2 * delta2, 0), _TINY) * (tl.sum(a * a, 0) + 1)
        factor = _factor(squared, clip)
        w -= eta * _scaled(delta1[:, None] * x[None, :], factor)
        b -= eta * _scaled(delta1, factor)
        v -= eta * _scaled(delta2[:, None] * a[None, :], factor)
        bias -= eta * _scaled(delta2, factor)
        if noisy:
            z, move = draws + row * D, eta * scale
            w -= move * tl.load(z + at_w, mask=in_w, other=0.0)
            b -= move * tl.load(z + at_b, mask=h < H, other=0.0)
            v -= move * tl.load(z + at_v, mask=in_v, other=0.0)
            bias -= move * tl.load(z + at_c, mask=c < C, other=0.0)
    last = out + chain.to(tl.int64) * D
    tl.store(last + at_w, w, mask=in_w)
    tl.store(last + at_b, b, mask=h < H)
    tl.store(last + at_v, v, mask=in_v)
    tl.store(last + at_c, bias, mask=c < C)


@triton.jit
def softmax_steps(
    start, out, xs, ys, draws, clips, stepsizes, scales, K, G, D, noisy: tl.constexpr,
    F: tl.constexpr, C: tl.constexpr, FP: tl.constexpr, CP: tl.constexpr,
):  # fmt: skip
    chain = tl.program_id(0)
    silo, point = chain // G, chain % G
    clip, eta, scale = tl.load(clips + point), tl.load(stepsizes + point), tl.load(scales + chain)
    f, c = tl.arange(0, FP), tl.arange(0, CP)
    in_w, at_w, at_b = (c[:, None] < C) & (f[None, :] < F), c[:, None] * F + f[None, :], C * F + c
    first = start + point * D
    w, b = tl.load(first + at_w, mask=in_w, other=0.0), tl.load(first + at_b, mask=c < C, other=0.0)
    for k in range(K):
        row = (silo * K + k).to(tl.int64)
        x, y = tl.load(xs + row * F + f, mask=f < F, other=0.0), tl.load(ys + row)
        delta = _residual(tl.sum(w * x[None, :], 1) + b, y, C, c)
        squared = tl.maximum(tl.sum(delta * delta, 0), _TINY) * (tl.sum(x * x, 0) + 1)
        factor = _factor(squared, clip)
        w -= eta * _scaled(delta[:, None] * x[None, :], factor)
        b -= eta * _scaled(delta, factor)
        if noisy:
            z, move = draws + row * D, eta * scale
            w -= move * tl.load(z + at_w, mask=in_w, other=0.0)
            b -= move * tl.load(z + at_b, mask=c < C, other=0.0)
    last = out + chain.to(tl.int64) * D
    tl.store(last + at_w, w, mask=in_w)
    tl.store(last + at_b, b, mask=c < C)


@triton.jit
def affine_steps(
    start, out, xs, ys, draws, clips, stepsizes, scales, curvature, K, G, D, noisy: tl.constexpr,
    LOGISTIC: tl.constexpr, CONTRACTED: tl.constexpr, FP: tl.constexpr,
):  # fmt: skip
    chain = tl.program_id(0)
    silo, point = chain // G, chain % G
    clip, eta, scale = tl.load(clips + point), tl.load(stepsizes + point), tl.load(scales + chain)
    f = tl.arange(0, FP)
    w = tl.load(start + point * D + f, mask=f < D, other=0.0)
    for k in range(K):
        row = (silo * K + k).to(tl.int64)
        x, y = tl.load(xs + row * D + f, mask=f < D, other=0.0), tl.load(ys + row)
        residual = tl.sum(w * x, 0)
        if LOGISTIC:
            residual = 1 / (1 + tl.exp(-residual))
        residual -= y
        length = tl.sum(x * x, 0)
        squared = tl.maximum(residual * residual, _TINY) * tl.maximum(length, _TINY)
        if CONTRACTED:
            shrink = tl.minimum(2 / (eta * curvature * length), 1.0)
            factor = _factor(squared, clip / shrink) * shrink
        else:
            factor = _factor(squared, clip)
        w -= eta * _scaled(residual * x, factor)
        if noisy:
            w -= eta * scale * tl.load(draws + row * D + f, mask=f < D, other=0.0)
    tl.store(out + chain.to(tl.int64) * D + f, w, mask=f < D)


_PROGRAMS = {
    "perceptron": perceptron_steps,
    "softmax": softmax_steps,
    "identity": affine_steps,
    "logistic": affine_steps,
}


def chain_steps(
    name: str,
    sizes: tuple[int, ...],
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    clip: Tensor,
    stepsize: Tensor,
    scale: Tensor,
    draws: Tensor | None,
    curvature: float,
) -> Tensor | None:
    """Models (S, G, d) after K steps from `weights` (G, d): x (S, K, F), y (S, K), scale (S, G), draws (S, K, d).

    `name` and `sizes` are a model's `steps_program`; with a curvature steps are contracted. None where a chain's
    weights are too many for a program.
    """
    (silos, K), (G, D) = x.shape[:2], weights.shape
    padded = [max(triton.next_power_of_2(size), 2) for size in sizes]
    widest = max(size * before for size, before in zip(padded, [1, *padded], strict=False))
    if widest > LARGEST:
        return None
    out, affine = weights.new_empty((silos, G, D)), _PROGRAMS[name] is affine_steps
    labels = y.to(x.dtype) if affine else y
    tensors = [part.contiguous() for part in (x, labels, weights if draws is None else draws)]
    values, constants = ([curvature], [int(name == "logistic"), int(curvature > 0)]) if affine else ([], [*sizes])
    _PROGRAMS[name][(silos * G,)](
        weights.contiguous(), out, *tensors, clip, stepsize, scale.contiguous(), *values, K, G, D, draws is not None,
        *constants, *padded, num_warps=1 if widest <= ONE_WARP else 4,
    )  # fmt: skip
    return out
