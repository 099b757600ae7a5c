"""Gradients and rounds that the convex paper counts: Algorithm 2 in linear time, and ahead of the earlier algorithm.

Gradients of records are counted while Theorem 2.3's schedule runs. Rounds are a derivation: those that Theorem 2.4
prescribes against the ε²n²M/d, logarithms and a constant aside, that the paper says the earlier algorithm requires.
"""

from typing import Any

import numpy as np

from silodp.theory import SCHEDULES
from silodp.theory.problems.known import LinearOnBall
from silodp.verdicts.checks.base import Array, Context, Row, derived, formula_slope, row, slope_row
from silodp.verdicts.checks.prescribed_runs import prescribe, run_schedule, silo_records
from silodp.verdicts.statistics import Interval
from silodp.verdicts.words import Verdict

DELTA = 1e-6
# Values of an axis; the other axis stays at its first value.
RUNS = {"n": [64, 128, 256, 512, 1024], "M": [4, 8, 16, 32, 64]}
# The factor min{√M εn/√d, M} has two branches: where each leads, and the exponents of both.
BRANCHES: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "M": ({"M": 64, "n": 20_000, "epsilon": 0.5, "d": 4}, {"M": 1.0, "n": 0.0, "epsilon": 0.0, "d": 0.0}),
    "√M εn/√d": ({"M": 4**10, "n": 400, "epsilon": 0.5, "d": 64}, {"M": 0.5, "n": 1.0, "epsilon": 1.0, "d": -0.5}),
}


def gradient_counts(context: Context) -> list[Row]:
    """Gradients of a run over its records, with their slope in n and M; then slopes of the factor in rounds."""
    return [*_linear_time(context), *_speed_up()]


def _linear_time(context: Context) -> list[Row]:
    rows: list[Row] = []
    for axis, values in RUNS.items():
        points = [{name: first for name, (first, *_) in RUNS.items()} | {axis: value} for value in values]
        counts = [_counted(context.child(axis, point[axis]), **point) for point in points]
        for point, (gradients, most) in zip(points, counts, strict=True):
            records = point["n"] * point["M"]
            verdict = Verdict.CONFIRMED if gradients == records and most == 1 else Verdict.REFUTED
            name, detail = (
                f"gradients of a run over its records; {axis} =",
                f"{gradients} gradients, of a record at most",
            )
            columns: Row = {"lower": 1.0, "upper": 1.0, "detail": f"{detail} {most}"}
            rows.append(row("convex-2.3", name, point[axis], _exactly(gradients / records), verdict, **columns))
        fitted = _exactly(formula_slope(values, [gradients or np.nan for gradients, _ in counts]))
        rows.append(slope_row("convex-2.3", f"slope in {axis} (gradients of a run)", fitted, 1.0, 1.0, (0.5, 2.0)))
    return rows


def _exactly(value: float) -> Interval:
    return Interval(value, value, value)


def _counted(context: Context, n: int, M: int) -> tuple[int, int]:
    """Gradients of records that a silo-and-server run of Theorem 2.3 computes, and how often the most used one is."""
    problem, trials = LinearOnBall(4, bias=0.5), 2
    used = np.zeros((trials, M * n), dtype=int)
    records = silo_records(problem, context.streams, trials, M, n)
    # A last column tells records apart.
    marks = np.arange(M * n, dtype=float).reshape(1, M, n, 1)
    marked = np.concatenate([records, np.broadcast_to(marks, (trials, M, n, 1))], axis=3)

    def gradients(w: Array, rows: Array) -> Array:
        for trial, drawn in enumerate(np.broadcast_to(rows, (trials, *rows.shape[1:]))[..., -1]):
            np.add.at(used[trial], drawn.astype(int).ravel(), 1)
        return problem.gradients(w, rows[..., :-1])

    schedule = prescribe("theorem-2.3", problem.constants, n=n, d=4, M=M, beta=1.0, epsilon=1.0, delta=DELTA)
    run_schedule(schedule, problem, marked, context.streams, trials=trials, N=M, gradients=gradients)
    return int(used[0].sum()), int(used.max())


def _speed_up() -> list[Row]:
    """Slopes of ε²n²M/d over the prescribed rounds, where M < N, in both branches of the stated factor."""
    rows: list[Row] = []
    for branch, (base, exponents) in BRANCHES.items():
        for axis, exponent in exponents.items():
            values = [base[axis] * 2**step for step in range(5)]
            fitted = formula_slope(values, [_factor(**(base | {axis: value})) for value in values])
            name = f"slope in {axis} (rounds of the earlier algorithm, {branch} leads)"
            rows.append(derived("convex-2.4", name, exponent, fitted, "by the prescribed rounds"))
    return rows


def _factor(M: float, n: float, epsilon: float, d: float) -> float:
    """ε²n²M/d, the rounds of the earlier algorithm, over those of Theorem 2.4 at M = N/4."""
    fixed: dict[str, Any] = {"N": 4 * M, "L": 1.0, "D": 1.0, "upsilon": 1.0, "delta": DELTA}
    return (epsilon * n) ** 2 * M / d / SCHEDULES["theorem-2.4"](n=n, d=d, M=M, epsilon=epsilon, **fixed).rounds
