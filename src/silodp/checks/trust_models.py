"""Check 6: ISRL-DP against shuffled and central DP along N, 1/(εn√N) against 1/(εnN) (convex paper, Theorem 4.1)."""

import math

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.checks.base import Array, Context, Row, Sweep, sweep_rows
from silodp.checks.prescribed_runs import excess, like_records
from silodp.checks.stack import TrialFederation, run
from silodp.privacy.plan import Release
from silodp.privacy.shuffling import shuffled_noise
from silodp.prox import ball
from silodp.theory.problems import LinearOnBall

ROUNDS, D_MODEL, RECORDS, EPSILON, DELTA = 1000, 64, 30, 1.0, 1e-6
SILOS = [1000, 1682, 2828, 4757, 8000]
CLAIMS = {"isrl": (-0.5, (-1.0, 0.0)), "shuffled": (-1.0, (-0.5, -1.5)), "central": (-1.0, (-0.5, -1.5))}


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
    """Slope in N of the excess risk under each trust model."""
    keys = {"isrl": "convex-models", "shuffled": "convex-4.1", "central": "convex-E.3"}

    def formula(model: str, N: int) -> float:
        if model == "shuffled":
            common = {"n": RECORDS, "d": D_MODEL, "N": N, "epsilon": EPSILON, "delta": DELTA}
            result = context.theorems["convex-4.1"](**common, M=N, R=ROUNDS, L=1.0, D=1.0)
            return result.terms["private"]
        return context.theorems["convex-models"](n=RECORDS, d=D_MODEL, N=N, epsilon=EPSILON).terms[model]

    rows: list[Row] = []
    for model, (exponent, neighbours) in CLAIMS.items():
        sweep = Sweep(
            keys[model], "N", model, exponent, neighbours, SILOS,
            lambda N, model=model: _risk(context.child(model, N), model, int(N)),  # type: ignore[misc]
            lambda N, model=model: formula(model, int(N)),  # type: ignore[misc]
        )  # fmt: skip
        rows += sweep_rows(sweep, context.streams)
    return rows


def _risk(context: Context, model: str, N: int) -> Array:
    """Excess risk of minibatch SGD on the linear loss, with the step that balances start and noise, (trials,)."""
    problem, trials = LinearOnBall(D_MODEL, bias=1.0), context.trials(30)
    sigma = noise(model, N)
    step = 1 / math.sqrt(ROUNDS * (1 + D_MODEL * sigma**2 / N))
    federation = TrialFederation(
        problem.gradients, like_records(problem), [Release("gradient", ROUNDS, 0, sigma)], trials=trials, N=N,
        streams=context.streams, stepsize=step, prox=ball(1.0),
    )  # fmt: skip
    algorithm = ALGORITHMS["minibatch_sgd"](ROUNDS, average=True)  # type: ignore[call-arg]
    return excess(problem, run(algorithm, federation, np.zeros(D_MODEL)))
