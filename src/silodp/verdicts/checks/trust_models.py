"""Check 6: shuffled and central DP along N, within the conditions of Theorem 4.1 (convex paper, strongly convex).

The private term is d/(ε²n²N²) up to logarithms, where ISRL-DP has d/(ε²n²N) (check 3), on a loss whose excess risk is
all noise however little there is of it.
"""

import functools
import math

from silodp.privacy.shuffling.shuffled_gaussian import shuffled_noise
from silodp.theory.convex.schedules import Schedule, theorem_4_1_strong
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, row, sweep_rows, sweeps
from silodp.verdicts.checks.prescribed_runs import algorithm_for, excess, logarithm, run_alike
from silodp.verdicts.statistics import ratio_interval

SIZE, RECORDS, EPSILON, DELTA = 4, 1, 0.01, 1e-8
# The theorem asks for R ≥ n²Nε² rounds: a small ε keeps them few, and the shuffler's amplification, which is proven for
# local ε0 ≲ 1 only, needs many silos. Below these the noise throws the iterates all over the ball.
SILOS = [4_000_000, 8_000_000, 16_000_000, 32_000_000, 64_000_000]
MODELS = {"shuffled": "convex-4.1-strong", "central": "convex-E.3-strong"}
PROBLEM = Quadratic(SIZE, bias=0.5)
POINT = {"n": RECORDS, "d": SIZE, "epsilon": EPSILON, "delta": DELTA, "L": PROBLEM.constants.L, "D": 1.0, "mu": 1.0}


def scheduled(N: int, sigma: float) -> Schedule:
    """Theorem 4.1's rounds and steps at one N, M = N, for noise of σ; refused where its conditions are not met."""
    return theorem_4_1_strong(N=N, M=N, beta=1.0, sigma=sigma, **POINT)


@functools.cache
def noise(model: str, N: int) -> float:
    """σ/L of one silo's message under a trust model, all N silos in each of Theorem 4.1's R rounds.

    Shuffled: calibrated by proven bounds. Central: the noise of the mean is the moments form for nN records, and a
    silo's is √N times that, as it would be if silos added it up securely.
    """
    R = scheduled(N, 1.0).rounds
    if model == "shuffled":
        return shuffled_noise(EPSILON, N=N, M=N, n=RECORDS, R=R, delta=DELTA).sigma
    return math.sqrt(8 * R * math.log(1 / DELTA) / N) / (RECORDS * EPSILON)


def trust_models(context: Context) -> list[Row]:
    """Slope in N of the excess risk under each trust model, and the risk behind a shuffler over the central one."""
    samples = {(model, N): _risk(context.child(model, N), model, N) for model in MODELS for N in SILOS}
    claims = {"N": (-2.0, (-1.0, -3.0), SILOS)}
    rows: list[Row] = []
    for model, theorem in MODELS.items():

        def sample(_: Context, N: int, model: str = model) -> Array:
            return samples[model, N]

        def formula(N: int, model: str = model, theorem: str = theorem) -> float:
            schedule = scheduled(N, noise(model, N) * PROBLEM.constants.L)
            result = context.evaluate(theorem, **POINT, N=N, M=N, R=schedule.rounds)
            # The proof's step, ln(…)/(μR), leaves its logarithm in the risk, which Õ hides.
            return result.terms["private"] * logarithm(schedule)

        for sweep in sweeps(context, theorem, model, claims, {}, sample, formula):
            rows += sweep_rows(sweep, context.streams)
    for N in SILOS:
        ratio = ratio_interval(samples["shuffled", N], samples["central", N], context.streams.generator("ratio", N))
        detail = "above central" if ratio.low > 1 else "not told from central"
        name = "risk of shuffled over central; N ="
        rows.append(row("convex-4.1-strong", name, N, ratio, None, lower=1.0, detail=detail))
    return rows


def _risk(context: Context, model: str, N: int) -> Array:
    """Excess risk of the weighted mean of the iterates, (trials,)."""
    sigma = noise(model, N)
    schedule = scheduled(N, sigma * PROBLEM.constants.L)
    algorithm = algorithm_for("minibatch_sgd", schedule.rounds, average=True, mu=schedule.strong)
    return excess(PROBLEM, run_alike(PROBLEM, algorithm, context, 100, N, noise=sigma, stepsize=schedule.step))
