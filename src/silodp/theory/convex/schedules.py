"""Parameters that the convex paper's theorems prescribe for their algorithms: rounds, batch, noise, steps, weights.

`SCHEDULES["theorem-2.1"](n=…, …)` gives a `Schedule`. Rounds enter the noise through ln(2.5R/δ) and the smallest batch
depends on them too, so R is the smallest fixed point that the search finds of "R is at least what the theorem asks at
R". Accelerated schedules come as stages; within one, α_r = 2/(r+1) and η_r = 4υ/(r(r+1)), r = 1, 2, ….
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from math import ceil, log, sqrt
from typing import ParamSpec

import numpy as np

from silodp.theory.convex.lemmas import message_variance
from silodp.theory.convex.privacy import check_epsilon, one_pass_noise, smallest_batch
from silodp.theory.convex.upper import privacy_term
from silodp.theory.registry import SYMBOLS, AssumptionError, Reading, require

MOST_ROUNDS = 10**9

P = ParamSpec("P")


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
    """What one theorem prescribes at one point.

    Attributes:
        name: key in `SCHEDULES`.
        rounds: R in all.
        batch: K, records a silo draws in a round.
        sigma2: variance of the noise in a coordinate of a message.
        step: constant step η of Algorithm 1, None for Algorithm 2.
        strong: μ of the weights γ_r = (1−μη)^(−(r+1)); 0 for uniform weights.
        envelope: β of the Moreau envelope that replaces the loss, None when the loss itself is used.
        regularisation: λ of the added (λ/2)‖w‖².
        stages: stages of Algorithm 2, empty for Algorithm 1.
        first_iterate: 1 when the output averages w_1 … w_R, 0 when it averages w_0 … w_{R−1}, as printed.
    """

    name: str
    rounds: int
    batch: int
    sigma2: float
    step: float | None = None
    strong: float = 0.0
    envelope: float | None = None
    regularisation: float = 0.0
    stages: tuple[Stage, ...] = ()
    first_iterate: int = 1

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


def schedule(name: str) -> Callable[[Callable[P, Schedule]], Callable[P, Schedule]]:
    """Register a schedule under `name`, and check each call's parameters against the theorems' symbols."""

    def register(function: Callable[P, Schedule]) -> Callable[P, Schedule]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Schedule:
            values = signature.bind(*args, **kwargs).arguments
            try:
                for parameter, value in values.items():
                    # None is the default of an optional parameter, never a value in range.
                    if value is not None or signature.parameters[parameter].default is inspect.Parameter.empty:
                        symbol = SYMBOLS[parameter]
                        require(symbol.holds(value), symbol.meaning, parameter, value, symbol.allowed)
                if {"mu", "beta"} <= set(values):
                    require(values["mu"] <= values["beta"], "strong convexity below smoothness", "mu", values["mu"],
                            f"at most β = {values['beta']:g}")  # fmt: skip
                if {"M", "N"} <= set(values):
                    require(
                        values["M"] <= values["N"], "silos in a round", "M", values["M"], f"at most N = {values['N']}"
                    )
                return function(*args, **kwargs)
            except AssumptionError as error:
                raise AssumptionError(f"{name}: {error}") from None

        SCHEDULES[name] = checked
        return checked

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


def _batch(K: int | None, n: int, R: int, epsilon: float, delta: float) -> int:
    least = smallest_batch(n, R, epsilon, delta)
    chosen = least if K is None else K
    require(least <= chosen <= n, "batch size for amplification", "K", chosen, f"between {least} and n = {n}")
    return chosen


def _sigma2(L: float, n: int, R: int, epsilon: float, delta: float) -> float:
    return 256 * L**2 * R * privacy_term(n, R, epsilon, delta)


def _guess(K: int | None, n: int, R: int, epsilon: float, delta: float) -> int:
    return smallest_batch(n, R, epsilon, delta) if K is None else K


@schedule("theorem-2.1")
def theorem_2_1(*, n: int, d: int, M: float, L: float, D: float, beta: float, epsilon: float, delta: float,
                K: int | None = None, reading: Reading = "right") -> Schedule:  # fmt: skip
    """Algorithm 1, smooth convex, i.i.d. silos (convex paper, Theorem 2.1, part 1). K: smallest allowed by default.

    R = ⌈max{βD√M/L·s, s²/K}⌉, η = min{1/(4β), D√M s/(LR)}, s = min{√n, 1/√(dΞ)}; uniform weights on w_1 … w_R. With
    `reading="printed"` they stand on w_0 … w_{R−1}: with R = 1 the output is then w_0, whatever the data.
    """
    check_epsilon(epsilon, delta)

    def gain(R: int) -> float:
        return min(sqrt(n), 1 / sqrt(d * privacy_term(n, R, epsilon, delta)))

    def needed(R: int) -> float:
        return max(beta * D * sqrt(M) / L * gain(R), gain(R) ** 2 / _guess(K, n, R, epsilon, delta))

    R = _rounds(needed)
    step = min(1 / (4 * beta), D * sqrt(M) * gain(R) / (L * R))
    return Schedule("theorem-2.1", R, _batch(K, n, R, epsilon, delta), _sigma2(L, n, R, epsilon, delta), step,
                    first_iterate=1 if reading == "right" else 0)  # fmt: skip


@schedule("theorem-2.1-strong")
def theorem_2_1_strong(*, n: int, d: int, M: float, L: float, D: float, beta: float, mu: float, epsilon: float,
                       delta: float, K: int | None = None, reading: Reading = "right") -> Schedule:  # fmt: skip
    """Algorithm 1, smooth strongly convex, i.i.d. silos (convex paper, Theorem 2.1, part 2).

    R = ⌈max{(8β/μ) ln(βD²μM/(dL²Ξ)), 1/(dΞ)}⌉, η = min{1/(4β), ln(max{2, μ²D²R²/(2(4L²/(MK) + dσ²/M))})/(μR)}, and
    γ_r = (1−μη)^(−(r+1)).
    """
    check_epsilon(epsilon, delta)

    def needed(R: int) -> float:
        noise = d * privacy_term(n, R, epsilon, delta)
        return max(8 * beta / mu * log(max(beta * D**2 * mu * M / (L**2 * noise), 1.0)), 1 / noise)

    R = _rounds(needed)
    batch, sigma2 = _batch(K, n, R, epsilon, delta), _sigma2(L, n, R, epsilon, delta)
    variance = 4 * L**2 / (M * batch) + d * sigma2 / M
    step = min(1 / (4 * beta), log(max(2.0, (mu * D * R) ** 2 / (2 * variance))) / (mu * R))
    return Schedule("theorem-2.1-strong", R, batch, sigma2, step, mu, first_iterate=1 if reading == "right" else 0)


@schedule("theorem-2.2")
def theorem_2_2(*, n: int, d: int, M: float, L: float, D: float, epsilon: float, delta: float, K: int | None = None,
                reading: Reading = "right") -> Schedule:  # fmt: skip
    """Algorithm 1 on the envelope of a non-smooth convex loss (convex paper, Theorem 2.2, part 1).

    β = L√M s/D, R = ⌈M s²⌉ with s = min{√n, 1/√(dΞ)}, and Theorem 2.1's step.
    """
    check_epsilon(epsilon, delta)

    def gain(R: int) -> float:
        return min(sqrt(n), 1 / sqrt(d * privacy_term(n, R, epsilon, delta)))

    R = _rounds(lambda r: M * gain(r) ** 2)
    beta = L * sqrt(M) * gain(R) / D
    step = min(1 / (4 * beta), D * sqrt(M) * gain(R) / (L * R))
    return Schedule("theorem-2.2", R, _batch(K, n, R, epsilon, delta), _sigma2(L, n, R, epsilon, delta), step,
                    envelope=beta, first_iterate=1 if reading == "right" else 0)  # fmt: skip


@schedule("theorem-2.2-strong")
def theorem_2_2_strong(*, n: int, d: int, M: float, L: float, D: float, mu: float, epsilon: float, delta: float,
                       K: int | None = None, reading: Reading = "right") -> Schedule:  # fmt: skip
    """Algorithm 1 on the envelope of a non-smooth strongly convex loss (convex paper, Theorem 2.2, part 2).

    β = μM s², R = ⌈max{8M s² ln(βD²μM/(dL²Ξ)), 1/(dΞ)}⌉ with s² = min{n, 1/(dΞ)}, which is Theorem 2.1's R at that β.
    """
    check_epsilon(epsilon, delta)

    def noise(R: int) -> float:
        return d * privacy_term(n, R, epsilon, delta)

    def smoothness(R: int) -> float:
        return mu * M * min(n, 1 / noise(R))

    def needed(R: int) -> float:
        inside = smoothness(R) * D**2 * mu * M / (L**2 * noise(R))
        return max(8 * smoothness(R) / mu * log(max(inside, 1.0)), 1 / noise(R))

    R = _rounds(needed)
    beta = smoothness(R)
    batch, sigma2 = _batch(K, n, R, epsilon, delta), _sigma2(L, n, R, epsilon, delta)
    variance = 4 * L**2 / (M * batch) + d * sigma2 / M
    step = min(1 / (4 * beta), log(max(2.0, (mu * D * R) ** 2 / (2 * variance))) / (mu * R))
    return Schedule("theorem-2.2-strong", R, batch, sigma2, step, mu, beta,
                    first_iterate=1 if reading == "right" else 0)  # fmt: skip


def one_stage(R: int, D: float, beta: float, V: float) -> tuple[float, Stage]:
    """λ = V/(2D√R) and the stage on F + (λ/2)‖w‖²; υ = 2(β+λ) is the multi-stage rule where its noise part is off."""
    strength = V / (2 * D * sqrt(R))
    return strength, Stage(R, 2 * (beta + strength), strength)


def multi_stage(rounds: int, beta: float, mu: float, Delta: float, V: float,
                reading: Reading = "right") -> tuple[Stage, ...]:  # fmt: skip
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
def theorem_2_3(*, n: int, d: int, M: float, L: float, D: float, beta: float, epsilon: float,
                delta: float) -> Schedule:  # fmt: skip
    """Algorithm 2 in one pass, K = 1, R = n, without replacement (convex paper, Theorem 2.3, part 1).

    V² = (5L² + dσ²)/M.
    """
    sigma2 = one_pass_noise(L=L, epsilon=epsilon, delta=delta).value
    strength, stage = one_stage(n, D, beta, sqrt((5 * L**2 + d * sigma2) / M))
    return Schedule("theorem-2.3", n, 1, sigma2, regularisation=strength, stages=(stage,))


@schedule("theorem-2.3-strong")
def theorem_2_3_strong(*, n: int, d: int, M: float, L: float, D: float, beta: float, mu: float, epsilon: float,
                       delta: float, Delta: float | None = None, reading: Reading = "right") -> Schedule:  # fmt: skip
    """Multi-stage Algorithm 2 in one pass (convex paper, Theorem 2.3, part 2). Δ = LD unless given."""
    sigma2 = one_pass_noise(L=L, epsilon=epsilon, delta=delta).value
    V = sqrt((5 * L**2 + d * sigma2) / M)
    stages = multi_stage(n, beta, mu, L * D if Delta is None else Delta, V, reading)
    return Schedule("theorem-2.3-strong", n, 1, sigma2, stages=stages)


def _accelerated_rounds(
    first: Callable[[float], float],
    *,
    n: int,
    d: int,
    M: float,
    N: int,
    L: float,
    phi: float,
    upsilon: float,
    epsilon: float,
    delta: float,
    K: int | None,
) -> tuple[int, int, float, float]:  # fmt: skip
    """R, K, σ² and V of Algorithm 2, where R ≥ first(dL²Ξ) and R ≥ (φ²/K + Υ²)/(dL²Ξ)."""
    check_epsilon(epsilon, delta)
    draw = 0.0 if N == 1 else (1 - (M - 1) / (N - 1)) * upsilon**2

    def needed(R: int) -> float:
        noise = d * L**2 * privacy_term(n, R, epsilon, delta)
        return max(first(noise), (phi**2 / _guess(K, n, R, epsilon, delta) + draw) / noise)

    R = _rounds(needed)
    batch, sigma2 = _batch(K, n, R, epsilon, delta), _sigma2(L, n, R, epsilon, delta)
    spread = message_variance(d=d, N=N, M=M, K=batch, phi=phi, upsilon=upsilon, sigma=sqrt(sigma2))
    return R, batch, sigma2, sqrt(spread.value)


@schedule("theorem-D.1")
def theorem_d_1(*, n: int, d: int, M: float, N: int, L: float, D: float, beta: float, epsilon: float, delta: float,
                phi: float | None = None, upsilon: float = 0.0, K: int | None = None) -> Schedule:  # fmt: skip
    """Algorithm 2, smooth convex ERM (convex paper, Theorem D.1, part 1). φ = L unless given.

    R = ⌈max{(βD√M/√(dL²Ξ))^(1/2), (φ²/K + Υ²)/(dL²Ξ)}⌉, λ = V/(2D√R).
    """
    R, batch, sigma2, V = _accelerated_rounds(
        lambda noise: sqrt(beta * D * sqrt(M / noise)), n=n, d=d, M=M, N=N, L=L, phi=L if phi is None else phi,
        upsilon=upsilon, epsilon=epsilon, delta=delta, K=K)  # fmt: skip
    strength, stage = one_stage(R, D, beta, V)
    return Schedule("theorem-D.1", R, batch, sigma2, regularisation=strength, stages=(stage,))


@schedule("theorem-D.1-strong")
def theorem_d_1_strong(*, n: int, d: int, M: float, N: int, L: float, D: float, beta: float, mu: float, epsilon: float,
                       delta: float, phi: float | None = None, upsilon: float = 0.0, K: int | None = None,
                       Delta: float | None = None, reading: Reading = "right") -> Schedule:  # fmt: skip
    """Multi-stage Algorithm 2, smooth strongly convex ERM (convex paper, Theorem D.1, part 2). Δ = LD unless given.

    R = ⌈max{√(β/μ) ln(ΔμM/(dL²Ξ)), (φ²/K + Υ²)/(dL²Ξ)}⌉.
    """
    gap = L * D if Delta is None else Delta
    R, batch, sigma2, V = _accelerated_rounds(
        lambda noise: sqrt(beta / mu) * log(max(gap * mu * M / noise, 1.0)), n=n, d=d, M=M, N=N, L=L,
        phi=L if phi is None else phi, upsilon=upsilon, epsilon=epsilon, delta=delta, K=K)  # fmt: skip
    stages = multi_stage(R, beta, mu, gap, V, reading)
    return Schedule("theorem-D.1-strong", R, batch, sigma2, stages=stages)


@schedule("theorem-2.4")
def theorem_2_4(*, n: int, d: int, M: float, N: int, L: float, D: float, epsilon: float, delta: float,
                phi: float | None = None, upsilon: float = 0.0, K: int | None = None) -> Schedule:  # fmt: skip
    """Algorithm 2 on the envelope, non-smooth convex ERM (convex paper, Theorem 2.4, part 1). φ = L unless given.

    β = L²√M/(D√(dL²Ξ)), R = ⌈max{L√M/√(dL²Ξ), (φ²/K + Υ²)/(dL²Ξ)}⌉, λ = V/(2D√R).
    """
    R, batch, sigma2, V = _accelerated_rounds(
        lambda noise: L * sqrt(M / noise), n=n, d=d, M=M, N=N, L=L, phi=L if phi is None else phi, upsilon=upsilon,
        epsilon=epsilon, delta=delta, K=K)  # fmt: skip
    beta = L * sqrt(M) / (D * sqrt(d * privacy_term(n, R, epsilon, delta)))
    strength, stage = one_stage(R, D, beta, V)
    return Schedule("theorem-2.4", R, batch, sigma2, envelope=beta, regularisation=strength, stages=(stage,))


@schedule("theorem-2.4-strong")
def theorem_2_4_strong(*, n: int, d: int, M: float, N: int, L: float, D: float, mu: float, epsilon: float, delta: float,
                       phi: float | None = None, upsilon: float = 0.0, K: int | None = None,
                       Delta: float | None = None, reading: Reading = "right") -> Schedule:  # fmt: skip
    """Multi-stage Algorithm 2 on the envelope, non-smooth strongly convex ERM (convex paper, Theorem 2.4, part 2).

    β = μML²/(dL²Ξ), R = ⌈max{√(β/μ) ln(ΔμM/(dL²Ξ)), (φ²/K + Υ²)/(dL²Ξ)}⌉. Δ = LD unless given.
    """
    gap = L * D if Delta is None else Delta
    R, batch, sigma2, V = _accelerated_rounds(
        lambda noise: sqrt(M * L**2 / noise) * log(max(gap * mu * M / noise, 1.0)), n=n, d=d, M=M, N=N, L=L,
        phi=L if phi is None else phi, upsilon=upsilon, epsilon=epsilon, delta=delta, K=K)  # fmt: skip
    beta = mu * M / (d * privacy_term(n, R, epsilon, delta))
    return Schedule("theorem-2.4-strong", R, batch, sigma2, envelope=beta,
                    stages=multi_stage(R, beta, mu, gap, V, reading))  # fmt: skip
