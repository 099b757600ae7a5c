"""Check 1: measured risk against the right sides of theorems that print their constants, and printed forms that fail.

Rows of a statement as printed stand beside those of the corrected one (docs/errata.md); a bound that is not below the
largest value that can be reached is vacuous.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from silodp.algorithms.base import State
from silodp.federation.prox import no_prox
from silodp.privacy.plan import Release
from silodp.theory.problems.known import HingeOnBall, LinearOnBall, LogisticOnBall, Quadratic, SmoothNonconvex
from silodp.verdicts.checks.base import Array, Context, Row, bounded, equals
from silodp.verdicts.checks.prescribed_runs import (
    algorithm_for,
    circle,
    excess,
    like_records,
    prescribe,
    run_on,
    run_schedule,
    silo_records,
)
from silodp.verdicts.checks.spider_runs import spider_gradients, spider_point
from silodp.verdicts.words import AS_PRINTED, CORRECTED, Verdict

DELTA = 1e-6
EPSILONS = (1.0, 2.0, 4.0, 8.0)


def upper_bounds(context: Context) -> list[Row]:
    # Names of random streams: a new name is a new table.
    parts = {
        "_linear": _linear,
        "_logistic": _logistic,
        "_hinge": _hinge,
        "_lemma_d4": _lemma_d4,
        "_lemma_d5": _lemma_d5,
        "_recursion": _recursion,
        "_spider": _spider,
        "_small_beta": _small_beta,
        "_drawn_silos": _drawn_silos,
    }
    return [row for name, part in parts.items() for row in part(context.child(name))]


def _linear(context: Context) -> list[Row]:
    """Theorem 2.1 on its hard instance, constant records: nothing but noise."""
    problem, rows = LinearOnBall(8, bias=1.0), []
    for epsilon in EPSILONS:
        point: dict[str, Any] = {"n": 200, "d": 8, "M": 2**16, "epsilon": epsilon, "delta": DELTA}
        schedule = prescribe("theorem-2.1", problem.constants, beta=1.0, **point)
        trials, streams = context.trials(100), context.child(epsilon).streams
        outputs = run_schedule(schedule, problem, like_records(problem), streams, trials=trials, N=point["M"])
        risk = excess(problem, outputs)
        bound = context.evaluate("convex-2.1", **point, R=schedule.rounds, L=1.0, D=1.0).value
        rows.append(bounded("convex-2.1", "epsilon (linear)", epsilon, risk, upper=bound, reach=2.0, form=CORRECTED))
    return rows


def _logistic(context: Context) -> list[Row]:
    sizes = {"n": 512, "d": 5, "M": 400}
    return _margin(context, "logistic", "2.1", LogisticOnBall(5), sizes, EPSILONS, form=CORRECTED)


def _hinge(context: Context) -> list[Row]:
    """Theorem 2.2 takes M·min{n, 1/(dΞ)} rounds, and its 545 LD/√(nM) is below the largest loss, 2, from 75,000 on."""
    sizes = {"n": 90_000, "d": 1, "M": 1} if context.scale == "paper" else {"n": 128, "d": 1, "M": 8}
    return _margin(context, "hinge", "2.2", HingeOnBall(sizes["d"]), sizes, (8.0,))


def _margin(
    context: Context,
    loss: str,
    theorem: str,
    problem: LogisticOnBall | HingeOnBall,
    sizes: dict[str, int],
    epsilons: Sequence[float],
    form: str = "",
) -> list[Row]:
    """Logistic or hinge loss on i.i.d. silos of a finite population."""
    trials, rows = context.trials(4), []
    population = problem.draw(1000, context.streams.generator("population"))
    optimum = problem.optimum(population)
    L, D, N = problem.constants.L, problem.constants.D, sizes["M"]
    # Losses of records on the ball have margins from −D to D, and no excess risk is larger than between these.
    reach = float(np.ptp(problem.losses(np.array([D]), np.array([[1.0], [-1.0]]))))
    for epsilon in epsilons:
        streams, point = context.child(epsilon).streams, sizes | {"epsilon": epsilon, "delta": DELTA}
        schedule = prescribe(f"theorem-{theorem}", problem.constants, **point)
        drawn = streams.generator("silos").integers(0, len(population), (trials, N, sizes["n"]))
        outputs = run_schedule(schedule, problem, population[drawn], streams, trials=trials, N=N)
        bound = context.evaluate(f"convex-{theorem}", **point, R=schedule.rounds, L=L, D=D).value
        # F(w) − F* is too large by the certificate's gap at most.
        means = np.array([problem.losses(w, population).mean() for w in outputs])
        risk, name = means - optimum.value + optimum.gap, f"epsilon ({loss})"
        rows.append(bounded(f"convex-{theorem}", name, epsilon, risk, upper=bound, reach=reach, form=form))
    return rows


def _spread(records: Array, curvatures: Array) -> tuple[float, float]:
    """φ and υ of a quadratic's gradients: of records (1, N, n, d) in their silos, and of silos in the federation."""
    means = records.mean(axis=2, keepdims=True)
    phi2 = float((((records - means) * curvatures) ** 2).sum(axis=-1).mean())
    upsilon2 = float((((means - means.mean(axis=1, keepdims=True)) * curvatures) ** 2).sum(axis=-1).mean())
    return math.sqrt(phi2), math.sqrt(upsilon2)


