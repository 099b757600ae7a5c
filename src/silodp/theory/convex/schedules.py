"""Parameters that the convex paper's theorems prescribe for their algorithms: rounds, batch, noise, steps, weights.

`SCHEDULES["theorem-2.1"](n=…, …)` gives a `Schedule`. Rounds enter the noise through ln(2.5R/δ) and the smallest batch
depends on them too, so R is the smallest fixed point that the search finds of "R is at least what the theorem asks at
R". Accelerated schedules come as stages; within a stage, α_r = 2/(r+1) and η_r = 4υ/(r(r+1)), r = 1, 2, …. Ξ is
`privacy_term`, Υ² is `silo_variance`, and Δ = LD, φ = L unless given. K is the smallest batch allowed by default.

With `reading="printed"` Algorithm 1 averages w_0 … w_{R−1}: with R = 1 the output is then w_0, whatever the data.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from math import ceil, log, sqrt
from typing import Any

import numpy as np

from silodp.theory.convex.privacy import check_epsilon, one_pass_noise, smallest_batch
from silodp.theory.convex.upper import message_variance, privacy_term, silo_variance
from silodp.theory.theorem import SYMBOLS, AssumptionError, Reading, checked, require

MOST_ROUNDS = 10**9


@dataclass(frozen=True)
class Stage:
    """One stage of Algorithm 2: its rounds, the factor υ of its steps, and the strong convexity μ its steps use."""

    rounds: int
    upsilon: float
    mu: float

    @property
    def alphas(self) -> np.ndarray:
        """α_r = 2/(r+1) for r = 1 … rounds, shape (rounds,)."""
        return 2 / (np.arange(1, self.rounds + 1) + 1)

    @property
    def etas(self) -> np.ndarray:
        """η_r = 4υ/(r(r+1)) for r = 1 … rounds, shape (rounds,), in the unit of β."""
        r = np.arange(1, self.rounds + 1, dtype=float)
        return 4 * self.upsilon / (r * (r + 1))


@dataclass(frozen=True)
class Schedule:
    """What a theorem prescribes at one point: R `rounds`, K records a `batch`, noise of variance `sigma2` a coordinate.

    `step` is Algorithm 1's η, None for Algorithm 2, whose `stages` are empty for Algorithm 1. `strong` is μ of the
    weights γ_r = (1−μη)^(−(r+1)), 0 for uniform ones; `envelope` β of the Moreau envelope that replaces the loss, or
    None; `regularisation` λ of the added (λ/2)‖w‖². The output averages from w_`first_iterate`, 0 as printed.
    """

    rounds: int
    batch: int
    sigma2: float
    step: float | None = None
    strong: float = 0.0
    envelope: float | None = None
    regularisation: float = 0.0
    stages: tuple[Stage, ...] = ()
    first_iterate: int = 1
    name: str = ""

    @property
    def steps(self) -> np.ndarray:
        """η_r of Algorithm 1, shape (rounds,)."""
        if self.step is None:
            raise ValueError(f"schedule {self.name} is of Algorithm 2: its steps are in its stages")
        return np.full(self.rounds, self.step)

    @property
    def weights(self) -> np.ndarray:
        """γ_r over their sum, shape (rounds,), for the iterates from `first_iterate` on."""
        # Divided by the largest, (1−μη)^(−R), they cannot overflow.
        decay = 0.0 if self.step is None else self.strong * self.step
        powers = (1 - decay) ** np.arange(self.rounds - 1, -1, -1, dtype=float)
        return powers / powers.sum()


SCHEDULES: dict[str, Callable[..., Schedule]] = {}


def schedule(name: str) -> Callable[[Callable[..., Schedule]], Callable[..., Schedule]]:
    """Register a schedule under `name`, and check the parameters of each call against the theorems' symbols."""

    def register(function: Callable[..., Schedule]) -> Callable[..., Schedule]:
        @wraps(function)
        def named_schedule(**parameters: Any) -> Schedule:
            return replace(function(**parameters), name=name)

        SCHEDULES[name] = checked(name, named_schedule, SYMBOLS)
        return SCHEDULES[name]

    return register


def _rounds(needed: Callable[[int], float]) -> int:
    """Smallest R found with R ≥ needed(R), by doubling and bisection; `needed` grows slower than R."""
    high = 1
    while needed(high) > high:
        high *= 2
        if high > MOST_ROUNDS:
            raise AssumptionError(f"the theorem asks for more than {MOST_ROUNDS} rounds here")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if needed(middle) <= middle else (middle, high)
    return high


