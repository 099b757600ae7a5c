"""How different the silos are: υ*² = (1/N) Σ_i ‖∇F̂_i(w*)‖² at a minimiser w* of their average loss (convex paper)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg
import scipy.special

Task = Literal["classification", "regression"]

_ITERATIONS = 100
_GRADIENT = 1e-9
_STEP = 1e-6


@dataclass(frozen=True)
class Heterogeneity:
    """υ*² and ‖∇F̂‖ of a partition where Newton's method ended.

    `converged` is false where classes can be separated: the loss then has no minimiser.
    """

    value: float
    gradient_norm: float
    converged: bool


def heterogeneity(
    xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], task: Task, classes: int | None = None
) -> Heterogeneity:
    """υ*² of a linear model: squared loss / 2, logistic loss for two classes, softmax cross-entropy for more.

    `xs` are each silo's training features (n_i, d); `ys` the targets, or the labels 0..classes-1.
    """
    features = [np.asarray(x, dtype=np.float64) for x in xs]
    if task == "regression":
        return _regression(features, [np.asarray(y, dtype=np.float64) for y in ys])
    assert classes is not None
    return _classification(features, [np.asarray(y, dtype=np.int64) for y in ys], classes)


def _regression(xs: list[np.ndarray], ys: list[np.ndarray]) -> Heterogeneity:
    # Least squares over all records, each weighted so that silos count equally: no squared condition number.
    weights = [1 / np.sqrt(len(xs) * len(x)) for x in xs]
    design = np.concatenate([w * x for w, x in zip(weights, xs, strict=True)])
    target = np.concatenate([w * y for w, y in zip(weights, ys, strict=True)])
    minimiser = scipy.linalg.lstsq(design, target)[0]
    gradients = np.array([x.T @ (x @ minimiser - y) / len(x) for x, y in zip(xs, ys, strict=True)])
    scale = max(np.linalg.norm(design.T @ target), np.linalg.norm(gradients, axis=1).max())
    return _measure(gradients, converged=bool(np.linalg.norm(gradients.mean(axis=0)) <= _GRADIENT * max(scale, 1.0)))


def _classification(xs: list[np.ndarray], ys: list[np.ndarray], classes: int) -> Heterogeneity:
    """Newton's method with a line search; two classes need one weight vector, C classes C of them."""
    outputs = 1 if classes == 2 else classes
    x, y = np.concatenate(xs), np.concatenate(ys)
    share = np.concatenate([np.full(len(part), 1 / (len(xs) * len(part))) for part in xs])
    w = np.zeros((outputs, x.shape[1]))
    loss, gradient, probabilities = _evaluate(w, x, y, share)
    converged, full_rank = False, 0
    for iteration in range(_ITERATIONS):
        # The softmax loss does not change along common shifts of all weights, hence the least-norm step.
        solution, _, rank, _ = scipy.linalg.lstsq(_hessian(probabilities, x, share), gradient.ravel(), cond=1e-13)
        # Curvature is lost in a direction only on the way to infinity, where the classes can be separated.
        full_rank = rank if iteration == 0 else full_rank
        if rank < full_rank:
            break
        step = -solution.reshape(w.shape)
        # Both: without a minimiser the gradient vanishes too, but the steps keep growing the weights.
        small = np.linalg.norm(gradient) <= _GRADIENT
        if small and np.linalg.norm(step) <= _STEP * (1 + np.linalg.norm(w)):
            converged = True
            break
        slope = float(np.vdot(gradient, step))
        length = 1.0
        while length > 1e-10:
            trial = _evaluate(w + length * step, x, y, share)
            if trial[0] <= loss + 1e-4 * length * slope + 1e-15:
                break
            length /= 2
        else:
            break
        w = w + length * step
        loss, gradient, probabilities = trial
    ends = np.cumsum([len(part) for part in xs])[:-1]
    residuals = np.split(_residuals(probabilities, y), ends)
    gradients = np.array([(r.T @ part / len(part)).ravel() for r, part in zip(residuals, xs, strict=True)])
    return _measure(gradients, converged)


def _evaluate(w: np.ndarray, x: np.ndarray, y: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The loss, its gradient (outputs, d), and the probabilities (n, outputs) of label 1 or of every label."""
    scores = x @ w.T
    if len(w) == 1:
        probabilities = scipy.special.expit(scores)
        losses = np.logaddexp(0.0, np.where(y == 1, -scores[:, 0], scores[:, 0]))
    else:
        logarithms = scipy.special.log_softmax(scores, axis=1)
        probabilities = np.exp(logarithms)
        losses = -logarithms[np.arange(len(y)), y]
    return float(share @ losses), (share[:, None] * _residuals(probabilities, y)).T @ x, probabilities


def _residuals(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The derivative of each record's loss by its scores, shape (n, outputs)."""
    if probabilities.shape[1] == 1:
        return probabilities - y[:, None]
    return probabilities - np.eye(probabilities.shape[1])[y]


def _hessian(probabilities: np.ndarray, x: np.ndarray, share: np.ndarray) -> np.ndarray:
    outputs, d = probabilities.shape[1], x.shape[1]
    hessian = np.empty((outputs, d, outputs, d))
    for a in range(outputs):
        for b in range(a, outputs):
            curvature = probabilities[:, a] * ((1.0 if a == b else 0.0) - probabilities[:, b])
            block = x.T @ ((share * curvature)[:, None] * x)
            hessian[a, :, b], hessian[b, :, a] = block, block
    return hessian.reshape(outputs * d, outputs * d)


def _measure(gradients: np.ndarray, converged: bool) -> Heterogeneity:
    return Heterogeneity(
        value=float(np.square(gradients).sum(axis=1).mean()),
        gradient_norm=float(np.linalg.norm(gradients.mean(axis=0))),
        converged=converged,
    )
