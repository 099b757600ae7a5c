"""The base of every problem with known constants: these and its optimum, the ball, and a certified solver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """Constants of a loss on its parameter set; `beta` is None for a non-smooth loss, `mu` 0 without strong convexity.

    Attributes:
        L: Lipschitz constant of every record's (smooth part of the) loss on W.
        beta: smoothness of every record's loss.
        mu: strong convexity of every record's loss, or the PL constant of the mean loss where the class says so.
        D: radius of W.
    """

    L: float
    beta: float | None
    mu: float
    D: float


@dataclass(frozen=True)
class Optimum:
    """A minimiser w, the value F(w) there, and a proven bound `gap` on F(w) − F*; 0 for a closed form."""

    w: Array
    value: float
    gap: float


class Problem(Protocol):
    """What every problem offers. Shapes: w (d,), records (n, width), losses (n,), gradients (n, d)."""

    @property
    def d(self) -> int: ...

    @property
    def constants(self) -> Constants: ...

    def draw(self, count: int, generator: np.random.Generator) -> Array: ...

    def losses(self, w: Array, records: Array) -> Array: ...

    def gradients(self, w: Array, records: Array) -> Array: ...


def dot(a: Array, b: Array) -> Array:
    """⟨a, b⟩ along the last axis, broadcast over the others."""
    return np.einsum("...j,...j->...", a, b)


def project(w: Array, radius: float) -> Array:
    """The nearest point of the ball of `radius` around 0."""
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


def accelerated(
    step: Callable[[Array], Array], gap: Callable[[Array], float], d: int, *, tolerance: float, most: int
) -> tuple[Array, float]:
    """Nesterov's method with restarts from 0, and the gap where it ends: at most `tolerance`, or after `most` steps.

    Args:
        step: proximal gradient step.
        gap: a proven bound on F(w) − F*.
    """
    w = v = np.zeros(d)
    t, left = 1.0, np.inf
    for _ in range(most):
        new = step(v)
        if (v - new) @ (new - w) > 0:
            t = 1.0  # restart: the momentum points uphill
        following = (1 + np.sqrt(1 + 4 * t * t)) / 2
        v, w, t = new + (t - 1) / following * (new - w), new, following
        left = gap(w)
        if left <= tolerance:
            break
    return w, left