def _largest(problem: Quadratic) -> float:
    """The largest excess risk on the ball, reached opposite to the minimiser."""
    return 0.5 * problem.beta * (problem.D * (1 + problem.bias)) ** 2


def _lemma_d4(context: Context) -> list[Row]:
    """Empirical risk of Algorithm 1 on a quadratic, whose gradients' variance is the same everywhere."""
    problem, N, n, K, rounds, trials = Quadratic(4, mu=0.2, bias=0.5), 6, 50, 5, 60, context.trials(400)
    L, records, key = problem.constants.L, silo_records(problem, context.streams, 1, N, n), "convex-lemma-D.4-shifted"
    phi, upsilon = _spread(records, problem.curvatures)
    rows, best = [], problem.optimum(records.reshape(N * n, -1))
    algorithm, step = algorithm_for("minibatch_sgd", rounds, average=True), 0.25
    for sigma in (0.1, 0.5, 2.0):
        for M in (3, N):
            releases = [Release("gradient", rounds, K, sigma / L)]
            options: dict[str, Any] = {"releases": releases, "cohort": M, "stepsize": step}
            streams = context.child(sigma, M).streams
            outputs = run_on(problem, records, algorithm, streams, trials=trials, N=N, **options)
            risk = problem.losses(outputs[:, None], records.reshape(1, N * n, -1)).mean(axis=1) - best.value
            point = {"d": 4, "N": N, "M": M, "R": rounds, "K": K, "sigma": sigma, "phi": phi, "upsilon": upsilon}
            bound = context.evaluate(key, **point, D=1.0, beta=1.0, eta=step).value
            name, reach = f"sigma (quadratic, M = {M})", _largest(problem)
            rows.append(bounded(key, name, sigma, risk, upper=bound, reach=reach, form=CORRECTED))
    return rows


def _lemma_d5(context: Context) -> list[Row]:
    """The variance of one round's mean message is the stated one."""
    problem, N, n, K, sigma, trials = Quadratic(3, bias=0.2), 5, 20, 4, 0.3, context.trials(20_000)
    records = silo_records(problem, context.streams, 1, N, n)
    phi, upsilon = _spread(records, np.ones(3))
    rows = []
    for M in (1, 2, 5):
        releases = [Release("gradient", 1, K, sigma)]
        message = _message(problem, records, context.child(M), trials, N, releases=releases, cohort=M)
        squares = ((message + records.mean(axis=2).mean(axis=1)) ** 2).sum(axis=1)
        point = {"d": 3, "N": N, "M": M, "K": K, "phi": phi, "upsilon": upsilon, "sigma": sigma}
        exact = context.evaluate("convex-lemma-D.5", **point).value
        rows.append(equals("convex-lemma-D.5", f"M (K = {K})", M, squares, exact))
    return rows