def _guess(K, n, R, epsilon, delta) -> int:
    return smallest_batch(n, R, epsilon, delta) if K is None else K


def _sized(needed, K, n, L, epsilon, delta) -> Schedule:
    """Rounds R ≥ needed(R), a batch K that they allow, and the noise for both, of Algorithms 1 and 2."""
    check_epsilon(epsilon, delta)
    R = _rounds(needed)
    least, batch = smallest_batch(n, R, epsilon, delta), _guess(K, n, R, epsilon, delta)
    require(least <= batch <= n, "batch size for amplification", "K", batch, f"between {least} and n = {n}")
    return Schedule(R, batch, 256 * L**2 * R * privacy_term(n, R, epsilon, delta))


def strong_step(R, beta, mu, D, variance) -> float:
    """η = min{1/(4β), ln(max{2, (μDR)²/(2 variance)})/(μR)}, the step of strongly convex Algorithm 1."""
    return min(1 / (4 * beta), log(max(2.0, (mu * D * R) ** 2 / (2 * variance))) / (mu * R))


def _convex_schedule(needed, smoothness, n, d, M, L, D, epsilon, delta, K, reading) -> tuple[Schedule, float]:
    """Algorithm 1 for convex losses, and β = smoothness(s) with s = min{√n, 1/√(dΞ)}.

    R ≥ needed(R, s) and η = min{1/(4β), D√M s/(LR)}.
    """

    def gain(R):
        return min(sqrt(n), 1 / sqrt(d * privacy_term(n, R, epsilon, delta)))

    plan = _sized(lambda R: needed(R, gain(R)), K, n, L, epsilon, delta)
    s = gain(plan.rounds)
    beta = smoothness(s)
    step = min(1 / (4 * beta), D * sqrt(M) * s / (L * plan.rounds))
    return replace(plan, step=step, first_iterate=1 if reading == "right" else 0), beta


def _plain_strong(smoothness, n, d, M, L, D, mu, epsilon, delta, K, reading) -> Schedule:
    """Algorithm 1 for strongly convex losses: R ≥ max{(8β/μ) ln(βD²μM/(dL²Ξ)), 1/(dΞ)} with β = smoothness(R)."""

    def rounds_needed(R):
        noise = d * privacy_term(n, R, epsilon, delta)
        beta = smoothness(R)
        return max(8 * beta / mu * log(max(beta * D**2 * mu * M / (L**2 * noise), 1.0)), 1 / noise)

    plan = _sized(rounds_needed, K, n, L, epsilon, delta)
    variance = 4 * L**2 / (M * plan.batch) + d * plan.sigma2 / M
    step = strong_step(plan.rounds, smoothness(plan.rounds), mu, D, variance)
    return replace(plan, step=step, strong=mu, first_iterate=1 if reading == "right" else 0)


@schedule("theorem-2.1")
def theorem_2_1(*, n, d, M, L, D, beta, epsilon, delta, K=None, reading="right"):
    """Algorithm 1, smooth convex, i.i.d. silos (convex paper, Theorem 2.1, part 1).

    R = ⌈max{βD√M/L·s, s²/K}⌉, η = min{1/(4β), D√M s/(LR)}, s = min{√n, 1/√(dΞ)}; uniform weights on w_1 … w_R.
    """

    def rounds_needed(R, s):
        return max(beta * D * sqrt(M) / L * s, s**2 / _guess(K, n, R, epsilon, delta))

    return _convex_schedule(rounds_needed, lambda s: beta, n, d, M, L, D, epsilon, delta, K, reading)[0]


@schedule("theorem-2.1-strong")
def theorem_2_1_strong(*, n, d, M, L, D, beta, mu, epsilon, delta, K=None, reading="right"):
    """Algorithm 1, smooth strongly convex, i.i.d. silos (convex paper, Theorem 2.1, part 2).

    γ_r = (1−μη)^(−(r+1)).
    """
    return _plain_strong(lambda R: beta, n, d, M, L, D, mu, epsilon, delta, K, reading)


@schedule("theorem-2.2")
def theorem_2_2(*, n, d, M, L, D, epsilon, delta, K=None, reading="right"):
    """Algorithm 1 on the envelope of a non-smooth convex loss (convex paper, Theorem 2.2, part 1).

    β = L√M s/D, R = ⌈M s²⌉ with s = min{√n, 1/√(dΞ)}, and Theorem 2.1's step.
    """

    def smoothness(s):
        return L * sqrt(M) * s / D

    plan, beta = _convex_schedule(lambda R, s: M * s**2, smoothness, n, d, M, L, D, epsilon, delta, K, reading)
    return replace(plan, envelope=beta)


