"""Check 4: rounds to a given risk along β, accelerated against plain minibatch SGD (Theorems D.1, 2.1)."""

import math
from collections.abc import Callable

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import State
from silodp.federation.prox import ball
from silodp.privacy.plan import Release
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, row, sweep_rows, within
from silodp.verdicts.checks.prescribed_runs import like_records
from silodp.verdicts.checks.stack import TrialFederation, run
from silodp.verdicts.statistics import ratio_interval

TARGET = 0.02
BETAS = [2.0, 4.0, 8.0, 16.0, 32.0]
# Curvatures from here up to β, evenly in their logarithm: no part of the spectrum decides alone.
LEAST = 1e-3
POINT = {"n": 10_000, "epsilon": 4.0, "delta": 1e-6}
SILOS = 10_000
MOST = 20_000


class Reached(Exception):
    """All trials have met the target."""


def rounds_to_target(context: Context) -> list[Row]:
    """Slopes of the rounds along β (β for plain, √β for accelerated SGD), then the ratio at each β."""
    samples: dict[tuple[str, float], Array] = {}

    def sampled(name: str) -> Callable[[float], Array]:
        def sample(beta: float) -> Array:
            samples[name, beta] = _rounds(context.child(name, beta), name, beta)
            return samples[name, beta]

        return sample

    def plain(beta: float) -> float:
        """Theorem 2.1's R = βD√M s/L where the smoothness decides it, in units of its other parts."""
        return beta / TARGET

    def accelerated(beta: float) -> float:
        """Rounds at which the acceleration term of eq. (34) meets the target."""
        one = context.theorems["convex-D.1"](
            **POINT, d=30, M=SILOS, N=SILOS, R=1, K=1, L=1.0, D=1.0, beta=beta, phi=0.0, upsilon=0.0
        )
        return math.sqrt(one.terms["acceleration"] / TARGET)

    sweeps = [
        Sweep("convex-2.1", "beta", "rounds to the target", 1.0, (0.5, 1.5), BETAS, sampled("minibatch_sgd"), plain),
        Sweep("convex-D.1", "beta", "rounds to the target", 0.5, (0.0, 1.0), BETAS,
              sampled("accelerated_minibatch_sgd"), accelerated),
    ]  # fmt: skip
    rows = [found for sweep in sweeps for found in sweep_rows(sweep, context.streams)]
    for beta in BETAS:
        few, many = samples["accelerated_minibatch_sgd", beta], samples["minibatch_sgd", beta]
        ratio = ratio_interval(few, many, context.streams.generator("bootstrap", beta))
        verdict = within(ratio, math.nan, 1.0)
        rows.append(row("convex-D.1", "rounds, accelerated/plain, along beta", beta, ratio, verdict, upper=1.0))
    return rows


def _rounds(context: Context, name: str, beta: float) -> Array:
    """First round after which the model's excess risk is at most the target, in each trial, (trials,).

    Both algorithms add the same noise to a message, in units of L: the moments form's for 400 rounds.
    """
    problem, trials = Quadratic(30, mu=LEAST, beta=beta, bias=0.9), context.trials(50)
    noise = math.sqrt(8 * 400 * math.log(1 / POINT["delta"])) / (POINT["n"] * POINT["epsilon"])
    federation = TrialFederation(
        problem.gradients, like_records(problem), [Release("gradient", MOST, 0, noise)], trials=trials, N=SILOS,
        streams=context.streams, clip=problem.constants.L, stepsize=1 / (4 * beta), prox=ball(problem.D),
    )  # fmt: skip
    found = np.full(trials, np.inf)
    minimiser = problem.bias * problem.D / math.sqrt(problem.d)

    def watch(r: int, state: State) -> None:
        risk = 0.5 * (state.w.numpy() - minimiser) ** 2 @ problem.curvatures
        found[(risk <= TARGET) & np.isinf(found)] = r
        if np.isfinite(found).all():
            raise Reached

    try:
        run(ALGORITHMS[name](MOST), federation, np.zeros(problem.d), watch)
    except Reached:
        return found
    raise RuntimeError(f"rounds_to_target: {name} at β = {beta:g} has not met {TARGET:g} after {MOST} rounds")
