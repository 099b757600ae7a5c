"""What every model offers to the stack, and what its gradients share."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Block:
    """One tensor of a model within its flat parameter vector."""

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        return self.start + int(np.prod(self.shape))


class Model(Protocol):
    """A model over a stack of G flat parameter vectors of length d.

    Records come as features `x` (B, features) and labels `y` (B,): class indices (int64) or targets (floating).
    """

    # Error of a record whose output is not a number: 1 (wrong class), or infinite for a regression.
    worst_error: ClassVar[float]

    @property
    def size(self) -> int:
        """d, the number of parameters."""
        ...

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The tensors that make up the flat vector, in order."""
        ...

    def initial(self, generator: np.random.Generator) -> np.ndarray:
        """A starting point (d,)."""
        ...

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        """Predictions before the loss: (G, B) for one output, (G, B, classes) for several."""
        ...

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Loss of each record, (G, B)."""
        ...

    def errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Error of each record, (G, B): 1 where the class is wrong, the squared error for a regression."""
        ...

    def clipped_gradient_sum(self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        """Sum over the records of each record's gradient scaled to norm at most `clip` (G,); returns (G, d).

        The norm is that of the gradient over the whole parameter vector. A record whose gradient or its norm is not
        finite contributes zero (`zero_unless_finite`).
        """
        ...

    def local_steps(
        self, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor, stepsize: Tensor, noise: Tensor, base: Tensor | None
    ) -> Tensor:
        """One-record steps w ← w − η(clipped gradient + noise·base_k) over the records of x in order; returns (G, d).

        `stepsize`, `noise` are (G,); `base` is (B, d), one base draw a step, or None where no point has noise. The step
        of a record whose gradient or its norm is not finite is noise alone.
        """
        ...


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


GradientSum = Callable[[Any, Tensor, Tensor, Tensor, Tensor], Tensor]


def zero_unless_finite(gradient_sum: GradientSum) -> GradientSum:
    """Decorates `Model.clipped_gradient_sum`: a record whose gradient or its norm is not finite contributes zero.

    Without it one such record turns the whole message into NaN, which tells that it was drawn at every ε. A sum that is
    finite is handed on as it is; else the points concerned are summed again, record by record.
    """

    @functools.wraps(gradient_sum)
    def guarded(model: Any, weights: Tensor, x: Tensor, y: Tensor, clip: Tensor) -> Tensor:
        total = gradient_sum(model, weights, x, y, clip)
        if len(x) == 1:  # without a look at the values, for which a GPU would have to wait
            return torch.where(torch.isfinite(total).all(1, keepdim=True), total, 0.0)
        if math.isfinite(total.sum().item()):
            return total
        again = ~torch.isfinite(total).all(1)
        found = torch.zeros_like(total[again])
        for k in range(len(x)):
            found += guarded(model, weights[again], x[k : k + 1], y[k : k + 1], clip[again])
        total[again] = found
        return total

    return guarded


def sequential_steps(
    model: Model,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    clip: Tensor,
    stepsize: Tensor,
    noise: Tensor,
    base: Tensor | None,
) -> Tensor:
    """`Model.local_steps` for any model and device, one step at a time."""
    for k in range(len(x)):
        gradient = model.clipped_gradient_sum(weights, x[k : k + 1], y[k : k + 1], clip)
        if base is not None:
            gradient = torch.addcmul(gradient, noise[:, None], base[k])
        weights = torch.addcmul(weights, stepsize[:, None], gradient, value=-1)
    return weights


def cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy (G, B) of logits (G, B, classes) against classes (B,)."""
    chosen = outputs.gather(2, y.expand(len(outputs), -1)[..., None]).squeeze(2)
    return torch.logsumexp(outputs, dim=2) - chosen


def softmax_residual(outputs: Tensor, y: Tensor) -> Tensor:
    """Derivative of the cross-entropy by the logits, (G, B, classes)."""
    residual = torch.softmax(outputs, dim=2)
    residual[:, torch.arange(len(y), device=y.device), y] -= 1
    return residual
