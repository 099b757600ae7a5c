"""Check 3, convex paper: exponents of its rates, measured along ε, n, M and d (Theorems 2.1, 2.3, 2.4, 4.1 strong)."""

import functools
import math
from typing import Any

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.federation.prox import ball
from silodp.privacy.plan import Release
from silodp.theory.convex.lemmas import message_variance
from silodp.theory.convex.schedules import one_stage
from silodp.theory.problems.known import HingeOnBall, LinearOnBall, Quadratic
from silodp.theory.registry import Result
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, sweep_rows
from silodp.verdicts.checks.prescribed_runs import (
    excess,
    like_records,
    logarithm,
    prescribe,
    run_schedule,
    silo_records,
)
from silodp.verdicts.checks.stack import TrialFederation, run

DELTA = 1e-6
# Claimed exponent and those it must be told from, along each axis, where the private term leads.
CONVEX = {"epsilon": (-1.0, (-0.5, -2.0)), "n": (-1.0, (-0.5, -1.5)), "M": (-0.5, (-1.0, 0.0)), "d": (0.5, (0.0, 1.0))}
STRONG = {"epsilon": (-2.0, (-1.0, -3.0)), "n": (-2.0, (-1.0, -3.0)), "M": (-1.0, (-2.0, -0.5)), "d": (1.0, (0.5, 2.0))}
FREE_ROUNDS = 30
ONE_PASS = CONVEX | {"n": (-0.5, (0.0, -1.0))}


def rates_convex(context: Context) -> list[Row]:
    """Rows of all sweeps."""
    rows: list[Row] = []
    for sweep in _sweeps(context):
        rows += sweep_rows(sweep, context.streams)
    return rows + _free(context)


def _sweeps(context: Context) -> list[Sweep]:
    smooth = {"beta": 1.0}
    # The private term leads while nε² ≲ 300d. The theorem's noise is large, so only very many silos keep the iterates
    # from being thrown all over the ball (√(dΞ/M) ≲ 0.005); they cost nothing where all records are the same.
    base = {"n": 200, "d": 8, "M": 2**16, "epsilon": 1.0}
    axes = {"epsilon": _doubled(0.2, 5), "n": _doubled(100, 5), "M": _doubled(2**14, 5), "d": _doubled(8, 5)}
    sweeps = _private(context, "convex-2.1", "theorem-2.1", CONVEX, axes, base, smooth)
    sweeps += _private(context, "convex-2.4", "theorem-D.1", CONVEX, axes, base, smooth)
    # The envelope of a loss with a kink at its minimiser; the rounds grow with √M and n, and the axes stop before that
    # takes long.
    axes |= {"n": _doubled(50, 5), "M": _doubled(2**12, 5)}
    sweeps += _private(context, "convex-2.4", "theorem-2.4", CONVEX, axes, base, {})
    base = {"n": 1024, "d": 8, "M": 256, "epsilon": 1.0}
    axes = {"epsilon": [0.25, 0.35, 0.5, 0.7, 1.0], "n": _doubled(256, 5), "M": _doubled(64, 5), "d": _doubled(4, 5)}
    sweeps += _private(context, "convex-2.3", "theorem-2.3", ONE_PASS, axes, base, smooth)
    base = {"n": 100, "d": 4, "M": 2**18, "epsilon": 0.5}
    axes = {"epsilon": _doubled(0.125, 5), "n": _doubled(25, 5), "M": _doubled(2**16, 5), "d": _doubled(2, 5)}
    sweeps += _private(context, "convex-2.1-strong", "theorem-2.1-strong", STRONG, axes, base, {})
    return sweeps + _heterogeneous(context) + _statistical(context)


def _doubled(first: float, count: int) -> list[float]:
    return [first * 2**i for i in range(count)]


def _private(
    context: Context, theorem: str, schedule: str, exponents: dict[str, tuple[float, tuple[float, float]]],
    axes: dict[str, list[float]], base: dict[str, float], given: dict[str, float],
) -> list[Sweep]:  # fmt: skip
    """One sweep an axis, of a schedule on the linear loss, or on a quadratic where the theorem is strongly convex."""

    def sweep(axis: str) -> Sweep:
        def point(value: float) -> dict[str, Any]:
            found = base | {axis: value}
            whole = {name: int(found[name]) for name in ("n", "d", "M")}
            return whole | {"epsilon": float(found["epsilon"]), "delta": DELTA}

        def sample(value: float) -> Array:
            # Names of random streams: another schedule of the same theorem has its own.
            own = [] if schedule != "theorem-2.4" else [schedule]
            part = context.child(theorem, *own, axis, value)
            return _risk(part, schedule, point(value), given)

        def formula(value: float) -> float:
            found, constants = point(value), _problem(schedule, int(point(value)["d"])).constants
            # Rounds enter through a logarithm only; they are the prescribed ones, and so is the step's own logarithm.
            prescribed = prescribe(schedule, constants, **_with_silos(schedule, found), **given)
            rounds = prescribed.rounds
            known = {"L": constants.L, "D": constants.D, "mu": constants.mu, "R": rounds} | given | found
            wanted = context.theorems[theorem].parameters
            value = context.theorems[theorem](**{k: v for k, v in known.items() if k in wanted}).value
            return value * logarithm(prescribed)

        exponent, neighbours = exponents[axis]
        regime = "private, envelope of the hinge loss" if schedule == "theorem-2.4" else "private"
        return Sweep(theorem, axis, regime, exponent, neighbours, axes[axis], sample, formula)

    return [sweep(axis) for axis in axes]