@schedule("theorem-2.2-strong")
def theorem_2_2_strong(*, n, d, M, L, D, mu, epsilon, delta, K=None, reading="right"):
    """Algorithm 1 on the envelope of a non-smooth strongly convex loss (convex paper, Theorem 2.2, part 2).

    β = μM min{n, 1/(dΞ)}, and Theorem 2.1's rounds and step at that β.
    """

    def smoothness(R):
        return mu * M * min(n, 1 / (d * privacy_term(n, R, epsilon, delta)))

    plan = _plain_strong(smoothness, n, d, M, L, D, mu, epsilon, delta, K, reading)
    return replace(plan, envelope=smoothness(plan.rounds))


def one_stage(R: int, D: float, beta: float, V: float) -> tuple[float, Stage]:
    """λ = V/(2D√R) and the stage on F + (λ/2)‖w‖²; υ = 2(β+λ) is the multi-stage rule where its noise part is off."""
    strength = V / (2 * D * sqrt(R))
    return strength, Stage(R, 2 * (beta + strength), strength)


def multi_stage(
    rounds: int, beta: float, mu: float, Delta: float, V: float, reading: Reading = "right"
) -> tuple[Stage, ...]:
    """Stages of Algorithm 2 for strongly convex losses within `rounds` rounds (convex paper, Appendix D.4).

    R_k = ⌈max{4√(2β/μ), 128V²/(3μΔ2^−(k+1))}⌉ and υ_k = max{2β, √(μV² R_k(R_k+1)(R_k+2)/(3Δ2^−(k−1)))}: balancing the
    stage's start term, of order υ/R², with its noise term, of order V²R/υ, puts the product into the numerator. Read as
    a denominator (`reading="printed"`; the typesetting leaves both open) the second entry never leads. A last stage
    that would not fit is cut to the rounds left.
    """
    stages: list[Stage] = []
    left = rounds
    while left > 0:
        k = len(stages) + 1
        wanted = max(4 * sqrt(2 * beta / mu), 128 * V**2 / (3 * mu * Delta * 2.0 ** -(k + 1)))
        count = min(left, ceil(wanted)) if wanted < left else left
        product = float(count) * (count + 1) * (count + 2)
        base = mu * V**2 / (3 * Delta * 2.0 ** -(k - 1))
        noise = sqrt(base * product if reading == "right" else base / product)
        stages.append(Stage(count, max(2 * beta, noise), mu))
        left -= count
    return tuple(stages)


@schedule("theorem-2.3")
def theorem_2_3(*, n, d, M, L, D, beta, epsilon, delta):
    """Algorithm 2 in one pass, K = 1, R = n, without replacement (convex paper, Theorem 2.3, part 1).

    V² = (5L² + dσ²)/M.
    """
    sigma2 = one_pass_noise(L=L, epsilon=epsilon, delta=delta).value
    strength, stage = one_stage(n, D, beta, sqrt((5 * L**2 + d * sigma2) / M))
    return Schedule(n, 1, sigma2, regularisation=strength, stages=(stage,))


@schedule("theorem-2.3-strong")
def theorem_2_3_strong(*, n, d, M, L, D, beta, mu, epsilon, delta, Delta=None, reading="right"):
    """Multi-stage Algorithm 2 in one pass (convex paper, Theorem 2.3, part 2)."""
    sigma2 = one_pass_noise(L=L, epsilon=epsilon, delta=delta).value
    V = sqrt((5 * L**2 + d * sigma2) / M)
    return Schedule(n, 1, sigma2, stages=multi_stage(n, beta, mu, L * D if Delta is None else Delta, V, reading))


def _accelerated(first, n, d, M, N, L, phi, upsilon, epsilon, delta, K) -> tuple[Schedule, float]:
    """Rounds, batch and noise of Algorithm 2, and V, where R ≥ first(dL²Ξ) and R ≥ (φ²/K + Υ²)/(dL²Ξ)."""
    phi = L if phi is None else phi
    draw = silo_variance(M, N, upsilon)

    def rounds_needed(R):
        noise = d * L**2 * privacy_term(n, R, epsilon, delta)
        return max(first(noise), (phi**2 / _guess(K, n, R, epsilon, delta) + draw) / noise)

    plan = _sized(rounds_needed, K, n, L, epsilon, delta)
    spread = message_variance(d=d, N=N, M=M, K=plan.batch, phi=phi, upsilon=upsilon, sigma=sqrt(plan.sigma2))
    return plan, sqrt(spread.value)


