"""The base of every model: what it offers to the stack, and what clipped gradients share."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from silodp.models import gpu


@dataclass(frozen=True)
class Block:
    """One tensor of a model within its flat parameter vector."""

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        return self.start + int(np.prod(self.shape))


class Steps(NamedTuple):
    """One-record steps w ← w − η(clipped gradient + noise·base_k) over the records of `x` in order.

    `clip`, `stepsize` and `noise` are (G,); `base` (B, d) has a draw a step, None where no point has noise. With a
    `curvature` h a gradient is scaled by min(1, 2/(ηh‖x‖²)) before it is clipped, so that no step expands distances.
    """

    x: Tensor
    y: Tensor
    clip: Tensor
    stepsize: Tensor
    noise: Tensor
    base: Tensor | None
    curvature: float = 0.0

    def for_points(self, points: Tensor) -> "Steps":
        return self._replace(clip=self.clip[points], stepsize=self.stepsize[points], noise=self.noise[points])


class Model:
    """A model over a stack of G flat parameter vectors of length d; `x` is (B, features), `y` (B,) classes or targets.

    `worst_error` is that of a record whose output is not a number: 1 (wrong class), or infinite for a regression.
    """

    worst_error: ClassVar[float] = 1.0
    # h where a record's gradient is r(⟨w, x⟩)·x with r nondecreasing and h-Lipschitz.
    curvature: ClassVar[float | None] = None

    @property
    def size(self) -> int:
        """d, the number of parameters."""
        return self.blocks[-1].stop

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The tensors that make up the flat vector, in order."""
        raise NotImplementedError

    def unpacked(self, weights: Tensor) -> list[Tensor]:
        """Every tensor of the stack, (G, *shape)."""
        return [weights[:, block.start : block.stop].reshape(-1, *block.shape) for block in self.blocks]

    def initial(self, generator: np.random.Generator) -> np.ndarray:
        """A starting point (d,): 0, which suits convex losses."""
        return np.zeros(self.size)

    def hiding_time(self) -> "Model":
        """The model for a promise: no operation of a clipped sum tells that a record is not finite."""
        return self

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        """Predictions before the loss: (G, B) for one output, (G, B, classes) for several."""
        raise NotImplementedError

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Loss of each record, (G, B)."""
        raise NotImplementedError

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Error of each record, (G, B): 1 where the class is wrong, the squared error for a regression."""
        raise NotImplementedError

    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        """(G, d) sum of records' gradients, each scaled to norm at most `clip` (G,); 0 if not finite."""
        raise NotImplementedError

    def joint_gradient_sum(
        self,
        weights: Tensor,
        previous: Tensor | None,
        factors: tuple[float, float],
        x: Tensor,
        y: Tensor,
        clip: Tensor,
    ) -> Tensor:
        """(G, d) sum of a·gradient − b·gradient at `previous`, clipped as a whole; a record not finite adds 0.

        `factors` is (a, b). Without `previous` nothing is taken away.
        """
        total, free = torch.zeros_like(weights), torch.full_like(clip, torch.inf)
        for k in range(len(x)):
            record = x[k : k + 1], y[k : k + 1]
            whole = factors[0] * self.clipped_gradient_sum(weights, *record, free)
            if previous is not None:
                whole = whole - factors[1] * self.clipped_gradient_sum(previous, *record, free)
            factor = clip_factors((whole**2).sum(1), clip)[:, None]
            total += torch.where(factor > 0, factor * whole, 0)
        return total

    def local_steps(
        self,
        weights: Tensor,
        x: Tensor,
        y: Tensor,
        clip: Tensor,
        stepsize: Tensor,
        noise: Tensor,
        base: Tensor | None,
        *,
        contracted: bool = False,
    ) -> Tensor:
        """The weights (G, d) after `Steps`; the step of a record with a gradient or norm not finite is noise alone.

        ValueError: `contracted` and the model has no curvature.
        """
        curvature = self.curvature if contracted else 0.0
        if curvature is None:
            raise ValueError(f"{type(self).__name__.lower()}: local steps of this model may expand distances")
        if contracted:
            # Their gradients are r·x, shrunk to 0 where ‖x‖² overflows: zeros say the same, and take no longer.
            finite = torch.isfinite((x**2).sum(1) + y)
            x, y = torch.where(finite[:, None], x, 0), torch.where(finite, y, 0)
        steps = Steps(x, y, clip, stepsize, noise, base, curvature)
        done = self._compiled_steps(weights, steps) if gpu.runs_on_host(weights) else None
        if done is None:
            return sequential_steps(self, weights, steps)
        again = ~torch.isfinite(done).all(1)
        if self._terms:
            longest = 0.0 if base is None else float(base.abs().max())
            moves = len(x) * stepsize * (clip + noise * longest)
            again |= ~within_reach(x, y, weights, clip, self._terms, moves)
        if bool(again.any()):
            done[again] = sequential_steps(self, weights[again], steps.for_points(again))
        return done

    def chain_steps(
        self,
        weights: Tensor,
        x: Tensor,
        y: Tensor,
        clip: Tensor,
        stepsize: Tensor,
        scale: Tensor,
        draws: Tensor | None,
        *,
        contracted: bool = False,
    ) -> Tensor | None:
        """Models (S, G, d) after each of S silos' K steps from `weights` (G, d), all chains at once on a device.

        x (S, K, features), y (S, K), scale (S, G), draws (S, K, d). None where the model has no such form.
        """
        curvature = self.curvature if contracted else 0.0
        if curvature is None:
            raise ValueError(f"{type(self).__name__.lower()}: local steps of this model may expand distances")
        if self.steps_program is None:
            return None
        try:
            from silodp.models.gpu import triton_steps  # comes with PyTorch's CUDA builds alone
        except ImportError:
            return None
        return triton_steps.chain_steps(*self.steps_program, weights, x, y, clip, stepsize, scale, draws, curvature)

    @property
    def steps_program(self) -> tuple[str, tuple[int, ...]] | None:
        """Name of the Triton program that takes the model's local steps, and the sizes it asks for."""
        return None

    def _compiled_steps(self, weights: Tensor, steps: Steps) -> Tensor | None:
        """The same by a compiled CPU kernel, where the model has one; points it fails at are not finite."""
        return None

    @property
    def _terms(self) -> int:
        """`terms` of `within_reach` for `_compiled_steps`; 0 where that kernel bounds its squares from below."""
        return 0


