"""Check 6: shuffled and central DP along N, within the conditions of Theorem 4.1 (convex paper, strongly convex).

The private term is d/(ε²n²N²) up to logarithms, where ISRL-DP has d/(ε²n²N) (check 3), on a loss whose excess risk is
all noise however little there is of it.
"""

import math
from typing import Any

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.federation.prox import ball
from silodp.privacy.plan import Release
from silodp.privacy.shuffling.shuffled_gaussian import shuffled_noise
from silodp.theory.convex.schedules import Schedule
from silodp.theory.convex.shuffled_schedule import theorem_4_1_strong
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, row, sweep_rows
from silodp.verdicts.checks.prescribed_runs import excess, like_records, logarithm
from silodp.verdicts.checks.stack import TrialFederation, run
from silodp.verdicts.statistics import ratio_interval

SIZE, RECORDS, EPSILON, DELTA = 4, 1, 0.01, 1e-8
# The theorem asks for R ≥ n²Nε² rounds: a small ε keeps them few, and the shuffler's amplification, which is proven for
# local ε0 ≲ 1 only, needs many silos. Below these the noise throws the iterates all over the ball.
SILOS = [4_000_000, 8_000_000, 16_000_000, 32_000_000, 64_000_000]
CLAIMS = {
    "shuffled": ("convex-4.1-strong", -2.0, (-1.0, -3.0)),
    "central": ("convex-E.3-strong", -2.0, (-1.0, -3.0)),
}


def rounds(problem: Quadratic, N: int) -> int:
    """R of Theorem 4.1, for all three."""
    return scheduled(problem, N, 1.0).rounds


def scheduled(problem: Quadratic, N: int, sigma: float) -> Schedule:
    """Theorem 4.1's rounds and steps at one N, M = N, for noise of σ; refused where its conditions are not met."""
    point: dict[str, Any] = {"n": RECORDS, "d": SIZE, "N": N, "M": N, "epsilon": EPSILON, "delta": DELTA}
    own = problem.constants
    assert own.beta is not None
    return theorem_4_1_strong(**point, sigma=sigma, L=own.L, D=own.D, beta=own.beta, mu=own.mu)


def noise(model: str, N: int, R: int) -> float:
    """σ/L of one silo's message under a trust model, all N silos in each of R rounds.

    Shuffled: calibrated by proven bounds. Central: the noise of the mean is the moments form for nN records, and a
    silo's is √N times that, as it would be if silos added it up securely.
    """
    if model == "shuffled":
        return shuffled_noise(EPSILON, N=N, M=N, n=RECORDS, R=R, delta=DELTA).sigma
    return math.sqrt(8 * R * math.log(1 / DELTA) / N) / (RECORDS * EPSILON)


def trust_models(context: Context) -> list[Row]:
    """Slope in N of the excess risk under each trust model, and the risk behind a shuffler over the central one."""
    problem = Quadratic(SIZE, bias=0.5)
    samples = {(model, N): _risk(context.child(model, N), problem, model, N) for model in CLAIMS for N in SILOS}

    def formula(model: str, theorem: str, N: int) -> float:
        constants = problem.constants
        point = {"n": RECORDS, "d": SIZE, "N": N, "M": N, "R": rounds(problem, N), "L": constants.L, "mu": constants.mu,
                 "D": constants.D, "epsilon": EPSILON, "delta": DELTA}  # fmt: skip
        wanted = context.theorems[theorem].parameters
        found = context.theorems[theorem](**{name: value for name, value in point.items() if name in wanted})
        # The proof's step, ln(…)/(μR), leaves its logarithm in the risk, which Õ hides.
        sigma = noise(model, N, rounds(problem, N)) * constants.L
        return found.terms["private"] * logarithm(scheduled(problem, N, sigma))

    rows: list[Row] = []
    for model, (theorem, exponent, neighbours) in CLAIMS.items():
        sweep = Sweep(
            theorem, "N", model, exponent, neighbours, SILOS,
            lambda N, model=model: samples[model, int(N)],  # type: ignore[misc]
            lambda N, model=model, theorem=theorem: formula(model, theorem, int(N)),  # type: ignore[misc]
        )  # fmt: skip
        rows += sweep_rows(sweep, context.streams)
    for N in SILOS:
        ratio = ratio_interval(samples["shuffled", N], samples["central", N], context.streams.generator("ratio", N))
        detail = "above central" if ratio.low > 1 else "not told from central"
        name = "risk of shuffled over central; N ="
        rows.append(row("convex-4.1-strong", name, N, ratio, None, lower=1.0, detail=detail))
    return rows


def _risk(context: Context, problem: Quadratic, model: str, N: int) -> Array:
    """Excess risk of the weighted mean of the iterates, (trials,)."""
    trials, L, R = context.trials(100), problem.constants.L, rounds(problem, N)
    sigma = noise(model, N, R)
    schedule = scheduled(problem, N, sigma * L)
    federation = TrialFederation(
        problem.gradients, like_records(problem), [Release("gradient", R, 0, sigma)], trials=trials, N=N,
        streams=context.streams, clip=L, stepsize=schedule.step or 1.0, prox=ball(problem.D),
    )  # fmt: skip
    algorithm = ALGORITHMS["minibatch_sgd"](R, average=True, mu=schedule.strong)  # type: ignore[call-arg]
    return excess(problem, run(algorithm, federation, np.zeros(SIZE)))
