"""A pure ε0-private report of one vector: a random unit vector that lies more often in a cap around the true direction.

PrivUnit (Bhowmick, Duchi, Freudiger, Kapoor and Rogers 2018, Algorithm 1) with the least noisy cap. A vector v shorter
than 1 is first replaced by ±v/‖v‖, + with probability (1 + ‖v‖)/2, which keeps its mean.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaincinv, gammaln

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cap:
    """The law of V on the sphere given a unit vector u: uniform on the cap ⟨V, u⟩ ≥ γ, or uniform on the rest.

    `height` is γ, `share` the cap's share q of the sphere in d ≥ 2 dimensions, `hit` the probability p of the cap;
    p(1−q)/((1−p)q) = e^ε0 is the largest ratio of two densities. With `scale` 1/E⟨V, u⟩, scale·V has mean u.
    """

    d: int
    height: float
    share: float
    hit: float
    scale: float

    def projection(self, uniform: Array) -> Array:
        """⟨V, u⟩ at quantiles `uniform` in (0, 1), any shape; decreasing in them."""
        inside = self.share * uniform / self.hit
        outside = self.share + (1 - self.share) * (uniform - self.hit) / (1 - self.hit) if self.hit < 1 else inside
        tail = np.where(uniform < self.hit, inside, outside)
        size = np.sqrt(1 - betaincinv((self.d - 1) / 2, 0.5, np.minimum(2 * np.minimum(tail, 1 - tail), 1.0)))
        return np.where(tail <= 0.5, size, -size)


def best_cap(epsilon0: float, d: int) -> Cap:
    """The cap with the smallest scale among those that are ε0-private; ValueError for ε0 not in (0, 500], or d < 2."""
    if not 0 < epsilon0 <= 500:
        raise ValueError(f"epsilon0 = {epsilon0}: must lie above 0 and be at most 500")
    if d < 2 or d != int(d):
        raise ValueError(f"d = {d}: must be an integer and at least 2")
    # The scale has one minimum in γ; a grid finds its neighbourhood, also where it is close to 1.
    grid = np.linspace(0, 1, 101)[:-1]
    best = float(grid[int(np.argmin([cap(epsilon0, d, height).scale for height in grid]))])
    bounds = max(best - 0.01, 0.0), min(best + 0.01, 1 - 1e-9)
    found = minimize_scalar(lambda height: cap(epsilon0, d, height).scale, bounds=bounds, method="bounded")
    return min((cap(epsilon0, d, height) for height in (best, float(found.x))), key=lambda one: one.scale)


def cap(epsilon0: float, d: int, height: float) -> Cap:
    """The ε0-private law with a cap of the given height γ in [0, 1)."""
    q = 0.5 * float(betainc((d - 1) / 2, 0.5, 1 - height**2))
    weight = math.exp(epsilon0)
    total = 1 - q + weight * q
    # ⟨V, u⟩ of a uniform V has density ∝ (1−t²)^((d−3)/2); this is its mean over the cap, times q.
    lever = math.exp(gammaln(d / 2) - gammaln((d + 1) / 2) + (d - 1) / 2 * math.log1p(-(height**2)))
    mean = lever / (2 * math.sqrt(math.pi)) * math.expm1(epsilon0) / total
    return Cap(d, height, q, weight * q / total, 1 / mean if mean > 0 else math.inf)