def _message(problem: Quadratic, records: Array, context: Context, trials: int, N: int, **options: Any) -> Array:
    """A round's mean message at 0, (trials, d): one step of size 1 from 0 is the message, with its sign turned."""
    options |= {"clip": 1.0, "prox": no_prox}
    return -run_on(problem, records, algorithm_for("minibatch_sgd", 1), context.streams, trials=trials, N=N, **options)


def _recursion(context: Context) -> list[Row]:
    """Prox-SGD in one pass of R rounds, eq. (20) of the non-convex paper with its constants, on i.i.d. silos."""
    problem, N, K, sigma, trials, rows = Quadratic(4, mu=0.2, bias=0.5), 16, 25, 0.3, context.trials(50), []
    L, mu, start = problem.constants.L, problem.constants.mu, problem.excess_population_risk(np.zeros(4))
    for R in (5, 10, 20, 40):
        streams = context.child(R).streams
        records = silo_records(problem, streams, trials, N, K * R)
        releases = [Release("gradient", R, K, sigma / L, sampler="disjoint")]
        options: dict[str, Any] = {"releases": releases, "stepsize": 0.5}
        outputs = run_on(problem, records, algorithm_for("prox_sgd", R), streams, trials=trials, N=N, **options)
        point = {"d": 4, "M": N, "R": R, "K": K, "L": L, "Delta": start, "beta": 1.0, "mu": mu, "sigma": sigma}
        bound, risk = context.evaluate("nonconvex-2.1-recursion", **point).value, excess(problem, outputs)
        reach = _largest(problem)
        rows.append(bounded("nonconvex-2.1-recursion", "R (quadratic)", R, risk, upper=bound, reach=reach))
    return rows


def _spider(context: Context) -> list[Row]:
    """Claim (45) of the non-convex paper at the noise, phase and rounds of its proof, and at those printed."""
    problem, rows = SmoothNonconvex(4), []
    reach = problem.constants.L**2
    for epsilon, (part, form) in product(EPSILONS, (((), CORRECTED), (("printed",), AS_PRINTED))):
        reading = "printed" if part else "right"
        point = spider_point(context, problem, n=800, M=16, epsilon=epsilon, delta=DELTA, reading=reading)
        squares = spider_gradients(context.child(epsilon, *part), problem, point, 16, context.trials(20))
        name, upper = "epsilon (smooth, not convex)", point.bound
        rows.append(bounded("nonconvex-3.1-claim", name, epsilon, squares, upper=upper, reach=reach, form=form))
    return rows


def _summed(rounds: int, trials: int, of_state: Callable[[Array], Array]) -> tuple[Array, Callable]:
    """The sum over w_0 … w_{R−1} of what `of_state` makes of them, (trials, 1), and the watcher that fills it."""
    total = np.zeros((trials, 1))

    def watch(r: int, state: State) -> None:
        if r < rounds:
            total[:] += of_state(state.w.numpy())

    return total, watch


