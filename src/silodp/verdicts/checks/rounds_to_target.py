"""Check 4: rounds to a given risk along β, accelerated against plain minibatch SGD (Theorems D.1, 2.1)."""

import math

import numpy as np

from silodp.algorithms.base import State
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Context, NeverReached, Row, judge_interval, row, sweep_rows, sweeps
from silodp.verdicts.checks.prescribed_runs import algorithm_for, like_records, run_alike
from silodp.verdicts.statistics import ratio_interval

TARGET = 0.02
BETAS = [2.0, 4.0, 8.0, 16.0, 32.0]
# Curvatures from here up to β, evenly in their logarithm: no part of the spectrum decides alone.
LEAST = 1e-3
POINT = {"n": 10_000, "epsilon": 4.0, "delta": 1e-6}
SILOS = 10_000
MOST = 20_000


class TargetReached(Exception):
    """All trials have met the target."""


def rounds_to_target(context: Context) -> list[Row]:
    """Slopes of the rounds along β (β for plain, √β for accelerated SGD), then the ratio at each β."""
    samples: dict[tuple[str, float], Array] = {}

    def rounds_unit(beta: float) -> float:
        """Theorem 2.1's R = βD√M s/L where the smoothness decides it, in units of its other parts."""
        return beta / TARGET

    def accelerated(beta: float) -> float:
        """Rounds at which the acceleration term of eq. (34) meets the target."""
        rest = {"d": 30, "M": SILOS, "N": SILOS, "R": 1, "K": 1, "L": 1.0, "D": 1.0, "phi": 0.0, "upsilon": 0.0}
        return math.sqrt(context.evaluate("convex-D.1", **POINT, **rest, beta=beta).terms["acceleration"] / TARGET)

    rows: list[Row] = []
    for name, theorem, formula, exponent, rivals in (
        ("minibatch_sgd", "convex-2.1", rounds_unit, 1.0, (0.5, 1.5)),
        ("accelerated_minibatch_sgd", "convex-D.1", accelerated, 0.5, (0.0, 1.0)),
    ):

        def sample(_: Context, beta: float, name: str = name) -> Array:
            samples[name, beta] = _rounds(context.child(name, float(beta)), name, beta)
            return samples[name, beta]

        claims = {"beta": (exponent, rivals, BETAS)}
        (sweep,) = sweeps(context, theorem, "rounds to the target", claims, {}, sample, formula)
        rows += sweep_rows(sweep, context.streams)
    for beta in BETAS:
        few, many = samples["accelerated_minibatch_sgd", beta], samples["minibatch_sgd", beta]
        ratio = ratio_interval(few, many, context.streams.generator("bootstrap", beta))
        verdict = judge_interval(ratio, math.nan, 1.0)
        rows.append(row("convex-D.1", "rounds, accelerated/plain, along beta", beta, ratio, verdict, upper=1.0))
    return rows


def _rounds(context: Context, name: str, beta: float) -> Array:
    """First round after which the model's excess risk is at most the target, in each trial, (trials,)."""
    problem = Quadratic(30, mu=LEAST, beta=beta, bias=0.9)
    noise = math.sqrt(8 * 400 * math.log(1 / POINT["delta"])) / (POINT["n"] * POINT["epsilon"])
    first = np.full(context.trials(50), np.inf)
    minimiser = like_records(problem).ravel()

    def watch(r: int, state: State) -> None:
        risk = 0.5 * (state.w.numpy() - minimiser) ** 2 @ problem.curvatures
        first[(risk <= TARGET) & np.isinf(first)] = r
        if np.isfinite(first).all():
            raise TargetReached

    algorithm, step = algorithm_for(name, MOST), 1 / (4 * beta)
    try:
        run_alike(problem, algorithm, context, 50, SILOS, noise=noise, stepsize=step, watch=watch)
    except TargetReached:
        return first
    raise NeverReached(f"rounds_to_target: {name} at β = {beta:g} has not met {TARGET:g} after {MOST} rounds")
