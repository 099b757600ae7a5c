"""What the non-convex paper's Theorem E.2 prescribes for Prox-PL-SVRG, and asks of what it leaves open."""

from dataclasses import dataclass
from math import ceil, log2, sqrt

from silodp.theory.nonconvex.privacy import svrg_noise
from silodp.theory.registry import require


@dataclass(frozen=True)
class SVRGSchedule:
    """One run of Prox-PL-SVRG.

    Attributes:
        restarts: S.
        rounds: R of each of them, in E epochs of Q steps.
        step: η, in units of 1/β's.
        anchor, difference: σ1 and σ2 of a full gradient's and of a difference's message, in the unit of L.
    """

    restarts: int
    rounds: int
    step: float
    anchor: float
    difference: float


def theorem_e_2(*, n, d, M, L, beta, mu, Delta, epsilon, delta, K, Q, S=None) -> SVRGSchedule:
    """Rounds, restarts, step and noise of Algorithm 2 (non-convex paper, Theorem E.2, part 1).

    R = 12κ, in whole epochs of Q steps, and the noise of `nonconvex-2.2-noise`.

    Args:
        Delta: excess risk of the first iterate.
        K: records of a difference.
        Q: steps of an epoch.
        S: restarts, the least by default.

    Raises:
        AssumptionError: a smaller batch or fewer restarts than the theorem asks for, or ε beyond its range.
    """
    kappa = beta / mu
    # Roots in floating point could miss a batch that is exact.
    require(n**2 <= K**3 * M, "batch of Theorem E.2", "K", K, f"at least (n²/M)^(1/3) = {(n**2 / M) ** (1 / 3):.6g}")
    least = max(1, ceil(log2(max(Delta * mu * M * (epsilon * n) ** 2 / (kappa * d * L**2), 1.0))))
    restarts = least if S is None else S
    require(restarts >= least, "restarts of Theorem E.2", "S", restarts, f"at least {least}")
    epochs = ceil(12 * kappa / Q)
    noise = svrg_noise(n=n, S=restarts, E=epochs, Q=Q, L=L, epsilon=epsilon, delta=delta).terms
    private = noise["smallest_batch"]
    require(private <= K, "batch for privacy", "K", K, f"at least {private:g}")
    step = min(1.0, K**1.5 * sqrt(M) / n) / (8 * beta)
    return SVRGSchedule(restarts, epochs * Q, step, sqrt(noise["sigma1_squared"]), sqrt(noise["sigma2_squared"]))