def _small_beta(context: Context) -> list[Row]:
    """Theorem 2.1 for β → 0: the printed output, the mean of w_0 … w_{R−1}, is w_0; the shifted one obeys the bound."""
    problem, M, trials, rows = LinearOnBall(1, bias=1.0), 100, context.trials(100), []
    records = like_records(problem)
    for n in (10_000, 100_000):
        point: dict[str, Any] = {"n": n, "d": 1, "M": M, "epsilon": 1.0, "delta": 1e-8}
        schedule = prescribe("theorem-2.1", problem.constants, beta=1e-9, K=n, **point)
        upper = context.evaluate("convex-2.1", **point, R=schedule.rounds, L=1.0, D=1.0).value
        streams = context.child(n).streams
        shifted = run_schedule(schedule, problem, records, streams, trials=trials, N=M)
        total, watch = _summed(schedule.rounds, trials, lambda w: w)
        options: dict[str, Any] = {"noise": math.sqrt(schedule.sigma2), "stepsize": schedule.step, "watch": watch}
        plain = algorithm_for("minibatch_sgd", schedule.rounds)
        run_on(problem, records, plain, streams, trials=trials, N=M, **options)
        for form, outputs in ((CORRECTED, shifted), (AS_PRINTED, total / schedule.rounds)):
            risk, name = excess(problem, outputs), "n (linear, beta near 0)"
            rows.append(bounded("convex-2.1", name, n, risk, upper=upper, reach=2.0, form=form))
    return rows


def _drawn_silos(context: Context) -> list[Row]:
    """What drawing M < N silos does to Theorem F.1 of the non-convex paper (errata)."""
    return [*_silo_variance(context.child("variance")), *_two_silos(context)]


def _silo_variance(context: Context) -> list[Row]:
    """Squared error of the mean gradient of M = 2 of N = 6 silos, full batches without noise."""
    N, M, key, rows = 6, 2, "nonconvex-clusters", []
    centres = 0.5 * circle(N)[None, :, None]
    # The mean gradient at 0 is 0.
    squares = (_message(Quadratic(2), centres, context, context.trials(2000), N, cohort=M) ** 2).sum(axis=1)
    for n in (1_000, 100_000, 10_000_000):
        point = {"n": n, "N": N, "M": M, "L": 0.5, "upsilon": 0.5}
        right, printed = (context.evaluate(key, **point, reading=reading).value for reading in ("right", "printed"))
        name = f"n (M = {M} of N = {N} silos)"
        rows.append(equals(key, name, n, squares, right, form=CORRECTED))
        # All drawn gradients have norm L, and so has their mean at most.
        rows.append(bounded(key, name, n, squares, upper=printed, reach=0.25, form=AS_PRINTED))
    return rows


def _two_silos(context: Context) -> list[Row]:
    """E‖∇F‖² of w_R with the proof's step, and over all iterates with a small one."""
    a, trials, key, rows = 0.5, context.trials(1000), "nonconvex-3.1", []
    records = np.array([a, -a]).reshape(1, 2, 1, 1)
    options: dict[str, Any] = {"trials": trials, "N": 2, "start": math.sqrt(0.02), "cohort": 1, "prox": no_prox}
    point = {"d": 1, "N": 2, "M": 1, "L": 1.5, "Delta": 0.01, "beta": 1.0, "epsilon": 1.0, "delta": DELTA}
    algorithm, reach = algorithm_for("minibatch_sgd", 60), 1.5**2
    squares = run_on(Quadratic(1), records, algorithm, context.streams, stepsize=0.5, **options)[:, 0] ** 2
    for n in (1_000, 100_000, 10_000_000):
        right = context.evaluate(key, n=n, **point, upsilon=a).value
        name = "n (two silos, one a round, step 1/(2 beta))"
        rows.append(bounded(key, name, n, squares, upper=right, reach=reach, form=CORRECTED))
    rounds, streams = 4000, context.child("small").streams
    total, watch = _summed(rounds, trials, lambda w: w**2)
    algorithm = algorithm_for("minibatch_sgd", rounds)
    run_on(Quadratic(1), records, algorithm, streams, stepsize=0.005, watch=watch, **options)
    printed, samples = context.evaluate(key, n=1_000, **point, reading="printed").value, total[:, 0] / rounds
    name = "n (two silos, one a round, step 0.005)"
    small = bounded(key, name, 1_000, samples, upper=printed, reach=reach, form=AS_PRINTED)
    if small["verdict"] == Verdict.CONFIRMED:
        small |= {"verdict": str(Verdict.NOT_CONTRADICTED), "detail": "parameters exist here, not those of the proof"}
    return [*rows, small]
