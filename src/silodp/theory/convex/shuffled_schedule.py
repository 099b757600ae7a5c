"""What the convex paper's Theorem 4.1 prescribes for shuffled messages, whose noise constant it leaves open."""

from math import ceil, log

from silodp.theory.convex.privacy import check_epsilon
from silodp.theory.convex.schedules import Schedule
from silodp.theory.registry import require


def theorem_4_1_strong(*, n: int, d: int, N: int, M: float, L: float, D: float, beta: float, mu: float, epsilon: float,
                       delta: float, sigma: float, R: int | None = None) -> Schedule:  # fmt: skip
    """Algorithm 1 behind a shuffler, one record a message (convex paper, Theorem 4.1, part 2), with noise of `sigma`.

    R ≥ max{n²N²ε²/M, N/M, (8β/μ) ln(βD²με²n²N²/(dL²)), min{n, ε²n²N²/(dM)}}, the least by default, and Theorem 2.1's
    step and weights. The constant in σ² is hidden, so that σ is the caller's, and this is not among `SCHEDULES`.

    Raises:
        AssumptionError: fewer rounds or fewer silos than the theorem asks for.
    """
    check_epsilon(epsilon, delta)
    square = (epsilon * n * N) ** 2
    inside = max(beta * D**2 * mu * square / (d * L**2), 1.0)
    least = ceil(max(square / M, N / M, 8 * beta / mu * log(inside), min(n, square / (d * M))))
    rounds = least if R is None else R
    require(rounds >= least, "rounds of Theorem 4.1", "R", rounds, f"at least {least}")
    enough = 16 * log(18 * rounds * M**2 / (N * delta))
    require(enough <= M, "enough shuffled messages", "M", M, f"at least {enough:.6g}")
    variance = 4 * L**2 / M + d * sigma**2 / M
    step = min(1 / (4 * beta), log(max(2.0, (mu * D * rounds) ** 2 / (2 * variance))) / (mu * rounds))
    return Schedule("theorem-4.1-strong", rounds, 1, sigma**2, step, mu)