@schedule("theorem-D.1")
def theorem_d_1(*, n, d, M, N, L, D, beta, epsilon, delta, phi=None, upsilon=0.0, K=None):
    """Algorithm 2, smooth convex ERM (convex paper, Theorem D.1, part 1).

    R = ⌈max{(βD√M/√(dL²Ξ))^(1/2), (φ²/K + Υ²)/(dL²Ξ)}⌉, λ = V/(2D√R).
    """

    def first_phase(noise):
        return sqrt(beta * D * sqrt(M / noise))

    plan, V = _accelerated(first_phase, n, d, M, N, L, phi, upsilon, epsilon, delta, K)
    strength, stage = one_stage(plan.rounds, D, beta, V)
    return replace(plan, regularisation=strength, stages=(stage,))


@schedule("theorem-D.1-strong")
def theorem_d_1_strong(
    *, n, d, M, N, L, D, beta, mu, epsilon, delta, phi=None, upsilon=0.0, K=None, Delta=None, reading="right"
):
    """Multi-stage Algorithm 2, smooth strongly convex ERM (convex paper, Theorem D.1, part 2).

    R = ⌈max{√(β/μ) ln(ΔμM/(dL²Ξ)), (φ²/K + Υ²)/(dL²Ξ)}⌉.
    """
    gap = L * D if Delta is None else Delta

    def first_phase(noise):
        return sqrt(beta / mu) * log(max(gap * mu * M / noise, 1.0))

    plan, V = _accelerated(first_phase, n, d, M, N, L, phi, upsilon, epsilon, delta, K)
    return replace(plan, stages=multi_stage(plan.rounds, beta, mu, gap, V, reading))


@schedule("theorem-2.4")
def theorem_2_4(*, n, d, M, N, L, D, epsilon, delta, phi=None, upsilon=0.0, K=None):
    """Algorithm 2 on the envelope, non-smooth convex ERM (convex paper, Theorem 2.4, part 1).

    β = L²√M/(D√(dL²Ξ)), R = ⌈max{L√M/√(dL²Ξ), (φ²/K + Υ²)/(dL²Ξ)}⌉, λ = V/(2D√R).
    """

    def first_phase(noise):
        return L * sqrt(M / noise)

    plan, V = _accelerated(first_phase, n, d, M, N, L, phi, upsilon, epsilon, delta, K)
    beta = L * sqrt(M) / (D * sqrt(d * privacy_term(n, plan.rounds, epsilon, delta)))
    strength, stage = one_stage(plan.rounds, D, beta, V)
    return replace(plan, envelope=beta, regularisation=strength, stages=(stage,))


@schedule("theorem-2.4-strong")
def theorem_2_4_strong(
    *, n, d, M, N, L, D, mu, epsilon, delta, phi=None, upsilon=0.0, K=None, Delta=None, reading="right"
):
    """Multi-stage Algorithm 2 on the envelope, non-smooth strongly convex ERM (convex paper, Theorem 2.4, part 2).

    β = μML²/(dL²Ξ), R = ⌈max{√(β/μ) ln(ΔμM/(dL²Ξ)), (φ²/K + Υ²)/(dL²Ξ)}⌉.
    """
    gap = L * D if Delta is None else Delta

    def first_phase(noise):
        return sqrt(M * L**2 / noise) * log(max(gap * mu * M / noise, 1.0))

    plan, V = _accelerated(first_phase, n, d, M, N, L, phi, upsilon, epsilon, delta, K)
    beta = mu * M / (d * privacy_term(n, plan.rounds, epsilon, delta))
    return replace(plan, envelope=beta, stages=multi_stage(plan.rounds, beta, mu, gap, V, reading))


def theorem_4_1_strong(*, n, d, N, M, L, D, beta, mu, epsilon, delta, sigma, R=None) -> Schedule:
    """Algorithm 1 behind a shuffler, one record a message (convex paper, Theorem 4.1, part 2), with noise of `sigma`.

    R is the least number of rounds allowed by default; step and weights are Theorem 2.1's. The constant in σ² is
    hidden, so the caller gives σ, and the schedule is not among `SCHEDULES`.

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
    step = strong_step(rounds, beta, mu, D, 4 * L**2 / M + d * sigma**2 / M)
    return Schedule(rounds, 1, sigma**2, step, mu, name="theorem-4.1-strong")
