"""Check 6: ISRL-DP against shuffled and central DP along N (convex paper, Theorems 2.1, 4.1, E.3, strongly convex).

The private terms are d/(ε²n²N) and d/(ε²n²N²): the squares of 1/(εn√N) and 1/(εnN), on a loss whose excess risk is all
noise however little there is of it, so that one sweep of N serves all three.
"""

import math

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.checks.base import Array, Context, Row, Sweep, row, sweep_rows
from silodp.checks.prescribed_runs import excess, like_records
from silodp.checks.stack import TrialFederation, run
from silodp.privacy.plan import Release
from silodp.privacy.shuffling import shuffled_noise
from silodp.prox import ball
from silodp.statistics import ratio_interval
from silodp.theory.problems import Quadratic

ROUNDS, SIZE, RECORDS, EPSILON, DELTA = 100, 4, 1, 1.0, 1e-8
# The shuffler's amplification is proven for local ε0 ≲ 1 only: it needs this many silos.
SILOS = [100_000, 200_000, 400_000, 800_000, 1_600_000]
CLAIMS = {
    "isrl": ("convex-2.1-strong", -1.0, (-0.5, -2.0)),
    "shuffled": ("convex-4.1-strong", -2.0, (-1.0, -3.0)),
    "central": ("convex-E.3-strong", -2.0, (-1.0, -3.0)),
}


def noise(model: str, N: int) -> float:
    """σ/L of one silo's message under a trust model, all N silos in each of R rounds.

    ISRL-DP: the moments form. Shuffled: calibrated by proven bounds. Central: the noise of the mean is the moments form
    for nN records, and a silo's is √N times that, as it would be if silos added it up securely.
    """
    if model == "shuffled":
        return shuffled_noise(EPSILON, N=N, M=N, n=RECORDS, R=ROUNDS, delta=DELTA).sigma
    moments = math.sqrt(8 * ROUNDS * math.log(1 / DELTA)) / (RECORDS * EPSILON)
    return moments / (math.sqrt(N) if model == "central" else 1)


def trust_models(context: Context) -> list[Row]:
    """Slope in N of the excess risk under each trust model, and the risks over that of the central one."""
    problem = Quadratic(SIZE, bias=0.5)
    samples = {(model, N): _risk(context.child(model, N), problem, model, N) for model in CLAIMS for N in SILOS}

    def formula(theorem: str, N: int) -> float:
        constants = problem.constants
        point = {"n": RECORDS, "d": SIZE, "N": N, "M": N, "R": ROUNDS, "L": constants.L, "mu": constants.mu,
                 "D": constants.D, "epsilon": EPSILON, "delta": DELTA}  # fmt: skip
        wanted = context.theorems[theorem].parameters
        return context.theorems[theorem](**{name: value for name, value in point.items() if name in wanted}).terms[
            "private"
        ]

    rows: list[Row] = []
    for model, (theorem, exponent, neighbours) in CLAIMS.items():
        sweep = Sweep(
            theorem, "N", model, exponent, neighbours, SILOS,
            lambda N, model=model: samples[model, int(N)],  # type: ignore[misc]
            lambda N, theorem=theorem: formula(theorem, int(N)),  # type: ignore[misc]
        )  # fmt: skip
        rows += sweep_rows(sweep, context.streams)
    for model in ("isrl", "shuffled"):
        for N in SILOS:
            generator = context.streams.generator("ratio", model, N)
            ratio = ratio_interval(samples[model, N], samples["central", N], generator)
            verdict = "above central" if ratio.low > 1 else "not told from central"
            rows.append(row(CLAIMS[model][0], f"risk of {model} over central; N =", N, ratio, verdict, lower=1.0))
    return rows


def _risk(context: Context, problem: Quadratic, model: str, N: int) -> Array:
    """Excess risk of the mean iterate of minibatch SGD, (trials,)."""
    trials = context.trials(200)
    federation = TrialFederation(
        problem.gradients, like_records(problem), [Release("gradient", ROUNDS, 0, noise(model, N))], trials=trials,
        N=N, streams=context.streams, clip=problem.constants.L, stepsize=0.25, prox=ball(problem.D),
    )  # fmt: skip
    algorithm = ALGORITHMS["minibatch_sgd"](ROUNDS, average=True, mu=problem.constants.mu)  # type: ignore[call-arg]
    return excess(problem, run(algorithm, federation, np.zeros(SIZE)))
