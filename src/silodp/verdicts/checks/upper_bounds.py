"""Check 1: measured risk against the right sides of theorems that print their constants, and printed forms that fail.

A row of a printed form that is known not to hold stands beside the right one; docs/errata.md says why it fails.
"""

import math
from typing import Any

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import State
from silodp.checks.base import Array, Context, Row, bounded, equals
from silodp.checks.populations import Population
from silodp.checks.prescribed_runs import excess, like_records, prescribe, run_schedule, silo_records
from silodp.checks.spider_runs import spider_gradients, spider_point
from silodp.checks.stack import Gradients, TrialFederation, run
from silodp.privacy.plan import Release
from silodp.prox import ball
from silodp.theory.problems import HingeOnBall, LinearOnBall, LogisticOnBall, Quadratic, SmoothNonconvex

DELTA = 1e-6
EPSILONS = (1.0, 2.0, 4.0, 8.0)


def upper_bounds(context: Context) -> list[Row]:
    """Rows of all theorems."""
    parts = (_linear, _logistic, _hinge, _lemma_d4, _lemma_d5, _recursion, _spider, _small_beta, _drawn_silos)
    return [one for part in parts for one in part(context.child(part.__name__))]


def _linear(context: Context) -> list[Row]:
    """Theorem 2.1 on its hard instance, constant records: nothing but noise."""
    problem, rows = LinearOnBall(8, bias=1.0), []
    for epsilon in EPSILONS:
        point: dict[str, Any] = {"n": 200, "d": 8, "M": 2**16, "epsilon": epsilon, "delta": DELTA}
        schedule = prescribe("theorem-2.1", problem.constants, beta=1.0, **point)
        trials, streams = context.trials(100), context.child(epsilon).streams
        outputs = run_schedule(schedule, problem, like_records(problem), streams, trials=trials, N=point["M"])
        upper = context.theorems["convex-2.1"](**point, R=schedule.rounds, L=1.0, D=1.0).value
        rows.append(bounded("convex-2.1", "epsilon (linear)", epsilon, excess(problem, outputs), upper=upper))
    return rows


def _logistic(context: Context) -> list[Row]:
    problem = LogisticOnBall(5)
    return _margin(context, "convex-2.1", "theorem-2.1", problem, {"beta": 0.25}, {"n": 128, "d": 5, "M": 400})


def _hinge(context: Context) -> list[Row]:
    """Theorem 2.2: rounds grow as M·min{n, 1/(dΞ)}, so that few silos must do; the bound is then above LD."""
    return _margin(context, "convex-2.2", "theorem-2.2", HingeOnBall(5), {}, {"n": 128, "d": 5, "M": 8})


def _margin(
    context: Context, theorem: str, name: str, problem: LogisticOnBall | HingeOnBall, given: dict[str, float],
    base: dict[str, int],
) -> list[Row]:  # fmt: skip
    """Logistic or hinge loss on i.i.d. silos of a finite population."""
    trials, rows = context.trials(20), []
    population = Population.of(problem, context.streams, 1000)
    L, D = problem.constants.L, problem.constants.D
    for epsilon in EPSILONS:
        streams, point = context.child(epsilon).streams, base | {"epsilon": epsilon, "delta": DELTA}
        schedule = prescribe(name, problem.constants, **point, **given)
        gradients = None
        if schedule.envelope is not None and isinstance(problem, HingeOnBall):
            gradients = _envelope(problem, schedule.envelope)
        records = population.silos(streams, trials, base["M"], base["n"])
        outputs = run_schedule(schedule, problem, records, streams, trials=trials, N=base["M"], gradients=gradients)
        upper = context.theorems[theorem](**point, R=schedule.rounds, L=L, D=D).value
        loss = type(problem).__name__.removesuffix("OnBall").lower()
        rows.append(bounded(theorem, f"epsilon ({loss})", epsilon, population.excess(outputs), upper=upper))
    return rows


def _envelope(problem: HingeOnBall, beta: float) -> Gradients:
    return lambda w, records: problem.envelope_gradients(w, records, beta)


