"""Check 3, non-convex paper: exponents of Theorems 2.1 (proximal-PL, Prox-SGD) and 3.1 (FedProx-SPIDER)."""

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor

from silodp.algorithms import ALGORITHMS
from silodp.federation.prox import ball
from silodp.privacy.plan import Release
from silodp.theory.problems.known import Quadratic, SmoothNonconvex, SparseLeastSquares
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, sweep_rows
from silodp.verdicts.checks.prescribed_runs import excess, like_records
from silodp.verdicts.checks.spider_runs import spider_gradients, spider_point
from silodp.verdicts.checks.stack import TrialFederation, run
from silodp.verdicts.words import CORRECTED

DELTA = 1e-6
ROUNDS, SPARSE_ROUNDS = 20, 160
PL = {"epsilon": (-2.0, (-1.0, -3.0)), "n": (-2.0, (-1.0, -3.0)), "M": (-1.0, (-2.0, -0.5)), "d": (1.0, (0.5, 2.0))}
SPIDER = {"epsilon": (-4 / 3, (-1.0, -2.0)), "n": (-4 / 3, (-1.0, -2.0)), "M": (-2 / 3, (-0.5, -1.0))}


def rates_nonconvex(context: Context) -> list[Row]:
    """Rows of all sweeps."""
    rows: list[Row] = []
    for sweep in [*_prox_sgd(context), *_silos(context), *_spider(context)]:
        rows += sweep_rows(sweep, context.streams)
    return rows


def _prox_sgd(context: Context) -> list[Sweep]:
    """Prox-SGD in one pass, K = n/R, with σ² of Theorem E.1, M = N: on a quadratic, and on least squares with ℓ1.

    A silo's records are few distinct ones, repeated, in an order in which every batch holds each equally often: a batch
    has the mean of the whole, and only the noise is random.
    """
    axes: dict[str, list[float]] = {
        "epsilon": [0.5, 1, 2, 4, 8],
        "n": [1000, 2000, 4000, 8000, 16000],
        "M": [16, 32, 64, 128, 256],
        "d": [4, 8, 16, 32, 64],
    }
    dense = {"epsilon": 4.0, "n": 8000, "M": 64, "d": 8}

    def sweep(axis: str, what: str, sample: Callable[..., Array], values: list[float], base: dict[str, float]) -> Sweep:
        def at(value: float) -> Array:
            point = base | {axis: value}
            return sample(context.child(what, axis, value), point)

        def formula(value: float) -> float:
            point = base | {axis: value}
            whole = {name: int(point[name]) for name in ("n", "d", "M")}
            return context.theorems["nonconvex-2.1"](
                **whole, N=whole["M"], L=2.0, beta=1.0, mu=1.0, epsilon=point["epsilon"], delta=DELTA
            ).terms["private"]

        return Sweep("nonconvex-2.1", axis, f"private, {what}", *PL[axis], values, at, formula)

    sweeps = [sweep(axis, "quadratic", _quadratic, values, dense) for axis, values in axes.items()]
    # Less noise: it must not reach over the kinks of the ℓ1 norm, or the bound's power law is not yet there.
    nonsmooth = dense | {"M": 2**18}
    axes |= {"M": [2**16, 2**17, 2**18, 2**19, 2**20]}
    what = "least squares with l1"
    return [*sweeps, *(sweep(axis, what, _sparse, axes[axis], nonsmooth) for axis in ("epsilon", "n", "M"))]


def _silos(context: Context) -> list[Sweep]:
    """The part of the risk that M < N heterogeneous silos add, (N−M)/((N−1)M)·υ²/μ, without noise, along υ and M."""
    N, base = 32, {"upsilon": 0.2, "M": 4.0}
    axes = {"upsilon": (2.0, (1.0, 3.0), [0.05, 0.1, 0.2, 0.4]), "M": (-1.0, (-0.5, -2.0), [1.0, 2.0, 4.0, 8.0])}
    angles = 2 * np.pi * np.arange(N) / N
    circle = np.column_stack([np.cos(angles), np.sin(angles)])

    def sweep(axis: str) -> Sweep:
        exponent, rivals, values = axes[axis]

        def sample(value: float) -> Array:
            point, part = base | {axis: value}, context.child("silos", axis, value)
            # All silos' gradients at the optimum, 0, have norm υ.
            federation = TrialFederation(
                Quadratic(2).gradients, point["upsilon"] * circle[None, :, None], [Release("gradient", ROUNDS, 0, 0.0)],
                trials=context.trials(800), N=N, streams=part.streams, stepsize=0.5, cohort=int(point["M"]),
            )  # fmt: skip
            outputs = run(ALGORITHMS["prox_sgd"](ROUNDS), federation, np.zeros(2))
            return 0.5 * (outputs**2).sum(axis=1)

        def formula(value: float) -> float:
            point = base | {axis: value}
            return context.theorems["nonconvex-2.1"](
                n=1000, d=2, N=N, M=int(point["M"]), L=1.0, beta=1.0, mu=1.0, epsilon=1.0, delta=DELTA,
                upsilon=point["upsilon"],
            ).terms["silos"]  # fmt: skip

        return Sweep("nonconvex-2.1", axis, "silos drawn", exponent, rivals, values, sample, formula, form=CORRECTED)

    return [sweep(axis) for axis in axes]


