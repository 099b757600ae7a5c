"""What a silo computes of its records: sums of clipped gradients, and local steps. Chance comes in as an argument.

Nothing is kept between calls. What one record can change is decided here: the sensitivities that `Release.sensitivity`
states. A sum is secret until noise is added.

>>> from silodp.models.linear import Linear
>>> points = Points(weights=torch.zeros(1, 2), clip=torch.tensor([1.0]))
>>> clipped_sum(Linear(2), points, [(torch.tensor([[3.0, 4.0], [0.1, 0.0]]), torch.tensor([1.0, 2.0]))])
tensor([[-0.8000, -0.8000]])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from silodp.models import gpu
from silodp.models.base import Model, clip_factors
from silodp.privacy.plan import Clipping

# A silo's (x, y). Secret.
Records = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Points:
    """Where and how the G points of a stack ask for clipped gradients. Public.

    Attributes:
        weights: (G, d).
        clip: L, (G,).
        previous: (G, d); the sum is then of differences of the clipped gradients at both, on the same records.
        factors: (a, b): a record contributes a·gradient − b·gradient at `previous`, clipped as a whole.
        clipping: what is scaled to norm at most L, as in `Release`.
    """

    weights: Tensor
    clip: Tensor
    previous: Tensor | None = None
    factors: tuple[float, float] | None = None
    clipping: Clipping = "record"


def clipped_sum(model: Model, points: Points, silos: Sequence[Records]) -> Tensor:
    """Sum (G, d) over all silos' drawn records (x, y) of the clipped gradients, or of their differences.

    Replacing an occurrence of a record moves it by at most 2L (4L for a difference); by √tensors times that with
    "per_tensor", and by 2LK (4LK), K the silo's records, with "batch_mean". A record that is not finite adds 0.
    """
    if points.factors is None and points.previous is not None:
        plain = replace(points, previous=None)
        before = replace(plain, weights=points.previous)
        return clipped_sum(model, plain, silos) - clipped_sum(model, before, silos)
    if points.clipping == "batch_mean" and len(silos) > 1:
        return torch.stack([clipped_sum(model, points, [silo]) for silo in silos]).sum(0)
    x, y = silos[0] if len(silos) == 1 else (torch.cat(parts) for parts in zip(*silos, strict=True))
    if points.factors is not None:
        return model.joint_gradient_sum(points.weights, points.previous, points.factors, x, y, points.clip)
    if points.clipping == "record":
        return model.clipped_gradient_sum(points.weights, x, y, points.clip)
    return (_mean_clipped_sum if points.clipping == "batch_mean" else _tensor_clipped_sum)(model, points, x, y)


def _mean_clipped_sum(model: Model, points: Points, x: Tensor, y: Tensor) -> Tensor:
    total = model.clipped_gradient_sum(points.weights, x, y, torch.full_like(points.clip, torch.inf))
    return total * clip_factors(((total / len(x)) ** 2).sum(1), points.clip)[:, None]


def _tensor_clipped_sum(model: Model, points: Points, x: Tensor, y: Tensor) -> Tensor:
    total, free = torch.zeros_like(points.weights), torch.full_like(points.clip, torch.inf)
    for k in range(len(x)):
        gradient = model.clipped_gradient_sum(points.weights, x[k : k + 1], y[k : k + 1], free)
        for block in model.blocks:
            part = gradient[:, block.start : block.stop]
            total[:, block.start : block.stop] += part * clip_factors((part**2).sum(1), points.clip)[:, None]
    return total


class Start(NamedTuple):
    """Where the G points of a stack start their one-record steps w ← w − η(clipped gradient + noise). Public.

    Attributes:
        weights: (G, d).
        clip: L, (G,).
        stepsize: η, (G,).
        contracted: gradients are scaled before they are clipped, so that no step expands distances.
        noise_at_end: the K steps have no noise; ηK times that of their gradients' mean is added after them.
    """

    weights: Tensor
    clip: Tensor
    stepsize: Tensor
    contracted: bool = False
    noise_at_end: bool = False


class StepNoise(NamedTuple):
    """A silo's noise: public deviations (G,), and secret draws (K, d), a row a step, or (1, d) for noise at the end."""

    scale: Tensor
    draws: Tensor


def local_steps(model: Model, start: Start, silos: Sequence[Records], noise: Sequence[StepNoise | None]) -> Tensor:
    """Each silo's model (S, G, d) after a step on each of its drawn records (x, y), in order.

    `noise` is each silo's; None: none. A step's sensitivity is 2L; with noise at the end, the mean's is 2L/K for each
    occurrence of a record. ValueError: `contracted`, and steps of the model may expand distances.
    """
    in_steps = [None] * len(silos) if start.noise_at_end else noise
    models = None if gpu.runs_on_host(start.weights) else _steps_side_by_side(model, start, silos, in_steps)
    if models is None:
        models = [_steps_of_a_silo(model, start, *pair) for pair in zip(silos, in_steps, strict=True)]
    if start.noise_at_end:
        ends = zip(models, silos, noise, strict=True)
        models = [after if added is None else _add_noise(after, start, len(x), added) for after, (x, _), added in ends]
    return torch.stack(models)


def _steps_of_a_silo(model: Model, start: Start, records: Records, noise: StepNoise | None) -> Tensor:
    scale, draws = (torch.zeros_like(start.clip), None) if noise is None else noise
    weights, clip, stepsize, contracted, _ = start
    return model.local_steps(weights, *records, clip, stepsize, scale, draws, contracted=contracted)


def _steps_side_by_side(
    model: Model, start: Start, silos: Sequence[Records], noise: Sequence[StepNoise | None]
) -> list[Tensor] | None:
    """The models of all silos with the steps of all chains, a silo at a point, at once; None where there is no form."""
    lengths = [len(x) for x, _ in silos]
    if len(set(lengths)) > 1:  # those with as many steps together
        models: dict[int, Tensor] = {}
        for length in set(lengths):
            group = [number for number, other in enumerate(lengths) if other == length]
            after = _steps_side_by_side(model, start, [silos[i] for i in group], [noise[i] for i in group])
            if after is None:
                return None
            models |= dict(zip(group, after, strict=True))
        return [models[number] for number in range(len(silos))]
    none = torch.zeros_like(start.clip)
    scale = torch.stack([none if added is None else added.scale for added in noise])
    rows = [start.weights.new_zeros((lengths[0], model.size)) if added is None else added.draws for added in noise]
    draws = None if all(added is None for added in noise) else torch.stack(rows)
    x, y = (torch.stack(parts) for parts in zip(*silos, strict=True))
    weights, clip, stepsize, contracted, _ = start
    done = model.chain_steps(weights, x, y, clip, stepsize, scale, draws, contracted=contracted)
    return None if done is None else list(done)


def _add_noise(weights: Tensor, start: Start, steps: int, noise: StepNoise) -> Tensor:
    return torch.addcmul(weights, (noise.scale * start.stepsize * steps)[:, None], noise.draws, value=-1)
