"""How different the silos are: υ*², the mean squared norm of the silos' gradients where their average vanishes.

The convex paper measures heterogeneity so in its experiments: with F̂_i the mean loss over silo i's training records and
w* a minimiser of their average F̂, υ*² = (1/N) Σ_i ‖∇F̂_i(w*)‖². It is 0 when all silos share a minimiser.
"""

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
    """Heterogeneity of a partition at the point that Newton's method reached.

    Attributes:
        value: υ*², squared units of the gradient.
        gradient_norm: ‖∇F̂‖ there; 0 at a minimiser.
        converged: whether the point is a minimiser. It is not when the classes can be separated: the loss then has no
            minimiser, falls towards its infimum as the weights grow, and `value` belongs to the last point only.
    """

    value: float
    gradient_norm: float
    converged: bool


def heterogeneity(
    xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], task: Task, classes: int | None = None
) -> Heterogeneity:
    """υ*² of a linear model: squared loss / 2, logistic loss for two classes, softmax cross-entropy for more.

    Args:
        xs: the training features of each silo, shapes (n_i, d); a bias is a constant column of theirs.
        ys: the targets, or the labels 0..classes-1, of each silo.
        task: which loss.
        classes: the number of classes; None for regression.

    Raises:
        ValueError: no silos, a silo without records, or labels outside 0..classes-1.
    """
    if not xs or len(xs) != len(ys) or any(len(x) == 0 or len(x) != len(y) for x, y in zip(xs, ys, strict=False)):
        raise ValueError("heterogeneity needs at least one silo, and in each as many labels as records, at least one")
    features = [np.asarray(x, dtype=np.float64) for x in xs]
    if task == "regression":
        return _regression(features, [np.asarray(y, dtype=np.float64) for y in ys])
    if task != "classification" or classes is None or classes < 2:
        raise ValueError(f"task is {task!r} with {classes} classes; regression, or classification with 2 or more")
    labels = [np.asarray(y, dtype=np.int64) for y in ys]
    if any(y.min() < 0 or y.max() >= classes for y in labels):
        raise ValueError(f"labels must lie between 0 and {classes - 1}")
    return _classification(features, labels, classes)


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
    share = np.concatenate([np.full(len(one), 1 / (len(xs) * len(one))) for one in xs])
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
    ends = np.cumsum([len(one) for one in xs])[:-1]
    residuals = np.split(_residuals(probabilities, y), ends)
    gradients = np.array([(r.T @ one / len(one)).ravel() for r, one in zip(residuals, xs, strict=True)])
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
    """Second derivatives of the loss, shape (outputs·d, outputs·d)."""
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