class Classifier(Model):
    """A model with one logit a class, (G, B, classes), and cross-entropy loss."""

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        chosen = outputs.gather(2, y.expand(len(outputs), -1)[..., None]).squeeze(2)
        return torch.logsumexp(outputs, dim=2) - chosen

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs.argmax(2) != y).to(outputs.dtype)


class Network(Classifier):
    """A classifier of layers whose tensors are weights and biases in turn."""

    def initial(self, generator: np.random.Generator) -> np.ndarray:
        """Uniform within ±1/√(inputs of a unit), weights and biases; zero would be a saddle that units never leave."""
        parts = []
        for weight, bias in zip(self.blocks[::2], self.blocks[1::2], strict=True):
            bound = float(np.prod(weight.shape[1:])) ** -0.5
            parts += [generator.uniform(-bound, bound, size=b.stop - b.start) for b in (weight, bias)]
        return np.concatenate(parts)


# Records of one sum on a device, where all silos' come together.
RECORDS_AT_ONCE = 4096
# Squares below this are taken for it, so that a factor which underflows cannot hide a product with a huge one.
LEAST_SQUARE = torch.finfo(torch.float32).tiny


def squares(values: Tensor) -> Tensor:
    """values², at least `LEAST_SQUARE`: factors of a squared norm, which may then err upwards only."""
    return (values**2).clamp_(min=LEAST_SQUARE)