def _problem(schedule: str, d: int) -> LinearOnBall | Quadratic | HingeOnBall:
    if schedule == "theorem-2.4":
        return HingeOnBall(d)
    return Quadratic(d, bias=0.5) if schedule.endswith("strong") else LinearOnBall(d, bias=1.0)


def _with_silos(schedule: str, point: dict[str, Any]) -> dict[str, Any]:
    # All silos take part: N = M, and φ = 0 leaves only the noise in the rounds that Theorem D.1 asks for.
    return point | ({"N": point["M"], "phi": 0.0} if schedule in ("theorem-D.1", "theorem-2.4") else {})


def _risk(context: Context, schedule: str, point: dict[str, Any], given: dict[str, float]) -> Array:
    """Excess population risk of each trial under a schedule, M = N."""
    problem = _problem(schedule, point["d"])
    prescribed = prescribe(schedule, problem.constants, **_with_silos(schedule, point), **given)
    trials, N = context.trials(100), point["M"]
    if isinstance(problem, HingeOnBall):
        if prescribed.envelope is None:
            raise ValueError(f"{schedule}: must be a schedule on the envelope for a loss with a kink")
        # All records alike, e_1: the loss 1 − w_1 is least, 0, where its kink is.
        gradients = functools.partial(problem.envelope_gradients, beta=prescribed.envelope)
        records = np.eye(1, problem.d)[None, None]
        w = run_schedule(prescribed, problem, records, context.streams, trials=trials, N=N, gradients=gradients)
        return np.maximum(0.0, 1 - w[:, 0])
    outputs = run_schedule(prescribed, problem, like_records(problem), context.streams, trials=trials, N=N)
    return excess(problem, outputs)


def _heterogeneous(context: Context) -> list[Sweep]:
    """What M < N heterogeneous silos add in Theorem D.1, D·√((N−M)/((N−1)M))·Υ/√R, without noise: along Υ, M and R.

    Silo i's gradient is −e_1 plus Υ in a direction of its own, that of all silos −e_1: the loss is linear on the ball.
    """
    N, base = 32, {"upsilon": 8.0, "M": 4.0, "R": 1600.0}
    axes = {
        "upsilon": (1.0, (0.5, 2.0), [2.0, 4.0, 8.0, 16.0]),
        "M": (-0.5, (0.0, -1.0), [1.0, 2.0, 4.0, 8.0]),
        "R": (-0.5, (0.0, -1.0), [400.0, 800.0, 1600.0, 3200.0]),
    }
    angles = 2 * np.pi * np.arange(N) / N
    circle = np.column_stack([np.zeros(N), np.cos(angles), np.sin(angles)])

    def sweep(axis: str) -> Sweep:
        exponent, rivals, values = axes[axis]

        def theorem(value: float) -> Result:
            point = base | {axis: value}
            # ε and n so large that the noise of the bound is nothing.
            return context.theorems["convex-D.1"](
                n=10**9, d=3, N=N, M=int(point["M"]), R=int(point["R"]), K=1, L=1 + point["upsilon"], D=1.0, beta=1e-6,
                phi=0.0, upsilon=point["upsilon"], epsilon=10.0, delta=DELTA,
            )  # fmt: skip

        def sample(value: float) -> Array:
            point, part = base | {axis: value}, context.child("heterogeneous", axis, value)
            M, R = int(point["M"]), int(point["R"])
            spread = message_variance(d=3, N=N, M=M, K=1, phi=0.0, upsilon=point["upsilon"], sigma=0.0)
            strength, stage = one_stage(R, 1.0, 1e-6, math.sqrt(spread.value))
            records = (np.array([1.0, 0.0, 0.0]) + point["upsilon"] * circle)[None, :, None]
            federation = TrialFederation(
                lambda w, rows: -rows, records, [Release("gradient", R, 0, 0.0)], trials=context.trials(200), N=N,
                streams=part.streams, cohort=M, prox=ball(1.0),
            )  # fmt: skip
            algorithm = ALGORITHMS["accelerated_minibatch_sgd"](R, stages=(stage,), regularisation=strength)  # type: ignore[call-arg]
            return 1 - run(algorithm, federation, np.zeros(3))[:, 0]

        return Sweep("convex-D.1", axis, "silos drawn", exponent, rivals, values, sample, lambda v: theorem(v).value)

    return [sweep(axis) for axis in axes]


