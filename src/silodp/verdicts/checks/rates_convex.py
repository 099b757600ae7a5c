"""Check 3, convex paper: exponents of its rates, measured along ε, n, M and d (Theorems 2.1, 2.3, 2.4, 4.1 strong)."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from silodp.theory.convex.schedules import Schedule, one_stage
from silodp.theory.convex.upper import message_variance
from silodp.theory.problems.known import HingeOnBall, LinearOnBall, Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, derived, formula_slope, sweep_rows, sweeps
from silodp.verdicts.checks.prescribed_runs import (
    algorithm_for,
    circle,
    excess,
    like_records,
    logarithm,
    prescribe,
    run_on,
    run_schedule,
    silo_records,
)

DELTA = 1e-6
# Claimed exponent and its rivals along each axis, where the private term leads.
CONVEX = {"epsilon": (-1.0, (-0.5, -2.0)), "n": (-1.0, (-0.5, -1.5)), "M": (-0.5, (-1.0, 0.0)), "d": (0.5, (0.0, 1.0))}
STRONG = {"epsilon": (-2.0, (-1.0, -3.0)), "n": (-2.0, (-1.0, -3.0)), "M": (-1.0, (-2.0, -0.5)), "d": (1.0, (0.5, 2.0))}
ONE_PASS = CONVEX | {"n": (-0.5, (0.0, -1.0))}
FREE_ROUNDS = 30


def rates_convex(context: Context) -> list[Row]:
    return [row for sweep in _sweeps(context) for row in sweep_rows(sweep, context.streams)] + _free_privacy_rows(
        context
    )


def _sweeps(context: Context) -> list[Sweep]:
    smooth = {"beta": 1.0}
    # The private term leads while nε² ≲ 300d. The theorem's noise is large, so only very many silos keep the iterates
    # from being thrown all over the ball (√(dΞ/M) ≲ 0.005); they cost nothing where all records are the same.
    base = {"n": 200, "d": 8, "M": 2**16, "epsilon": 1.0}
    axes = {"epsilon": _doubled(0.2), "n": _doubled(100), "M": _doubled(2**14), "d": _doubled(8)}
    rates = _private(context, "convex-2.1", "theorem-2.1", CONVEX, axes, base, smooth)
    rates += _private(context, "convex-2.4", "theorem-D.1", CONVEX, axes, base, smooth)
    # The envelope of a loss with a kink at its minimiser; the rounds grow with √M and n, and the axes stop before that
    # takes long.
    axes |= {"n": _doubled(50), "M": _doubled(2**12)}
    rates += _private(context, "convex-2.4", "theorem-2.4", CONVEX, axes, base, {})
    base = {"n": 1024, "d": 8, "M": 256, "epsilon": 1.0}
    axes = {"epsilon": [0.25, 0.35, 0.5, 0.7, 1.0], "n": _doubled(256), "M": _doubled(64), "d": _doubled(4)}
    rates += _private(context, "convex-2.3", "theorem-2.3", ONE_PASS, axes, base, smooth)
    # So much noise that it sets the length of every stage; doubling moves all stages alike.
    base = {"n": 3200, "d": 4, "M": 2**15, "epsilon": 0.25}
    axes = {"epsilon": _doubled(1 / 16), "n": _doubled(800), "M": _doubled(2**13), "d": _doubled(2)}
    one_pass = STRONG | {"n": (-1.0, (-0.5, -2.0))}
    rates += _private(context, "convex-2.3-strong", "theorem-2.3-strong", one_pass, axes, base, smooth)
    base = {"n": 100, "d": 4, "M": 2**18, "epsilon": 0.5}
    axes = {"epsilon": _doubled(0.125), "n": _doubled(25), "M": _doubled(2**16), "d": _doubled(2)}
    rates += _private(context, "convex-2.1-strong", "theorem-2.1-strong", STRONG, axes, base, {})
    return rates + _heterogeneous(context) + _statistical(context)


def _doubled(first: float) -> list[float]:
    return [first * 2**i for i in range(5)]


def _private(
    context: Context,
    theorem: str,
    name: str,
    exponents: dict[str, tuple[float, tuple[float, float]]],
    axes: dict[str, list[float]],
    base: dict[str, float],
    given: dict[str, float],
) -> list[Sweep]:
    """Sweeps of a schedule on the linear loss, or on a quadratic where the theorem is strongly convex."""

    def plan(d: int, **point: Any) -> Schedule:
        # All silos take part: N = M, and φ = 0 leaves only the noise in the rounds that Theorem D.1 asks for.
        silos = {"N": point["M"], "phi": 0.0} if name in ("theorem-D.1", "theorem-2.4") else {}
        return prescribe(name, _problem(name, d).constants, d=d, delta=DELTA, **point, **silos, **given)

    def sample(part: Context, **point: Any) -> Array:
        return _risk(part, _problem(name, point["d"]), plan(**point), point["M"])

    def formula(**point: Any) -> float:
        # Rounds enter through a logarithm only; they are the prescribed ones, and so is the step's own logarithm.
        schedule, constants = plan(**point), _problem(name, point["d"]).constants
        known = {"L": constants.L, "D": constants.D, "mu": constants.mu, "R": schedule.rounds, "delta": DELTA}
        return context.evaluate(theorem, **known, **given, **point).value * logarithm(schedule)

    # A second schedule of the same theorem has its own random streams.
    regime, names = "private", [theorem]
    if name == "theorem-2.4":
        regime, names = "private, envelope of the hinge loss", [theorem, name]
    claims = {axis: (*exponents[axis], values) for axis, values in axes.items()}
    return sweeps(context, theorem, regime, claims, base, sample, formula, names=names)


def _problem(schedule: str, d: int) -> LinearOnBall | Quadratic | HingeOnBall:
    if schedule == "theorem-2.4":
        return HingeOnBall(d)
    return Quadratic(d, bias=0.5) if schedule.endswith("strong") else LinearOnBall(d, bias=1.0)


def _risk(context: Context, problem: LinearOnBall | Quadratic | HingeOnBall, plan: Schedule, N: int) -> Array:
    """Excess population risk of each trial under a schedule, M = N."""
    trials = context.trials(100)
    if isinstance(problem, HingeOnBall):
        # All records alike, e_1: the loss 1 − w_1 is least, 0, where its kink is.
        records = np.eye(1, problem.d)[None, None]
        w = run_schedule(plan, problem, records, context.streams, trials=trials, N=N)
        return np.maximum(0.0, 1 - w[:, 0])
    return excess(problem, run_schedule(plan, problem, like_records(problem), context.streams, trials=trials, N=N))


def _heterogeneous(context: Context) -> list[Sweep]:
    """What M < N heterogeneous silos add in Theorem D.1, D·√((N−M)/((N−1)M))·Υ/√R, without noise: along Υ, M and R."""
    N = 32
    axes = {
        "upsilon": (1.0, (0.5, 2.0), [2.0, 4.0, 8.0, 16.0]),
        "M": (-0.5, (0.0, -1.0), [1.0, 2.0, 4.0, 8.0]),
        "R": (-0.5, (0.0, -1.0), [400.0, 800.0, 1600.0, 3200.0]),
    }
    spread = {"d": 3, "N": N, "K": 1, "phi": 0.0}
    directions = np.column_stack([np.zeros(N), circle(N)])

    def formula(upsilon: float, **point: int) -> float:
        # ε and n so large that the noise of the bound is nothing.
        large = {"n": 10**9, "epsilon": 10.0, "delta": DELTA}
        more = {"L": 1 + upsilon, "D": 1.0, "beta": 1e-6, "upsilon": upsilon}
        return context.evaluate("convex-D.1", **spread, **large, **more, **point).value

    def sample(part: Context, upsilon: float, M: int, R: int) -> Array:
        variance = message_variance(**spread, M=M, upsilon=upsilon, sigma=0.0).value
        strength, stage = one_stage(R, 1.0, 1e-6, math.sqrt(variance))
        records = (np.array([1.0, 0.0, 0.0]) + upsilon * directions)[None, :, None]
        algorithm = algorithm_for("accelerated_minibatch_sgd", R, stages=(stage,), regularisation=strength)
        options: dict[str, Any] = {"trials": context.trials(200), "N": N, "cohort": M}
        return 1 - run_on(LinearOnBall(3), records, algorithm, part.streams, **options)[:, 0]

    base = {"upsilon": 8.0, "M": 4.0, "R": 1600.0}
    return sweeps(context, "convex-D.1", "silos drawn", axes, base, sample, formula, names=("heterogeneous",))


def _statistical(context: Context) -> list[Sweep]:
    """The statistical terms 1/(nM) and 1/√(nM): the same algorithm without noise, over enough rounds."""
    quadratic = Quadratic(4, bias=0.5)
    axes: dict[str, Sequence[float]] = {"n": [16, 32, 64, 128, 256], "M": [2, 4, 8, 16, 32]}
    base = {"n": 64, "M": 8}

    def strong(_: Context, n: int, M: int) -> Array:
        return excess(quadratic, _noiseless(context.child("statistical", n, M), quadratic, n, M, 0.3))

    def sample_hard(_: Context, n: int, M: int) -> Array:
        # The instance of the lower bound: a bias that n·M records can hardly see; steps fit so flat a loss.
        problem = LinearOnBall(4, bias=1 / math.sqrt(n * M))
        return excess(problem, _noiseless(context.child("hard", n, M), problem, n, M, math.sqrt(n * M) / 2))

    def rate(theorem: str, n: int, M: int) -> float:
        return context.evaluate(theorem, n=n, N=M, phi=1.0, mu=1.0, D=1.0).value

    rates: list[Sweep] = []
    for theorem, sample, exponent, rivals in (
        ("convex-nonprivate-strong", strong, -1.0, (-0.5, -2.0)),
        ("convex-nonprivate", sample_hard, -0.5, (0.0, -1.0)),
    ):
        claims = {axis: (exponent, rivals, values) for axis, values in axes.items()}
        rates += sweeps(context, theorem, "statistical", claims, base, sample, functools.partial(rate, theorem))
    return rates


def _noiseless(context: Context, problem: Any, n: int, M: int, step: float) -> Array:
    """Mean iterate of 30 rounds of plain SGD with full batches, (trials, d)."""
    trials = context.trials(200)
    records = silo_records(problem, context.streams, trials, M, n)
    algorithm = algorithm_for("minibatch_sgd", 30, average=True, mu=problem.constants.mu)
    return run_on(problem, records, algorithm, context.streams, trials=trials, N=M, stepsize=step)


def _free_privacy_rows(context: Context) -> list[Row]:
    """Privacy for free: slopes of the n from which 1/√n leads in Theorem 2.1's maximum. No run has more to say."""
    rows, base = [], {"d": 4, "epsilon": 1.0}
    for axis, exponent, values in (("d", 1.0, _doubled(1)), ("epsilon", -2.0, _doubled(0.5))):
        points = [base | {axis: value} for value in values]
        needed = [context.evaluate("convex-free", n=100, R=FREE_ROUNDS, delta=DELTA, **point).value for point in points]
        name = f"exponent in {axis} (n from which privacy is free)"
        rows.append(derived("convex-free", name, exponent, formula_slope(values, needed), "by Theorem 2.1's maximum"))
    return rows
