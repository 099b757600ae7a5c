"""Appendix G of the non-convex paper: Prox-SGD that is ISRL-DP and user-level DP at once, at (ε/n, δ/4n) a record.

Its bound (49) falls in N and not in n. It is printed with the roots of what Theorem 2.1 gives, which is a larger bound
as long as d ln(1/δ0) ≤ N: no run there can contradict it. The lower bound that is said to match it up to κ² matches the
form without roots only.
"""

import math
from typing import Any

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.federation.prox import ball
from silodp.privacy.plan import Release
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, row, sweep_rows
from silodp.verdicts.checks.prescribed_runs import excess, like_records
from silodp.verdicts.checks.stack import TrialFederation, run
from silodp.verdicts.statistics import Interval, slope
from silodp.verdicts.words import AS_PRINTED, CORRECTED, Verdict

DELTA, ROUNDS = 1e-6, 20
BASE = {"epsilon": 1.0, "n": 8000, "N": 2**28, "d": 8}
# Exponent, its rivals, values, and the form it is of where the printed one has another. Many silos keep the noise of a
# user's whole data set on the ball.
AXES: dict[str, tuple[float, tuple[float, float], list[float], str]] = {
    "N": (-1.0, (-0.5, -2.0), [2.0**power for power in range(24, 29)], CORRECTED),
    "d": (1.0, (0.5, 2.0), [4, 8, 16, 32, 64], CORRECTED),
    "epsilon": (-2.0, (-1.0, -3.0), [0.25, 0.35, 0.5, 0.7, 1.0], ""),
    "n": (0.0, (-1.0, 1.0), [2000, 4000, 8000, 16_000, 32_000], ""),
}
PRINTED_IN_N = -0.5
# Where the lower bound's δ = o(1/N²) can be met.
MATCHED = {"n": 10, "d": 4, "epsilon": 1.0, "delta": 1e-14}


def hybrid_privacy(context: Context) -> list[Row]:
    """Slopes of the excess risk; then what the upper bound is over the lower one, along N."""
    rows: list[Row] = []
    for axis in AXES:
        found = sweep_rows(_sweep(context, axis), context.streams)
        rows += found
        if axis == "N":
            rows.append(_printed(found[-1]))
    return rows + _matched(context)


def _sweep(context: Context, axis: str) -> Sweep:
    exponent, rivals, values, form = AXES[axis]

    def point(value: float) -> dict[str, Any]:
        found = BASE | {axis: value}
        return {name: found[name] if name == "epsilon" else int(found[name]) for name in found}

    def formula(value: float) -> float:
        return context.theorems["nonconvex-G-risk"](**point(value), L=2.0, beta=1.0, mu=1.0, delta=DELTA).value

    def sample(value: float) -> Array:
        return _risk(context.child(axis, value), **point(value))

    return Sweep("nonconvex-G-risk", axis, "both privacies", exponent, rivals, values, sample, formula, form=form)


def _risk(context: Context, epsilon: float, n: int, N: int, d: int) -> Array:
    """Excess risk of Prox-SGD in one pass, K = n/R, with the noise of Theorem 2.1 at a record's budget, (trials,)."""
    problem, trials = Quadratic(d, bias=0.5), context.trials(200)
    L, budget = problem.constants.L, context.theorems["nonconvex-G"](n=n, epsilon=epsilon, delta=DELTA)
    noise = context.theorems["nonconvex-2.1-noise"](
        K=n // ROUNDS, L=L, epsilon=budget.value, delta=budget.terms["delta0"]
    )
    federation = TrialFederation(
        problem.gradients, like_records(problem), [Release("gradient", ROUNDS, 0, math.sqrt(noise.value) / L)],
        trials=trials, N=N, streams=context.streams, clip=L, stepsize=0.5, prox=ball(problem.D),
    )  # fmt: skip
    return excess(problem, run(ALGORITHMS["prox_sgd"](ROUNDS), federation, np.zeros(d)))


def _printed(right: Row) -> Row:
    """The slope in N against the printed 1/√N: an upper bound that falls more slowly is kept to."""
    measured = Interval(right["measured"], right["measured_low"], right["measured_high"])
    verdict = Verdict.NOT_CONTRADICTED if measured.high <= PRINTED_IN_N else Verdict.INCONCLUSIVE
    verdict = Verdict.REFUTED if measured.low > PRINTED_IN_N else verdict
    return row("nonconvex-G-risk", f"printed {right['parameter']}", PRINTED_IN_N, measured, verdict, upper=PRINTED_IN_N,
               form=AS_PRINTED, detail="a bound that falls more slowly than the risk does")  # fmt: skip


def _matched(context: Context) -> list[Row]:
    """Slope in N of (49) over the lower bound that the text names, the convex paper's (13) at n = 1: 0 if it matches.

    Both are computed, no run stands behind it.
    """
    sizes = [2.0**power for power in range(14, 19)]
    rows = []
    for form, reading in ((AS_PRINTED, "printed"), (CORRECTED, "right")):
        ratios = []
        for N in sizes:
            upper = context.theorems["nonconvex-G-risk"](
                **MATCHED, N=int(N), L=1.0, beta=1.0, mu=1.0, reading=reading
            ).value
            lower = context.theorems["convex-3.1-strong"](**(MATCHED | {"n": 1}), N=int(N), L=1.0, D=1.0, mu=1.0).value
            ratios.append(upper / lower)
        # Without the last digits, which are those of logarithms.
        found = round(float(slope(sizes, np.array(ratios))), 12) + 0.0
        verdict = Verdict.DERIVATION if abs(found) < 0.25 else Verdict.REFUTED
        rows.append(row("nonconvex-G-risk", "upper over lower bound: slope in N", 0.0, None, verdict, lower=found,
                        upper=found, form=form, formula=found, rivals=(-0.5, 0.5),
                        detail=f"{found:.3f} by both formulas"))  # fmt: skip
    return rows
