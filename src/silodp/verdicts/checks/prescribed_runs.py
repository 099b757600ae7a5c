"""Runs of the registered algorithms on problems, with what a theorem's schedule prescribes."""

import inspect
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.federation.prox import Prox, ball
from silodp.federation.rng import Streams
from silodp.privacy.plan import Release
from silodp.theory.convex.schedules import SCHEDULES, Schedule
from silodp.theory.problems.base import Constants, Problem
from silodp.theory.problems.known import LinearOnBall, Quadratic
from silodp.verdicts.checks.stack import Gradients, TrialFederation, run

Array = NDArray[np.float64]


def like_records(problem: LinearOnBall | Quadratic) -> Array:
    """All records equal to the problem's mean record, (1, 1, 1, d): the same risk, and only the noise is random."""
    return np.full((1, 1, 1, problem.d), problem.bias * problem.D / math.sqrt(problem.d))


def silo_records(problem: Problem, streams: Streams, trials: int, N: int, n: int) -> Array:
    """Records of N i.i.d. silos of n records in each trial, (trials, N, n, width)."""
    rows = problem.draw(trials * N * n, streams.generator("data"))
    return rows.reshape(trials, N, n, -1)


def algorithm_of(schedule: Schedule, L: float) -> Algorithm:
    """The registered algorithm that a schedule is for."""
    options: dict[str, Any] = {"rounds": schedule.rounds, "schedule": schedule, "clip": L}
    if schedule.stages:
        one_pass = schedule.name.startswith("theorem-2.3")
        return ALGORITHMS["one_pass_accelerated_sgd" if one_pass else "accelerated_minibatch_sgd"](**options)
    return ALGORITHMS["minibatch_sgd"](**options, average=True, mu=schedule.strong)  # type: ignore[call-arg]


def run_schedule(
    schedule: Schedule,
    problem: Problem,
    records: Array,
    streams: Streams,
    *,
    trials: int,
    N: int,
    gradients: Gradients | None = None,
) -> Array:
    """Outputs (trials, d) of a schedule's algorithm from w_0 = 0, projected onto the problem's ball."""
    constants = problem.constants
    sampler = "disjoint" if schedule.name.startswith("theorem-2.3") else "replacement"
    noise = math.sqrt(schedule.sigma2) / constants.L
    release = Release("gradient", schedule.rounds, schedule.batch, noise, sampler=sampler)  # type: ignore[arg-type]
    federation = TrialFederation(
        gradients or problem.gradients, records, [release], trials=trials, N=N, streams=streams, clip=constants.L,
        stepsize=schedule.step or 1.0, prox=_prox(constants),
    )  # fmt: skip
    size = problem.gradients(np.zeros(1), records[:1, :1, :1]).shape[-1]
    return run(algorithm_of(schedule, constants.L), federation, np.zeros(size))


def _prox(constants: Constants) -> Prox:
    return ball(constants.D)


def prescribe(name: str, constants: Constants, **point: Any) -> Schedule:
    """`SCHEDULES[name]` with L, and D, β, μ as far as the schedule takes them, from the problem."""
    own = {"L": constants.L, "D": constants.D, "beta": constants.beta, "mu": constants.mu}
    takes = SCHEDULES[name]
    wanted = inspect.signature(takes).parameters
    return takes(**{key: value for key, value in own.items() if key in wanted and key not in point}, **point)


def logarithm(schedule: Schedule) -> float:
    """μηR of a strongly convex schedule of Algorithm 1, the logarithm in η = ln(…)/(μR); 1 for other schedules."""
    return schedule.strong * (schedule.step or 0.0) * schedule.rounds or 1.0


def excess(problem: Any, outputs: Array) -> Array:
    """Excess population risk of each trial, (trials,), in closed form."""
    return np.array([problem.excess_population_risk(w) for w in outputs])
