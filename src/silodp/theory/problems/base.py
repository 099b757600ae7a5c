"""What problems with known constants share: their constants and optima, the ball, and a certified solver for it."""

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
    def constants(self) -> Constants: ...

    def draw(self, count: int, generator: np.random.Generator) -> Array: ...

    def losses(self, w: Array, records: Array) -> Array: ...

    def gradients(self, w: Array, records: Array) -> Array: ...

    def optimum(self, records: Array) -> Optimum: ...


def inner(a: Array, b: Array) -> Array:
    """⟨a, b⟩ along the last axis, broadcast over the others."""
    return np.einsum("...j,...j->...", a, b)


def project(w: Array, radius: float) -> Array:
    """The nearest point of the ball of `radius` around 0."""
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


def check_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"problem: {name} = {value} is not allowed, it has to be above 0")


def ball_gap(w: Array, gradient: Array, radius: float) -> float:
    """⟨∇F(w), w⟩ + D‖∇F(w)‖, the Frank–Wolfe gap: at least F(w) − F* for convex F on the ball."""
    return max(float(gradient @ w) + radius * float(np.linalg.norm(gradient)), 0.0)


def minimise_on_ball(problem: Problem, records: Array, radius: float, beta: float, tolerance: float) -> Array:
    """Nesterov's projected gradient with restarts, until the Frank–Wolfe gap is at most `tolerance`."""
    w = v = np.zeros(problem.gradients(np.zeros(records.shape[1]), records).shape[1])
    t = 1.0
    for _ in range(100_000):
        new = project(v - problem.gradients(v, records).mean(axis=0) / beta, radius)
        if (v - new) @ (new - w) > 0:
            t = 1.0  # restart: the momentum points uphill
        following = (1 + np.sqrt(1 + 4 * t * t)) / 2
        v, w, t = new + (t - 1) / following * (new - w), new, following
        if ball_gap(w, problem.gradients(w, records).mean(axis=0), radius) <= tolerance:
            break
    return w
