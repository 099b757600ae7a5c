"""Compiled walk over a check-in schedule's slots for linear and logistic regression on the CPU.

A step is one record's worth of arithmetic, so that as tensor operations nearly all of its time is calls.
`silodp.experiments.checkins.protocols` has the same walk over any model; tests hold the two together.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from silodp.federation.models.kernels import FAST, LOGISTIC, factor, sigmoid
from silodp.federation.models.threads import side_by_side


def walk(
    link: int,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    slots: Sequence[NDArray[np.int64]],
    along: Tensor,
    sign: Tensor,
    free: Tensor,
    private: Tensor,
    steps: Tensor,
    clip: float,
    dummies: bool,
) -> Tensor:
    """Parameters (G, d) after the slots; `weights` is changed in place.

    Args:
        link: IDENTITY or LOGISTIC of `silodp.federation.models.kernels`.
        weights: (G, d), where the walk starts.
        x, y: one record a client, (n, d) and (n,).
        slots: clients of every slot.
        along: ⟨V, u⟩ of every report, (reports, G).
        sign, free: the draws of every report, (reports,) and (reports, d).
        private, steps: (G,); as in `silodp.experiments.checkins.protocols.train`, as are clip and dummies.
    """
    ends = np.cumsum([len(clients) for clients in slots])
    clients = np.concatenate(slots).astype(np.int64)
    arrays = (
        x.contiguous().numpy(), y.to(x.dtype).numpy(), clients, ends, along.T.contiguous().numpy(), sign.numpy(),
        free.contiguous().numpy(), private.numpy(), steps.numpy(),
    )  # fmt: skip
    limit = x.new_tensor(clip).numpy()[()]
    side_by_side(functools.partial(_walk, link, weights.numpy(), *arrays, limit, dummies), len(weights))
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
                # As `_private` of checkin_protocols: V from ⟨V, u⟩ and a direction drawn on the sphere.
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