def _statistical(context: Context) -> list[Sweep]:
    """The statistical terms 1/(nM) and 1/√(nM): the same algorithm without noise, over enough rounds."""
    quadratic, rounds = Quadratic(4, bias=0.5), 30

    def strong(n: int, M: int) -> Array:
        part = context.child("statistical", n, M)
        return excess(quadratic, _noiseless(part, quadratic, n, M, rounds, 0.3))

    def hard(n: int, M: int) -> Array:
        # The instance of the lower bound: a bias that n·M records can hardly see; steps fit so flat a loss.
        problem = LinearOnBall(4, bias=1 / math.sqrt(n * M))
        part = context.child("hard", n, M)
        return excess(problem, _noiseless(part, problem, n, M, rounds, math.sqrt(n * M) / 2))

    def rate(n: int, M: int) -> float:
        return context.theorems["convex-nonprivate-strong"](n=n, N=M, phi=1.0, mu=1.0).value

    def hard_rate(n: int, M: int) -> float:
        return context.theorems["convex-nonprivate"](n=n, N=M, phi=1.0, D=1.0).value

    n_axis, m_axis = [16, 32, 64, 128, 256], [2, 4, 8, 16, 32]
    one, half = (-1.0, (-0.5, -2.0)), (-0.5, (0.0, -1.0))
    return [
        Sweep("convex-nonprivate-strong", "n", "statistical", *one, n_axis, lambda n: strong(int(n), 8),
              lambda n: rate(int(n), 8)),
        Sweep("convex-nonprivate-strong", "M", "statistical", *one, m_axis, lambda M: strong(64, int(M)),
              lambda M: rate(64, int(M))),
        Sweep("convex-nonprivate", "n", "statistical", *half, n_axis, lambda n: hard(int(n), 8),
              lambda n: hard_rate(int(n), 8)),
        Sweep("convex-nonprivate", "M", "statistical", *half, m_axis, lambda M: hard(64, int(M)),
              lambda M: hard_rate(64, int(M))),
    ]  # fmt: skip


def _noiseless(
    context: Context, problem: Any, n: int, M: int, rounds: int, step: float, noise: float = 0.0, most: int = 10**6
) -> Array:
    """Mean iterate of plain minibatch SGD with full batches and noise of `noise`·L, (trials, d).

    `most` limits the trials, for large data.
    """
    trials = min(context.trials(200), most)
    records = silo_records(problem, context.streams, trials, M, n)
    release = Release("gradient", rounds, 0, noise)
    federation = TrialFederation(
        problem.gradients, records, [release], trials=trials, N=M, streams=context.streams, clip=problem.constants.L,
        stepsize=step, prox=ball(problem.constants.D),
    )  # fmt: skip
    algorithm = ALGORITHMS["minibatch_sgd"](rounds, average=True, mu=problem.constants.mu)  # type: ignore[call-arg]
    return run(algorithm, federation, np.zeros(problem.d))


def _free(context: Context) -> list[Row]:
    """Privacy for free: the n* at which private risk is twice the non-private one, along d and along ε.

    The claim is that n* is of order d/ε². With noise of the moments form, 8R ln(1/δ)/(nε)², the private part is some
    hundred times d/(ε²n²M), and n* lies in the tens and hundreds.
    """
    base = {"d": 4.0, "epsilon": 8.0}
    axes = {"d": (1.0, (0.5, 2.0), _doubled(1, 5)), "epsilon": (-2.0, (-1.0, -3.0), [2.8, 4.0, 5.7, 8.0, 11.3])}

    def sweep(axis: str) -> Sweep:
        exponent, rivals, values = axes[axis]

        def formula(value: float) -> float:
            point = base | {axis: value}
            return context.theorems["convex-free"](
                n=100, d=int(point["d"]), R=FREE_ROUNDS, epsilon=point["epsilon"], delta=DELTA
            ).value

        def sample(value: float) -> Array:
            point = base | {axis: value}
            return _break_even(context.child("free", axis, value), int(point["d"]), point["epsilon"])

        return Sweep("convex-free", axis, "n where privacy doubles the risk", exponent, rivals, values, sample, formula)

    return [found for axis in axes for found in sweep_rows(sweep(axis), context.streams)]


def _break_even(context: Context, d: int, epsilon: float) -> Array:
    """n* in batches of trials, measured at an n close by: there the private part falls as 1/n² and the other as 1/n."""
    M, step = 8, 0.3
    problem, n = Quadratic(d, bias=0.5), round(82 * (d / 4) * (8 / epsilon) ** 2)
    sigma = math.sqrt(8 * FREE_ROUNDS * math.log(1 / DELTA)) / (n * epsilon)
    private, plain = (
        excess(problem, _noiseless(context.child(name), problem, n, M, FREE_ROUNDS, step, noise, most=800))
        for name, noise in (("private", sigma), ("plain", 0.0))
    )
    batches = max(len(private) // 40, 2)
    means = [[part.mean() for part in np.array_split(one, batches)] for one in (private, plain)]
    return n * (np.array(means[0]) / np.array(means[1]) - 1)
