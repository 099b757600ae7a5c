"""Appendix G of the non-convex paper: Prox-SGD that is ISRL-DP and user-level DP at once, at (ε/n, δ/4n) a record.

Its bound (49) falls in N and not in n. It is printed with the roots of what Theorem 2.1 gives, which is a larger bound
as long as d ln(1/δ0) ≤ N: no run there can contradict it. The lower bound that the text says matches it up to κ²
matches the form without roots only.
"""

from dataclasses import replace
from typing import Any

from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import (
    Array,
    Claim,
    Context,
    Row,
    Sweep,
    derived,
    formula_slope,
    row,
    sweep_rows,
    sweeps,
)
from silodp.verdicts.checks.prescribed_runs import prox_sgd_risk
from silodp.verdicts.statistics import Interval
from silodp.verdicts.words import AS_PRINTED, CORRECTED, Verdict

DELTA, ROUNDS = 1e-6, 20
BASE = {"epsilon": 1.0, "n": 8000, "N": 2**28, "d": 8}
# Many silos keep the noise of a user's whole data set on the ball.
AXES: dict[str, Claim] = {
    "N": (-1.0, (-0.5, -2.0), [2.0**power for power in range(24, 29)]),
    "d": (1.0, (0.5, 2.0), [4, 8, 16, 32, 64]),
    "epsilon": (-2.0, (-1.0, -3.0), [0.25, 0.35, 0.5, 0.7, 1.0]),
    "n": (0.0, (-1.0, 1.0), [2000, 4000, 8000, 16_000, 32_000]),
}
# Axes along which the printed form has another exponent.
CORRECTED_AXES = ("N", "d")
PRINTED_IN_N = -0.5
# Where the lower bound's δ = o(1/N²) can be met.
MATCHED = {"n": 10, "d": 4, "epsilon": 1.0, "delta": 1e-14}


def hybrid_privacy(context: Context) -> list[Row]:
    """Slopes of the excess risk; then what the upper bound is over the lower one, along N."""
    rows: list[Row] = []
    for sweep in _sweeps(context):
        rows += sweep_rows(sweep, context.streams)
        if sweep.axis == "N":
            rows.append(_printed_slope(rows[-1]))
    return rows + _matched(context)


def _sweeps(context: Context) -> list[Sweep]:
    def formula(**point: Any) -> float:
        return context.evaluate("nonconvex-G-risk", **point, L=2.0, beta=1.0, mu=1.0, delta=DELTA).value

    rates = sweeps(context, "nonconvex-G-risk", "both privacies", AXES, BASE, _risk, formula)
    return [replace(sweep, form=CORRECTED) if sweep.axis in CORRECTED_AXES else sweep for sweep in rates]


def _risk(context: Context, epsilon: float, n: int, N: int, d: int) -> Array:
    """Excess risk of Prox-SGD in one pass, K = n/R, with the noise of Theorem 2.1 at a record's budget, (trials,)."""
    record = context.evaluate("nonconvex-G", n=n, epsilon=epsilon, delta=DELTA)
    budget = {"n": n, "epsilon": record.value, "delta": record.terms["delta0"]}
    return prox_sgd_risk(context, Quadratic(d, bias=0.5), ROUNDS, 200, N, **budget)


def _printed_slope(right: Row) -> Row:
    """The slope in N against the printed 1/√N: an upper bound that falls more slowly is kept to."""
    measured = Interval(right["measured"], right["measured_low"], right["measured_high"])
    verdict = Verdict.NOT_CONTRADICTED if measured.high <= PRINTED_IN_N else Verdict.OPEN
    verdict = Verdict.REFUTED if measured.low > PRINTED_IN_N else verdict
    detail = "a bound that falls more slowly than the risk does"
    columns: Row = {"upper": PRINTED_IN_N, "form": AS_PRINTED, "detail": detail}
    return row("nonconvex-G-risk", f"printed {right['parameter']}", PRINTED_IN_N, measured, verdict, **columns)


def _matched(context: Context) -> list[Row]:
    """Slope in N of (49) over the lower bound that the text names, the convex paper's (13) at n = 1: 0 is a match."""
    sizes, constants = [2.0**power for power in range(14, 19)], {"L": 1.0, "D": 1.0, "beta": 1.0, "mu": 1.0}
    rows = []
    for form, reading in ((AS_PRINTED, "printed"), (CORRECTED, "right")):
        ratios = []
        for N in sizes:
            point = MATCHED | constants | {"N": int(N), "reading": reading}
            upper = context.evaluate("nonconvex-G-risk", **point).value
            ratios.append(upper / context.evaluate("convex-3.1-strong", **(point | {"n": 1})).value)
        fitted, name = formula_slope(sizes, ratios), "upper over lower bound: slope in N"
        rows.append(derived("nonconvex-G-risk", name, 0.0, fitted, "by both formulas", form=form))
    return rows
