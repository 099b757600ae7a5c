"""Check 2: measured risk on the hard instances between lower and upper bounds, along ε and along n.

The lower bounds hide their constants; they stand here with constant 1. Where a run lies below, that constant is smaller
than 1, and the verdict says how large it can be at most.
"""

import math
from typing import Any

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.checks.base import Array, Context, Row, row, within
from silodp.checks.prescribed_runs import excess, like_records, prescribe, run_schedule, silo_records
from silodp.checks.spider_runs import spider_gradients, spider_point
from silodp.checks.stack import TrialFederation, run
from silodp.privacy.plan import Release
from silodp.prox import ball
from silodp.statistics import mean_interval
from silodp.theory.problems import LinearOnBall, Quadratic, SmoothNonconvex

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# n, N and δ within the assumptions of Theorem 3.1: δ below 1/(nN)².
SILOS, RECORDS, DELTA = 100_000, 100, 1e-15


def lower_bounds(context: Context) -> list[Row]:
    """Rows of the convex, strongly convex and non-convex lower bounds."""
    parts = (_convex, _strong, _nonconvex, _statistical)
    return [one for part in parts for one in part(context.child(part.__name__))]


def _between(theorem: str, parameter: str, value: float, samples: Array, lower: float, upper: float) -> Row:
    measured = mean_interval(samples)
    verdict = within(measured, lower, upper)
    if measured.value < lower:
        verdict = f"constant at most {measured.high / lower:.2g}"
    return row(theorem, parameter, value, measured, verdict, lower=lower, upper=upper)


def _point(epsilon: float, d: int) -> dict[str, Any]:
    return {"n": RECORDS, "d": d, "M": SILOS, "epsilon": epsilon, "delta": DELTA}


def _convex(context: Context) -> list[Row]:
    """Linear loss, constant records: Theorem 3.1 below, Theorem 2.1 above, and E.4 with D.1 for the empirical risk."""
    problem, trials, rows = LinearOnBall(8, bias=1.0), context.trials(60), []
    for schedule_name, lower_key, upper_key in (("theorem-2.1", "convex-3.1", "convex-2.1"),
                                                ("theorem-D.1", "convex-E.4", "")):  # fmt: skip
        for epsilon in EPSILONS:
            point = _point(epsilon, 8)
            given = {"N": SILOS, "phi": 0.0} if not upper_key else {}
            schedule = prescribe(schedule_name, problem.constants, beta=1.0, **point, **given)
            streams = context.child(lower_key, epsilon).streams
            outputs = run_schedule(schedule, problem, like_records(problem), streams, trials=trials, N=SILOS)
            known = {"n": RECORDS, "d": 8, "L": 1.0, "D": 1.0, "epsilon": epsilon, "delta": DELTA}
            lower = context.theorems[lower_key](**known, N=SILOS).value
            # The upper bound of Theorem D.1 hides its constant.
            upper = context.theorems[upper_key](**known, M=SILOS, R=schedule.rounds).value if upper_key else math.nan
            rows.append(_between(lower_key, "epsilon (linear)", epsilon, excess(problem, outputs), lower, upper))
    return rows


def _strong(context: Context) -> list[Row]:
    """The strongly convex hard instance, μ = β = 1; the first term of the lower bound needs L = μD (errata)."""
    problem, trials, rows = Quadratic(4, bias=0.5), context.trials(60), []
    for epsilon in EPSILONS:
        schedule = prescribe("theorem-2.1-strong", problem.constants, **_point(epsilon, 4))
        streams = context.child(epsilon).streams
        outputs = run_schedule(schedule, problem, like_records(problem), streams, trials=trials, N=SILOS)
        lower = context.theorems["convex-3.1-strong"](
            n=RECORDS, d=4, N=SILOS, L=1.0, D=1.0, mu=1.0, epsilon=epsilon, delta=DELTA
        ).terms["private"]
        name = "epsilon (quadratic, private term)"
        rows.append(_between("convex-3.1-strong", name, epsilon, excess(problem, outputs), lower, math.nan))
    return rows


def _nonconvex(context: Context) -> list[Row]:
    """FedProx-SPIDER between Theorem 3.3 and claim (45)."""
    problem, rows = SmoothNonconvex(4), []
    for epsilon in EPSILONS[:-2]:
        point = spider_point(context, problem, n=800, M=16, epsilon=epsilon, delta=1e-6)
        found = spider_gradients(context.child(epsilon), problem, point, 16, context.trials(10))
        lower = context.theorems["nonconvex-3.3"](
            n=800, d=4, N=16, L=problem.constants.L, epsilon=epsilon, delta=1e-6
        ).value
        rows.append(_between("nonconvex-3.3", "epsilon (smooth, not convex)", epsilon, found, lower, point.bound))
    return rows


def _statistical(context: Context) -> list[Row]:
    """The part of Theorem E.3 without privacy, LD/√(nN): a bias of 1/√(nN), of which the data hardly tell the sign."""
    N, d, rounds, trials, rows = 8, 4, 30, context.trials(200), []
    for n in (16, 32, 64, 128, 256):
        problem, streams = LinearOnBall(d, bias=1 / math.sqrt(n * N)), context.child(n).streams
        federation = TrialFederation(
            problem.gradients, silo_records(problem, streams, trials, N, n), [Release("gradient", rounds, 0, 0.0)],
            trials=trials, N=N, streams=streams, stepsize=math.sqrt(n * N) / 2, prox=ball(1.0),
        )  # fmt: skip
        algorithm = ALGORITHMS["minibatch_sgd"](rounds, average=True)  # type: ignore[call-arg]
        found = excess(problem, run(algorithm, federation, np.zeros(d)))
        lower = context.theorems["convex-E.3"](
            n=n, d=d, N=N, L=1.0, D=1.0, epsilon=1.0, delta=1e-6
        ).terms["statistical"]  # fmt: skip
        rows.append(_between("convex-E.3", "n (linear, statistical term)", n, found, lower, math.nan))
    return rows
