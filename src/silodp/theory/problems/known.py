"""Problems whose constants are known exactly: losses, gradients, Lipschitz and smoothness constants, and optima.

Each class is a `Problem`. `draw` gives records as rows of a float64 matrix. `optimum(records)`, where a check needs the
empirical risk, minimises the mean loss over the parameter set, in closed form or with a certificate: its `gap` is a
proven bound on F(w) − F*. All parameter sets are balls of radius D around 0, written W. Losses and gradients broadcast
over leading axes too, as in w (trials, 1, d) with records (trials, n, width).
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from silodp.theory.problems.base import Array, Constants, Optimum, accelerated, dot, project


@dataclass(frozen=True)
class LinearOnBall:
    """f(w, x) = −(L/D)⟨w, x⟩ with x in {±D/√d}^d: the convex paper's hard instance (Theorem E.3, part 1).

    Every record's gradient has norm L exactly; smooth with every β. `bias` is the mean of a coordinate's sign; ±1 makes
    the data constant.
    """

    d: int
    L: float = 1.0
    D: float = 1.0
    bias: float = 0.0

    @property
    def constants(self) -> Constants:
        """β = 0: the loss is linear."""
        return Constants(self.L, 0.0, 0.0, self.D)

    def draw(self, count: int, generator: np.random.Generator) -> Array:
        up = generator.random((count, self.d)) < (1 + self.bias) / 2
        return np.where(up, 1.0, -1.0) * (self.D / np.sqrt(self.d))

    def losses(self, w: Array, records: Array) -> Array:
        return -(self.L / self.D) * dot(records, w)

    def gradients(self, w: Array, records: Array) -> Array:
        return -(self.L / self.D) * records

    def excess_population_risk(self, w: Array) -> float:
        """F(w) − F* exactly."""
        mean = np.full(self.d, self.bias * self.D / np.sqrt(self.d))
        return float(-(self.L / self.D) * (mean @ w) + self.L * np.linalg.norm(mean))


@dataclass(frozen=True)
class Quadratic:
    """f(w, x) = ½(w−x)ᵀ diag(h) (w−x), h geometric from μ to β, x in {±D/√d}^d, on the ball of radius D.

    With μ = β = 1 it is the strongly convex hard instance (convex paper, Theorem E.3, part 2; footnote 17).
    """

    d: int
    mu: float = 1.0
    beta: float = 1.0
    D: float = 1.0
    bias: float = 0.0

    @property
    def curvatures(self) -> Array:
        """The diagonal h, shape (d,)."""
        return np.geomspace(self.mu, self.beta, self.d) if self.d > 1 else np.array([self.beta])

    @property
    def constants(self) -> Constants:
        """L = sup ‖diag(h)(w−x)‖ ≤ 2βD, as ‖w−x‖ ≤ 2D; reached at w = −x for μ = β."""
        mu = float(self.curvatures.min())
        return Constants(2 * self.beta * self.D, self.beta, mu, self.D)

    def draw(self, count: int, generator: np.random.Generator) -> Array:
        return LinearOnBall(self.d, 1.0, self.D, self.bias).draw(count, generator)

    def losses(self, w: Array, records: Array) -> Array:
        return 0.5 * ((w - records) ** 2 @ self.curvatures)

    def gradients(self, w: Array, records: Array) -> Array:
        return (w - records) * self.curvatures

    def optimum(self, records: Array) -> Optimum:
        """Closed form: the mean record, which lies in the ball as all records do."""
        w = records.mean(axis=0)
        return Optimum(w, float(self.losses(w, records).mean()), 0.0)

    def excess_population_risk(self, w: Array) -> float:
        """F(w) − F* exactly: ½ of the weighted squared distance to the mean record."""
        return float(0.5 * ((w - self.bias * self.D / np.sqrt(self.d)) ** 2 @ self.curvatures))


@dataclass(frozen=True)
class _Margin:
    """Losses ℓ(y⟨w, a⟩) of a margin: features a of norm 1, label y = ±1, stored as the row y·a; W is a ball."""

    d: int
    D: float = 1.0
    noise: float = 0.1

    def draw(self, count: int, generator: np.random.Generator) -> Array:
        """Rows y·a, shape (count, d): a uniform on the sphere, y its first sign, flipped by chance `noise`."""
        a = generator.standard_normal((count, self.d))
        a /= np.linalg.norm(a, axis=1, keepdims=True)
        signs = np.where(a[:, 0] >= 0, 1.0, -1.0) * np.where(generator.random(count) < self.noise, -1.0, 1.0)
        return a * signs[:, None]


@dataclass(frozen=True)
class LogisticOnBall(_Margin):
    """f(w, ya) = ln(1 + exp(−y⟨w, a⟩)) on the ball of radius D, ‖a‖ = 1; labels flip with probability `noise`."""

    @property
    def constants(self) -> Constants:
        """L = 1/(1+e^−D), reached at margin −D; β = 1/4."""
        return Constants(float(expit(self.D)), 0.25, 0.0, self.D)

    def losses(self, w: Array, records: Array) -> Array:
        return np.logaddexp(0.0, -dot(records, w))

    def gradients(self, w: Array, records: Array) -> Array:
        return -expit(-dot(records, w))[..., None] * records

    def optimum(self, records: Array) -> Optimum:
        """Accelerated projected gradient to a Frank–Wolfe gap ⟨∇F(w), w⟩ + D‖∇F(w)‖ of 1e-12: at least F(w) − F*."""

        def step(v: Array) -> Array:
            return project(v - self.gradients(v, records).mean(axis=0) / 0.25, self.D)

        def remaining_gap(w: Array) -> float:
            gradient = self.gradients(w, records).mean(axis=0)
            return max(float(gradient @ w) + self.D * float(np.linalg.norm(gradient)), 0.0)

        w, gap = accelerated(step, remaining_gap, self.d, tolerance=1e-12, most=100_000)
        return Optimum(w, float(self.losses(w, records).mean()), gap)


@dataclass(frozen=True)
class HingeOnBall(_Margin):
    """f(w, ya) = max(0, 1 − y⟨w, a⟩) on the ball of radius D, ‖a‖ = 1: convex, not smooth."""

    @property
    def constants(self) -> Constants:
        """L = 1; no β."""
        return Constants(1.0, None, 0.0, self.D)

    def losses(self, w: Array, records: Array) -> Array:
        return np.maximum(0.0, 1.0 - dot(records, w))

    def gradients(self, w: Array, records: Array) -> Array:
        """A subgradient of each record, shape (n, d): 0 at the kink."""
        return -np.where(dot(records, w) < 1.0, 1.0, 0.0)[..., None] * records

    def envelope_gradients(self, w: Array, records: Array, beta: float) -> Array:
        """Gradient of each record's β-Moreau envelope over all of ℝ^d, shape (n, d): −clip(β(1−m)/‖a‖², 0, 1)·ya."""
        slack = beta * (1.0 - dot(records, w)) / dot(records, records)
        return -np.clip(slack, 0.0, 1.0)[..., None] * records

    def optimum(self, records: Array) -> Optimum:
        """Dual box problem max Σα_i/n − D‖Σα_i y_i a_i/n‖ over α in [0, 1]^n; the gap is primal less dual.

        The dual is solved smoothly (norm → √(‖·‖²+s²), s shrinking) by L-BFGS-B; weak duality proves the gap whatever
        α.
        """
        count = len(records)
        best = np.zeros(self.d), float(self.losses(np.zeros(self.d), records).mean())
        alpha, lower = np.full(count, 0.5), 0.0  # hinge losses are never below 0
        for smoothing in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):

            def negative_dual(a: Array, s: float = smoothing) -> tuple[float, Array]:
                v = a @ records / count
                size = np.sqrt(v @ v + s**2)
                return self.D * size - a.mean(), self.D * (records @ v) / (size * count) - 1.0 / count

            options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-14 / count}
            bounds = [(0.0, 1.0)] * count
            alpha = minimize(negative_dual, alpha, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
            v = alpha @ records / count
            lower = max(lower, float(alpha.mean() - self.D * np.linalg.norm(v)))
            w = project(self.D * v / np.sqrt(v @ v + smoothing**2), self.D)
            value = float(self.losses(w, records).mean())
            if value <= best[1]:
                best = w, value
        return Optimum(*best, max(best[1] - lower, 0.0))


@dataclass(frozen=True)
class SparseLeastSquares:
    """f⁰(w, (a, b)) = ½(⟨w, a⟩ − b)², f¹ = penalty·‖w‖₁: proximal-PL. Records are rows (a, b); a in {±1/√d}^d.

    L bounds ‖∇f⁰‖ on the ball of radius D; the problem itself is unconstrained, and all its minimisers lie in that ball
    when D ≥ ‖b‖²/(2n·penalty). b is the sign of the first entry of a, times `label`.
    """

    d: int
    penalty: float = 0.1
    D: float = 10.0
    label: float = 1.0

    @property
    def constants(self) -> Constants:
        """L = D + label, β = 1 as ‖a‖ = 1; μ is that of the data: see `curvature`."""
        return Constants(self.D + self.label, 1.0, 0.0, self.D)

    def curvature(self, records: Array) -> tuple[float, float]:
        """(μ, β) of the mean of f⁰: extreme eigenvalues of its Hessian. F is μ-proximal-PL when μ > 0."""
        a = records[:, :-1]
        values = np.linalg.eigvalsh(a.T @ a / len(a))
        return float(max(values[0], 0.0)), float(values[-1])

    def draw(self, count: int, generator: np.random.Generator) -> Array:
        """Rows (a, b), shape (count, d+1)."""
        a = np.where(generator.random((count, self.d)) < 0.5, -1.0, 1.0) / np.sqrt(self.d)
        return np.column_stack([a, self.label * np.sign(a[:, 0])])

    def losses(self, w: Array, records: Array) -> Array:
        """f⁰ + f¹ of each record, shape (n,)."""
        return 0.5 * (dot(records[..., :-1], w) - records[..., -1]) ** 2 + self.penalty * np.abs(w).sum(axis=-1)

    def gradients(self, w: Array, records: Array) -> Array:
        """Gradient of f⁰ of each record, shape (n, d)."""
        return (dot(records[..., :-1], w) - records[..., -1])[..., None] * records[..., :-1]

    def proximal(self, w: Array, eta: float) -> Array:
        """prox of η·penalty·‖·‖₁: soft thresholding."""
        return np.sign(w) * np.maximum(np.abs(w) - eta * self.penalty, 0.0)

    def optimum(self, records: Array) -> Optimum:
        """FISTA with restarts to a duality gap of 1e-13: ½‖r‖²/n + λ‖w‖₁ − (½‖b‖² − ½‖b − sr‖²)/n, sr dual feasible."""
        a, b, count = records[:, :-1], records[:, -1], len(records)
        eta = 1.0 / max(self.curvature(records)[1], 1e-300)

        def step(v: Array) -> Array:
            return self.proximal(v - eta * (a.T @ (a @ v - b)) / count, eta)

        def remaining_gap(w: Array) -> float:
            residual = b - a @ w
            scale = min(1.0, self.penalty / max(float(np.abs(a.T @ residual).max()) / count, 1e-300))
            dual = (b @ b - (b - scale * residual) @ (b - scale * residual)) / (2 * count)
            primal = residual @ residual / (2 * count) + self.penalty * np.abs(w).sum()
            return float(max(primal - dual, 0.0))

        w, gap = accelerated(step, remaining_gap, self.d, tolerance=1e-13, most=200_000)
        return Optimum(w, float(self.losses(w, records).mean()), gap)


@dataclass(frozen=True)
class SmoothNonconvex:
    """f(w, x) = scale · mean_j (w_j − x_j)²/(1 + (w_j − x_j)²): bounded, smooth, non-convex.

    Per coordinate u²/(1+u²) has slope at most 3√3/8 and second derivative in [−1/2, 2].
    """

    d: int
    scale: float = 1.0
    spread: float = 0.5

    @property
    def constants(self) -> Constants:
        """L = (3√3/8)·scale/√d, β = 2·scale/d."""
        return Constants(3 * np.sqrt(3) / 8 * self.scale / np.sqrt(self.d), 2 * self.scale / self.d, 0.0, np.inf)

    def draw(self, count: int, generator: np.random.Generator) -> Array:
        """Records uniform in [−spread, spread]^d, shape (count, d)."""
        return generator.uniform(-self.spread, self.spread, (count, self.d))

    def losses(self, w: Array, records: Array) -> Array:
        """Loss of each record, shape (n,), in [0, scale)."""
        square = (w - records) ** 2
        return self.scale * (square / (1 + square)).mean(axis=-1)

    def gradients(self, w: Array, records: Array) -> Array:
        u = w - records
        return self.scale / self.d * 2 * u / (1 + u**2) ** 2