def _sigma(context: Context, point: dict[str, float], L: float, rounds: int) -> float:
    K = int(point["n"]) // rounds
    return math.sqrt(context.theorems["nonconvex-2.1-noise"](K=K, L=L, epsilon=point["epsilon"], delta=DELTA).value)


def _quadratic(context: Context, point: dict[str, float]) -> Array:
    problem, M, trials = Quadratic(int(point["d"]), bias=0.5), int(point["M"]), context.trials(200)
    L = problem.constants.L
    release = Release("gradient", ROUNDS, 0, _sigma(context, point, L, ROUNDS) / L)
    federation = TrialFederation(
        problem.gradients, like_records(problem), [release], trials=trials, N=M, streams=context.streams, clip=L,
        stepsize=0.5, prox=ball(problem.D),
    )  # fmt: skip
    return excess(problem, run(ALGORITHMS["prox_sgd"](ROUNDS), federation, np.zeros(problem.d)))


def _sparse(context: Context, point: dict[str, float]) -> Array:
    """Excess risk on records that all silos share, from w_0 = 0; β of the mean loss scales the step, η = 1/(2β).

    The start's part of the bound, Δ(1 − μ/2β)^R, has to be gone.
    """
    problem, trials = SparseLeastSquares(4, penalty=0.02, D=2.0), context.trials(200)
    records = problem.draw(64, context.child("data").streams.generator("data"))
    best = problem.optimum(records)
    beta = problem.curvature(records)[1]
    L = problem.constants.L
    release = Release("gradient", SPARSE_ROUNDS, 0, _sigma(context, point, L, SPARSE_ROUNDS) / L)

    def soft(w: Tensor, eta: Tensor) -> Tensor:
        return w.sign() * (w.abs() - eta * problem.penalty).clamp(min=0)

    federation = TrialFederation(
        problem.gradients, records[None, None], [release], trials=trials, N=int(point["M"]), streams=context.streams,
        clip=L, stepsize=1 / (2 * beta), prox=soft,
    )  # fmt: skip
    outputs = run(ALGORITHMS["prox_sgd"](SPARSE_ROUNDS), federation, np.zeros(problem.d))
    return problem.losses(outputs[:, None], records[None]).mean(axis=1) - best.value + best.gap


def _spider(context: Context) -> list[Sweep]:
    """Along ε, n and M without f¹; along ε and n with f¹ = l1·‖w‖₁, of the squared gradient mapping."""
    problem = SmoothNonconvex(4)
    # Enough rounds that neither the first steps nor the rounding of q to whole rounds bend the line.
    axes: dict[str, list[float]] = {
        "epsilon": [1, 1.7, 2.8, 4.75, 8],
        "n": [800, 1350, 2260, 3800, 6400],
        "M": [16, 45, 128, 362, 1024],
    }
    base = {"epsilon": 2.0, "n": 800, "M": 16}

    def sweep(axis: str, l1: float = 0.0) -> Sweep:
        def point(value: float) -> dict[str, float]:
            return base | ({"n": 1600} if axis == "epsilon" else {}) | {axis: value}

        def sample(value: float) -> Array:
            at, part = point(value), context.child("spider", *(["l1"] if l1 else []), axis, value)
            M = int(at["M"])
            found = spider_point(context, problem, n=int(at["n"]), M=M, epsilon=at["epsilon"], delta=DELTA, l1=l1)
            return spider_gradients(part, problem, found, M, context.trials(20), l1)

        def formula(value: float) -> float:
            at, constants = point(value), problem.constants
            return context.theorems["nonconvex-3.1"](
                n=int(at["n"]), d=problem.d, N=int(at["M"]), M=int(at["M"]), L=constants.L, Delta=problem.scale,
                beta=constants.beta, epsilon=at["epsilon"], delta=DELTA,
            ).value  # fmt: skip

        regime = "private, with l1" if l1 else "private"
        return Sweep("nonconvex-3.1", axis, regime, *SPIDER[axis], axes[axis], sample, formula)

    # Weak enough that the minimiser is not 0, strong enough that the proximal step decides some coordinates.
    return [*(sweep(axis) for axis in axes), *(sweep(axis, 0.01) for axis in ("epsilon", "n"))]
