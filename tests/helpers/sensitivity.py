"""The property of `clipped_sum` and `local_steps` that a plan's sensitivity rests on, for any mechanism."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from silodp.federation.clipped_sums import Points, Start
from silodp.federation.messages import Messages
from silodp.models import MODELS
from silodp.models.base import Model
from silodp.streams import Streams

CLIP = 0.1
# Values of a record, and factors of the weights, whose squares or products leave the range of their type.
HOSTILE = {
    torch.float64: (1e160, 1e308, 1e-310, math.inf, -math.inf, math.nan),
    torch.float32: (1e20, 3e38, 1e-40, math.inf, -math.inf, math.nan),
}
CASES = {"linear": (None, {}), "logistic": (2, {}), "softmax": (3, {}), "perceptron": (2, {"hidden": 2})}
FEATURES = 3


def broken_bounds(mechanism: type[Messages]) -> Iterator[str]:
    """Where a record moves a sum by more than L, a difference by more than 2L, or the other records' share.

    A sum over K records is the sum of K sums over one: so a replaced record moves it by 2L for each time it is drawn,
    whatever the other records are.
    """
    for name, (classes, options) in CASES.items():
        model = MODELS[name](FEATURES, classes, **options)
        for dtype, values in HOSTILE.items():
            records = _records(values, dtype), torch.arange(2 + 2 * len(values)) % 2
            made = mechanism(model, [(records[0], records[1] if classes else records[1].to(dtype))], Streams(0))
            for factor in (1.0, *values[:3]):
                weights = _weights(model, factor, dtype)
                yield from (f"{name}, {dtype}, weights of {factor:g}: {fault}" for fault in _faults(made, weights))


def _faults(made: Messages, weights: Tensor) -> Iterator[str]:
    clip, count = torch.full((1,), CLIP, dtype=weights.dtype), len(made.silos[0][0])
    kinds = {
        "gradient": Points(weights, clip),
        "difference": Points(weights, clip, -weights),
        "joint": Points(weights, clip, -weights, (2.0, 1.0)),
    }
    for kind, points in kinds.items():
        bound = (2 if kind == "difference" else 1) * CLIP * (1 + 1e-4)
        alone = [made.clipped_sum(points, [0], [slice(k, k + 1)])[0].double() for k in range(count)]
        whole = made.clipped_sum(points, [0], [slice(0, count)])[0].double()
        if not all(bool(torch.isfinite(one).all()) for one in (*alone, whole)):
            yield f"{kind}: not finite"
        elif max(float(one.norm()) for one in alone) > bound:
            yield f"{kind}: beyond its sensitivity"
        elif float((whole - sum(alone)).norm()) > bound * 1e-4 * count:
            yield f"{kind}: no sum over records"
    # As large as the weights, so that a step is not lost in their rounding.
    stepsize = weights.abs().amax(1).clamp(min=1)
    for k in range(count):
        after = made.local_steps(Start(weights, clip, stepsize), [0], [slice(k, k + 1)], [None])[0]
        step = (weights / stepsize - after / stepsize)[0].double()
        if not float(step.norm()) <= CLIP * (1 + 1e-4):
            yield f"a step on record {k}: beyond its sensitivity"


def _records(values: tuple[float, ...], dtype: torch.dtype) -> Tensor:
    plain = torch.tensor([[1.0, -30.0, 2.0], [1.0, 30.0, -1.0]], dtype=dtype)
    whole = [torch.full((1, FEATURES), value, dtype=dtype) for value in values]
    first = [torch.cat([rows[:, :1], plain[:1, 1:]], dim=1) for rows in whole]
    return torch.cat([plain, *whole, *first])


def _weights(model: Model, factor: float, dtype: torch.dtype) -> Tensor:
    weights = torch.linspace(1.0, -2.0, model.size, dtype=torch.float64)[None] * factor
    largest = torch.finfo(dtype).max / 100
    return weights.clamp(-largest, largest).to(dtype)
