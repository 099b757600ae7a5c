"""Gradients of records are counted while Theorem 2.3's schedule runs: Algorithm 2 in linear time (convex paper)."""

import numpy as np

from silodp.theory.problems.known import LinearOnBall
from silodp.verdicts.checks.base import Array, Context, Row, formula_slope, row, slope_row
from silodp.verdicts.checks.prescribed_runs import prescribe, run_schedule, silo_records
from silodp.verdicts.statistics import Interval
from silodp.verdicts.words import Verdict

DELTA = 1e-6
# Values of an axis; the other axis stays at its first value.
RUNS = {"n": [64, 128, 256, 512, 1024], "M": [4, 8, 16, 32, 64]}


def gradient_counts(context: Context) -> list[Row]:
    """Gradients of a run over its records, with their slope in n and M."""
    rows: list[Row] = []
    for axis, values in RUNS.items():
        points = [{name: first for name, (first, *_) in RUNS.items()} | {axis: value} for value in values]
        counts = [_counted(context.child(axis, point[axis]), **point) for point in points]
        for point, (gradients, most) in zip(points, counts, strict=True):
            records = point["n"] * point["M"]
            verdict = Verdict.CONFIRMED if gradients == records and most == 1 else Verdict.REFUTED
            name, share = f"gradients of a run over its records; {axis} =", _exactly(gradients / records)
            detail = f"{gradients} gradients, of a record at most {most}"
            rows.append(row("convex-2.3", name, point[axis], share, verdict, lower=1.0, upper=1.0, detail=detail))
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