def _lemma_d4(context: Context) -> list[Row]:
    """Empirical risk of Algorithm 1 on a quadratic, whose gradients' variance is the same everywhere."""
    problem, N, n, K, rounds, trials = Quadratic(4, mu=0.2, bias=0.5), 6, 50, 5, 60, context.trials(400)
    records = silo_records(problem, context.streams, 1, N, n)
    means = records.mean(axis=2, keepdims=True)
    phi2 = float((((records - means) * problem.curvatures) ** 2).sum(axis=-1).mean())
    upsilon2 = float((((means - means.mean(axis=1, keepdims=True)) * problem.curvatures) ** 2).sum(axis=-1).mean())
    rows, best = [], problem.optimum(records.reshape(N * n, -1))
    for sigma in (0.1, 0.5, 2.0):
        for M in (3, N):
            outputs = _fixed_noise(context.child(sigma, M), problem, records, K, rounds, sigma, N, M, trials)
            risk = problem.losses(outputs[:, None], records.reshape(1, N * n, -1)).mean(axis=1) - best.value
            bound = context.theorems["convex-lemma-D.4-shifted"](
                d=4, N=N, M=M, R=rounds, K=K, D=1.0, beta=1.0, eta=0.25, sigma=sigma, phi=math.sqrt(phi2),
                upsilon=math.sqrt(upsilon2),
            ).value  # fmt: skip
            rows.append(bounded("convex-lemma-D.4-shifted", f"sigma (quadratic, M = {M})", sigma, risk, upper=bound))
    return rows


def _fixed_noise(
    context: Context, problem: Quadratic, records: Array, K: int, rounds: int, sigma: float, N: int, M: int, trials: int
) -> Array:
    """Mean iterate of minibatch SGD with η = 1/(4β) and noise σ, (trials, d)."""
    L = problem.constants.L
    federation = TrialFederation(
        problem.gradients, records, [Release("gradient", rounds, K, sigma / L)], trials=trials, N=N, taking_part=M,
        streams=context.streams, clip=L, stepsize=0.25, prox=ball(problem.D),
    )  # fmt: skip
    algorithm = ALGORITHMS["minibatch_sgd"](rounds, average=True)  # type: ignore[call-arg]
    return run(algorithm, federation, np.zeros(problem.d))


def _lemma_d5(context: Context) -> list[Row]:
    """The variance of one round's mean message is the stated one."""
    problem, N, n, K, sigma, trials = Quadratic(3, bias=0.2), 5, 20, 4, 0.3, context.trials(20_000)
    records = silo_records(problem, context.streams, 1, N, n)
    means = records.mean(axis=2)
    phi2 = float(((records - means[:, :, None]) ** 2).sum(axis=-1).mean())
    upsilon2 = float(((means - means.mean(axis=1, keepdims=True)) ** 2).sum(axis=-1).mean())
    rows = []
    for M in (1, 2, 5):
        federation = TrialFederation(
            problem.gradients, records, [Release("gradient", 1, K, sigma)], trials=trials, N=N, taking_part=M,
            streams=context.child(M).streams,
        )  # fmt: skip
        # One step of size 1 from 0 is the message, with its sign turned.
        message = -run(ALGORITHMS["minibatch_sgd"](1), federation, np.zeros(3))
        squares = ((message + means.mean(axis=1)) ** 2).sum(axis=1)
        exact = context.theorems["convex-lemma-D.5"](
            d=3, N=N, M=M, K=K, phi=math.sqrt(phi2), upsilon=math.sqrt(upsilon2), sigma=sigma
        ).value
        rows.append(equals("convex-lemma-D.5", f"M (K = {K})", M, squares, exact))
    return rows


def _recursion(context: Context) -> list[Row]:
    """Prox-SGD after R rounds, eq. (20) of the non-convex paper with its constants."""
    problem, N, K, sigma, trials, rows = Quadratic(4, mu=0.2, bias=0.5), 4, 5, 0.3, context.trials(400), []
    constants = problem.constants
    for R in (5, 10, 20, 40, 80):
        streams = context.child(R).streams
        records = silo_records(problem, streams, trials, N, K * R)
        release = Release("gradient", R, K, sigma / constants.L, sampler="disjoint")
        federation = TrialFederation(
            problem.gradients, records, [release], trials=trials, N=N, streams=streams, clip=constants.L, stepsize=0.5,
            prox=ball(problem.D),
        )  # fmt: skip
        risk = excess(problem, run(ALGORITHMS["minibatch_sgd"](R), federation, np.zeros(4)))
        start = problem.excess_population_risk(np.zeros(4))
        bound = context.theorems["nonconvex-2.1-recursion"](
            d=4, M=N, R=R, K=K, L=constants.L, Delta=start, beta=1.0, mu=constants.mu, sigma=sigma
        ).value
        rows.append(bounded("nonconvex-2.1-recursion", "R (quadratic)", R, risk, upper=bound))
    return rows


