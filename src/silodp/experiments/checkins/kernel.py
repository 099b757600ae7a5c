"""Compiled walk over a check-in schedule's slots for linear and logistic regression on the CPU.

As tensor operations, a step of one record spends nearly all of its time in calls.
`silodp.experiments.checkins.protocols` has the same walk over any model; tests hold the two together.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from silodp.models.cpu.compiled import njit
from silodp.models.cpu.kernels import FAST, LOGISTIC, factor, sigmoid
from silodp.models.threads import side_by_side


@dataclass(frozen=True)
class Walk:
    """SGD over the slots of a schedule, for a stack of G points; `silodp.experiments.checkins.protocols.train`.

    Attributes:
        x, y: one record a client, (n, d) and (n,).
        slots: clients of every slot.
        along: ⟨V, u⟩ of every report, (reports, G).
        sign, free: the draws of every report, (reports,) and (reports, d).
        private, steps: whether a point has noise, and its step constant, (G,).
        clip: L.
        dummies: an empty slot takes a step along noise, else none.
    """

    x: Tensor
    y: Tensor
    slots: Sequence[NDArray[np.int64]]
    projection: Tensor
    sign: Tensor
    free: Tensor
    private: Tensor
    steps: Tensor
    clip: float
    dummies: bool


def compiled_walk(link: int, weights: Tensor, walk: Walk) -> Tensor:
    """Parameters (G, d) after the slots, from `weights`, which are changed in place.

    `link` is IDENTITY or LOGISTIC of `silodp.models.cpu.kernels`.
    """
    x, clients = walk.x, np.concatenate(walk.slots).astype(np.int64)
    ends = np.cumsum([len(slot) for slot in walk.slots])
    arrays = (x.contiguous().numpy(), walk.y.to(x.dtype).numpy(), clients, ends, walk.projection.T.contiguous().numpy())
    draws = (walk.sign.numpy(), walk.free.contiguous().numpy(), walk.private.numpy(), walk.steps.numpy())
    limit = x.new_tensor(walk.clip).numpy()[()]
    side_by_side(functools.partial(_walk, link, weights.numpy(), *arrays, *draws, limit, walk.dummies), len(weights))
    return weights


@njit(cache=True, nogil=True, fastmath=FAST)
def _walk(link, weights, x, y, clients, ends, along, sign, free, private, steps, clip, dummies, start, stop):
    d = x.shape[1]
    zero, one = x.dtype.type(0), x.dtype.type(1)
    total = np.empty(d, dtype=x.dtype)
    for g in range(start, stop):
        w, noisy, report, begin = weights[g], private[g], 0, 0
        for slot in range(len(ends)):
            end = ends[slot]
            count = end - begin
            if count == 0 and not dummies:
                continue
            total[:] = zero
            if count == 0 and noisy:
                total[:] = free[report]
            for k in range(begin, end):
                row, across_of = x[clients[k]], free[report + k - begin]
                z, size, shared = zero, zero, zero
                for j in range(d):
                    z += w[j] * row[j]
                    size += row[j] * row[j]
                    shared += row[j] * across_of[j]
                residual = (sigmoid(z) if link == LOGISTIC else z) - y[clients[k]]
                scale = residual * factor(residual * residual * size, clip) / clip
                if not noisy:
                    for j in range(d):
                        total[j] += scale * row[j]
                    continue
                # As `private_vectors` of protocols.py: V from ⟨V, u⟩ and a direction drawn on the sphere.
                norm = math.sqrt(scale * scale * size)
                part, across = along[g, report + k - begin], one
                toward = zero
                if norm > 0:
                    dot = scale * shared / norm
                    across = math.sqrt(max((1 - part * part) / max(1 - dot * dot, 1e-12), 0))
                    kept = part if sign[report + k - begin] < (1 + norm) / 2 else -part
                    toward = (kept - across * dot) / norm
                elif norm != norm:
                    toward = norm
                for j in range(d):
                    total[j] += toward * scale * row[j] + across * across_of[j]
            pace = steps[g] / (math.sqrt(slot + 1) * max(count, 1))
            for j in range(d):
                w[j] -= pace * total[j]
            report += max(count, 1)
            begin = end