def square_sums(values: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """Σ values² over `dim`, at least `LEAST_SQUARE`, as in `squares`."""
    return (values**2).sum(dim, keepdim=keepdim).clamp_(min=LEAST_SQUARE)


def clip_factors(squared_norms: Tensor, clip: Tensor) -> Tensor:
    """min(1, L/‖g‖) for squared norms (B, G) and clips (G,); a zero gradient keeps factor 1."""
    return (clip * torch.rsqrt(squared_norms)).clamp_(max=1.0)


def finite_records(x: Tensor) -> tuple[Tensor, Tensor]:
    """(x with zeros for records that are not finite, (B,) which are finite): by a mask, as long for any x."""
    finite = torch.isfinite(x).all(1)
    return torch.where(finite[:, None], x, 0), finite


def zero_unless_finite(gradient_sum: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates `Model.clipped_gradient_sum`: a record whose gradient or its norm is not finite contributes zero.

    Without it one such record turns the whole message into NaN, which tells that it was drawn at every ε. Going through
    the records one by one takes long, which tells it too: with a finite clip a model leaves such records out by a mask.
    """

    @functools.wraps(gradient_sum)
    def guarded(model: Any, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        if not gpu.runs_on_host(weights) and len(x) > RECORDS_AT_ONCE:
            cuts = zip(x.split(RECORDS_AT_ONCE), y.split(RECORDS_AT_ONCE), strict=True)
            return functools.reduce(torch.add, (guarded(model, weights, *part, clip) for part in cuts))
        total = gradient_sum(model, weights, x, y, clip)
        if len(x) == 1:
            return torch.where(torch.isfinite(total).all(1, keepdim=True), total, 0.0)
        if not gpu.runs_on_host(weights):  # where such records were left out: a look at the sum would wait for it
            return total
        if math.isfinite(total.sum().item()):
            return total
        again = ~torch.isfinite(total).all(1)
        found = torch.zeros_like(total[again])
        for k in range(len(x)):
            found += guarded(model, weights[again], x[k : k + 1], y[k : k + 1], clip[again])
        total[again] = found
        return total

    return guarded


def sequential_steps(model: Model, weights: Tensor, steps: Steps) -> Tensor:
    """`Steps` of any model on any device, one step at a time."""
    x, y, clip, stepsize, noise, base, curvature = steps
    for k in range(len(x)):
        if curvature:
            shrink = (2 / (stepsize * curvature * (x[k] ** 2).sum())).clamp(max=1)
            gradient = model.clipped_gradient_sum(weights, x[k : k + 1], y[k : k + 1], clip / shrink)
            gradient = torch.where(shrink[:, None] > 0, gradient * shrink[:, None], 0)
        else:
            gradient = model.clipped_gradient_sum(weights, x[k : k + 1], y[k : k + 1], clip)
        if base is not None:
            gradient = torch.addcmul(gradient, noise[:, None], base[k])
        weights = torch.addcmul(weights, stepsize[:, None], gradient, value=-1)
    return weights


def within_reach(
    x: Tensor, y: Tensor, weights: Tensor, clip: Tensor, terms: int, moves: Tensor | float = 0.0
) -> Tensor:
    """(G,) whether no factor of a squared norm can underflow beside another that is so large that this matters.

    The other factor has to stay below L/√tiny. At most `terms` products of a weight and a feature are added up,
    counting layers, and a weight moves by at most `moves` (G,) while the kernel runs.
    """
    longest = max(float(x.abs().max()), float(y.abs().max()), 1.0)
    reach = (weights.abs().amax(1) + moves + 1) * (longest * 8 * terms)
    return torch.isinf(clip) | (reach <= clip * (0.1 * torch.finfo(x.dtype).tiny ** -0.5))


def softmax_residual(outputs: Tensor, y: Tensor) -> Tensor:
    """Derivative of the cross-entropy by the logits, (G, B, classes)."""
    residual = torch.softmax(outputs, dim=2)
    residual[:, torch.arange(len(y), device=y.device), y] -= 1
    return residual