def _spider(context: Context) -> list[Row]:
    """Claim (45) of the non-convex paper at the noise, phase and rounds of its proof."""
    problem, rows = SmoothNonconvex(4), []
    for epsilon in EPSILONS:
        part = context.child(epsilon)
        point = spider_point(context, problem, n=800, M=16, epsilon=epsilon, delta=DELTA)
        found = spider_gradients(part, problem, point, 16, context.trials(20))
        rows.append(bounded("nonconvex-3.1-claim", "epsilon (smooth, not convex)", epsilon, found, upper=point.bound))
    return rows


def _small_beta(context: Context) -> list[Row]:
    """Theorem 2.1 for β → 0: the printed output, the mean of w_0 … w_{R−1}, is w_0; the shifted one obeys the bound."""
    problem, M, trials, rows = LinearOnBall(1, bias=1.0), 100, context.trials(100), []
    for n in (10_000, 100_000):
        point: dict[str, Any] = {"n": n, "d": 1, "M": M, "epsilon": 1.0, "delta": 1e-8}
        schedule = prescribe("theorem-2.1", problem.constants, beta=1e-9, K=n, **point)
        upper = context.theorems["convex-2.1"](**point, R=schedule.rounds, L=1.0, D=1.0).value
        streams = context.child(n).streams
        outputs = run_schedule(schedule, problem, like_records(problem), streams, trials=trials, N=M)
        sigma = math.sqrt(schedule.sigma2)
        printed = _mean_from_start(schedule.rounds, schedule.step or 0.0, sigma, M, streams, trials)
        name = "n (linear, beta near 0)"
        rows.append(bounded("convex-2.1", name, n, excess(problem, outputs), upper=upper))
        rows.append(bounded("convex-2.1", name, n, excess(problem, printed), upper=upper, printed=True))
    return rows


def _mean_from_start(rounds: int, step: float, sigma: float, M: int, streams: Any, trials: int) -> Array:
    """The mean of w_0 … w_{R−1} that the paper prints as output, (trials, 1)."""
    problem = LinearOnBall(1, bias=1.0)
    federation = TrialFederation(
        problem.gradients, like_records(problem), [Release("gradient", rounds, 0, sigma)], trials=trials, N=M,
        streams=streams, stepsize=step, prox=ball(1.0),
    )  # fmt: skip
    total = np.zeros((trials, 1))

    def watch(r: int, state: State) -> None:
        if r < rounds:
            total[:] += state["w"].numpy()

    run(ALGORITHMS["minibatch_sgd"](rounds), federation, np.zeros(1), watch)
    return total / rounds


def _drawn_silos(context: Context) -> list[Row]:
    """Theorem F.1 for M < N: two silos βw²/2 ± aw, one a round, no noise: E‖∇F‖² → a²/3 whatever n (errata)."""
    a, trials, rows = 0.5, context.trials(1000), []
    problem = Quadratic(1)
    federation = TrialFederation(
        problem.gradients, np.array([a, -a]).reshape(1, 2, 1, 1), [Release("gradient", 60, 0, 0.0)], trials=trials, N=2,
        streams=context.streams, stepsize=0.5, taking_part=1,
    )  # fmt: skip
    squares = run(ALGORITHMS["minibatch_sgd"](60), federation, np.zeros(1))[:, 0] ** 2
    for n in (1_000, 100_000, 10_000_000):
        point = {"n": n, "d": 1, "N": 2, "M": 1, "L": 1.5, "Delta": 1e-3, "beta": 1.0, "epsilon": 1.0, "delta": DELTA}
        name = "n (two unlike silos, one a round)"
        right = context.theorems["nonconvex-3.1"](**point, upsilon=a).value
        printed = context.theorems["nonconvex-3.1"](**point, reading="printed").value
        rows.append(bounded("nonconvex-3.1", name, n, squares, upper=right))
        rows.append(bounded("nonconvex-3.1", name, n, squares, upper=printed, printed=True))
    return rows
