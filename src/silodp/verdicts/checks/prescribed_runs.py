"""Runs of the registered algorithms on problems, with what a theorem's schedule prescribes."""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm, State
from silodp.federation.prox import ball
from silodp.privacy.plan import Release, Sampler
from silodp.streams import Streams
from silodp.theory.convex.schedules import SCHEDULES, Schedule
from silodp.theory.problems.base import Constants, Problem
from silodp.theory.problems.known import HingeOnBall, LinearOnBall, Quadratic
from silodp.verdicts.checks.base import Array, Context
from silodp.verdicts.checks.stack import Gradients, TrialFederation, run


def like_records(problem: LinearOnBall | Quadratic) -> Array:
    """All records equal to the problem's mean record, (1, 1, 1, d): the same risk, and only the noise is random."""
    return np.full((1, 1, 1, problem.d), problem.bias * problem.D / math.sqrt(problem.d))


def silo_records(problem: Problem, streams: Streams, trials: int, N: int, n: int) -> Array:
    """Records of N i.i.d. silos of n records in each trial, (trials, N, n, width)."""
    return problem.draw(trials * N * n, streams.generator("data")).reshape(trials, N, n, -1)


def circle(N: int) -> Array:
    """N points evenly on the unit circle, (N, 2)."""
    angles = 2 * np.pi * np.arange(N) / N
    return np.column_stack([np.cos(angles), np.sin(angles)])


def algorithm_for(name: str, rounds: int, **options: Any) -> Algorithm:
    return ALGORITHMS[name](rounds, **options)


def run_on(
    problem: Problem,
    records: Array,
    algorithm: Algorithm,
    streams: Streams,
    *,
    trials: int,
    N: int,
    noise: float = 0.0,
    releases: Sequence[Release] = (),
    gradients: Gradients | None = None,
    start: float = 0.0,
    watch: Callable[[int, State], None] | None = None,
    federation: type[TrialFederation] = TrialFederation,
    **options: Any,
) -> Array:
    """Outputs (trials, d) of an algorithm from w_0 = `start` in each coordinate.

    Iterates are projected onto the problem's ball, and the clip is its L, unless `options` of `TrialFederation` say
    otherwise. Without `releases` a silo sends the gradient over all its records with noise of `noise`·clip.
    """
    constants = problem.constants
    releases = releases or [Release("gradient", algorithm.rounds, 0, noise)]
    settings: dict[str, Any] = {"clip": constants.L, "prox": ball(constants.D)} | options
    stack = federation(
        gradients or problem.gradients, records, releases, trials=trials, N=N, streams=streams, **settings
    )
    return run(algorithm, stack, np.full(problem.d, start), watch)


def run_alike(
    problem: LinearOnBall | Quadratic, algorithm: Algorithm, context: Context, trials: int, N: int, **options: Any
) -> Array:
    """Outputs (`trials` at this scale, d) of `run_on` where all records are alike."""
    records, count = like_records(problem), context.trials(trials)
    return run_on(problem, records, algorithm, context.streams, trials=count, N=N, **options)


def prox_sgd_noise(context: Context, L: float, rounds: int, *, n: int, epsilon: float, delta: float) -> float:
    """σ/L of Theorem E.1 of the non-convex paper, for Prox-SGD in one pass, K = n/R."""
    variance = context.evaluate("nonconvex-2.1-noise", K=n // rounds, L=L, epsilon=epsilon, delta=delta).value
    return math.sqrt(variance) / L


def prox_sgd_risk(context: Context, problem: Quadratic, rounds: int, trials: int, N: int, **budget: Any) -> Array:
    """Excess risk of Prox-SGD in one pass where all records are alike, (`trials` at this scale,), η = 1/(2β).

    `budget` are n, ε and δ of `prox_sgd_noise`.
    """
    noise, algorithm = prox_sgd_noise(context, problem.constants.L, rounds, **budget), algorithm_for("prox_sgd", rounds)
    return excess(problem, run_alike(problem, algorithm, context, trials, N, noise=noise, stepsize=0.5))


def run_schedule(
    schedule: Schedule, problem: Problem, records: Array, streams: Streams, *, trials: int, N: int, **options: Any
) -> Array:
    """Outputs (trials, d) of a schedule's algorithm from w_0 = 0 (a hinge loss: its envelope), options of `run_on`."""
    one_pass = schedule.name.startswith("theorem-2.3")
    name = "one_pass_accelerated_sgd" if one_pass else "accelerated_minibatch_sgd"
    given: dict[str, Any] = {"schedule": schedule, "clip": problem.constants.L}
    if not schedule.stages:
        name, given = "minibatch_sgd", given | {"average": True, "mu": schedule.strong}
    sampler: Sampler = "disjoint" if one_pass else "replacement"
    noise = math.sqrt(schedule.sigma2) / problem.constants.L
    release = Release("gradient", schedule.rounds, schedule.batch, noise, sampler=sampler)
    algorithm, step = algorithm_for(name, schedule.rounds, **given), schedule.step or 1.0
    settings: dict[str, Any] = {"releases": [release], "stepsize": step}
    if schedule.envelope is not None and isinstance(problem, HingeOnBall):
        settings["gradients"] = functools.partial(problem.envelope_gradients, beta=schedule.envelope)
    settings |= options
    return run_on(problem, records, algorithm, streams, trials=trials, N=N, **settings)


def prescribe(name: str, constants: Constants, **point: Any) -> Schedule:
    """`SCHEDULES[name]` with L, and D, β, μ as far as the schedule takes them, from the problem."""
    of_problem = {"L": constants.L, "D": constants.D, "beta": constants.beta, "mu": constants.mu}
    takes = inspect.signature(SCHEDULES[name]).parameters
    return SCHEDULES[name](**{key: value for key, value in of_problem.items() if key in takes} | point)


def logarithm(schedule: Schedule) -> float:
    """μηR of a strongly convex schedule of Algorithm 1, the logarithm in η = ln(…)/(μR); 1 for other schedules."""
    return schedule.strong * (schedule.step or 0.0) * schedule.rounds or 1.0


def excess(problem: Any, outputs: Array) -> Array:
    """Excess population risk of each trial, (trials,), in closed form."""
    return np.array([problem.excess_population_risk(w) for w in outputs])
