"""Check 3, non-convex paper: exponents of Theorems 2.1 (proximal-PL, Prox-SGD) and 3.1 (FedProx-SPIDER)."""

from collections.abc import Callable
from typing import Any

from silodp.federation.prox import no_prox, soft_threshold
from silodp.theory.problems.known import Quadratic, SmoothNonconvex, SparseLeastSquares
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, bounded, sweep_rows, sweeps
from silodp.verdicts.checks.prescribed_runs import algorithm_for, circle, prox_sgd_noise, prox_sgd_risk, run_on
from silodp.verdicts.checks.spider_runs import spider_gradients, spider_point
from silodp.verdicts.words import AS_PRINTED, CORRECTED

DELTA = 1e-6
ROUNDS, SPARSE_ROUNDS = 20, 160
SILOS: dict[str, Any] = {"d": 2, "N": 32, "L": 1.0, "beta": 1.0, "mu": 1.0, "epsilon": 1.0, "delta": DELTA}
PL = {"epsilon": (-2.0, (-1.0, -3.0)), "n": (-2.0, (-1.0, -3.0)), "M": (-1.0, (-2.0, -0.5)), "d": (1.0, (0.5, 2.0))}
SPIDER = {"epsilon": (-4 / 3, (-1.0, -2.0)), "n": (-4 / 3, (-1.0, -2.0)), "M": (-2 / 3, (-0.5, -1.0))}


def rates_nonconvex(context: Context) -> list[Row]:
    silos = _silos(context)
    rates = [*_prox_sgd(context), *silos, *_spider(context)]
    return [row for sweep in rates for row in sweep_rows(sweep, context.streams)] + [_printed_bound(context, silos[0])]


def _prox_sgd(context: Context) -> list[Sweep]:
    """Prox-SGD in one pass, K = n/R, with σ² of Theorem E.1, M = N: on a quadratic, and on least squares with ℓ1."""
    values: dict[str, list[float]] = {
        "epsilon": [0.5, 1, 2, 4, 8],
        "n": [1000, 2000, 4000, 8000, 16000],
        "M": [16, 32, 64, 128, 256],
        "d": [4, 8, 16, 32, 64],
    }
    base = {"epsilon": 4.0, "n": 8000, "M": 64, "d": 8}

    def formula(M: int, **point: Any) -> float:
        constants = {"L": 2.0, "beta": 1.0, "mu": 1.0, "delta": DELTA}
        return context.evaluate("nonconvex-2.1", M=M, N=M, **constants, **point).terms["private"]

    def sweep_axes(what: str, sample: Callable[..., Array], base: dict[str, float], *axes: str) -> list[Sweep]:
        claims = {axis: (*PL[axis], values[axis]) for axis in axes}
        return sweeps(context, "nonconvex-2.1", f"private, {what}", claims, base, sample, formula, names=(what,))

    quadratic = sweep_axes("quadratic", _quadratic, base, "epsilon", "n", "M", "d")
    # Less noise: it must not reach over the kinks of the ℓ1 norm, or the bound's power law is not yet there.
    values["M"] = [2**16, 2**17, 2**18, 2**19, 2**20]
    return quadratic + sweep_axes("least squares with l1", _sparse, base | {"M": 2**18}, "epsilon", "n", "M")


def _silos(context: Context) -> list[Sweep]:
    """The part of the risk that M < N heterogeneous silos add, (N−M)/((N−1)M)·υ²/μ, without noise, along υ and M."""
    N, base = SILOS["N"], {"upsilon": 0.2, "M": 4.0}
    axes = {"upsilon": (2.0, (1.0, 3.0), [0.05, 0.1, 0.2, 0.4]), "M": (-1.0, (-0.5, -2.0), [1.0, 2.0, 4.0, 8.0])}
    options: dict[str, Any] = {"trials": context.trials(800), "N": N, "clip": 1.0, "stepsize": 0.5, "prox": no_prox}

    def sample(part: Context, upsilon: float, M: int) -> Array:
        # All silos' gradients at the optimum, 0, have norm υ.
        records = upsilon * circle(N)[None, :, None]
        outputs = run_on(Quadratic(2), records, algorithm_for("prox_sgd", ROUNDS), part.streams, cohort=M, **options)
        return 0.5 * (outputs**2).sum(axis=1)

    def formula(**point: Any) -> float:
        return context.evaluate("nonconvex-2.1", n=1000, **SILOS, **point).terms["silos"]

    names = ("silos",)
    return sweeps(context, "nonconvex-2.1", "silos drawn", axes, base, sample, formula, names=names, form=CORRECTED)


def _printed_bound(context: Context, silos: Sweep) -> Row:
    """Theorem E.1 as printed for M < N at the proof's step, 1/(2β): its bound falls with n, where the risk has none."""
    upsilon, n, M = silos.values[-1], 10**6, 4
    upper = context.evaluate("nonconvex-2.1", n=n, M=M, **SILOS).value
    name, reach = f"n (M = {M} of N = {SILOS['N']} silos, upsilon = {upsilon:g})", 0.5 * upsilon**2
    return bounded("nonconvex-2.1", name, n, silos.sample(upsilon), upper=upper, reach=reach, form=AS_PRINTED)


def _quadratic(context: Context, epsilon: float, n: int, M: int, d: int) -> Array:
    return prox_sgd_risk(context, Quadratic(d, bias=0.5), ROUNDS, 200, M, n=n, epsilon=epsilon, delta=DELTA)


def _sparse(context: Context, epsilon: float, n: int, M: int, d: int) -> Array:
    """Excess risk on records that all silos share, from w_0 = 0; β of the mean loss scales the step, η = 1/(2β)."""
    problem = SparseLeastSquares(4, penalty=0.02, D=2.0)
    records = problem.draw(64, context.child("data").streams.generator("data"))
    best = problem.optimum(records)
    algorithm, step = algorithm_for("prox_sgd", SPARSE_ROUNDS), 1 / (2 * problem.curvature(records)[1])
    soft = soft_threshold(problem.penalty)
    noise = prox_sgd_noise(context, problem.constants.L, SPARSE_ROUNDS, n=n, epsilon=epsilon, delta=DELTA)
    options: dict[str, Any] = {"trials": context.trials(200), "noise": noise, "stepsize": step, "prox": soft}
    outputs = run_on(problem, records[None, None], algorithm, context.streams, N=M, **options)
    return problem.losses(outputs[:, None], records[None]).mean(axis=1) - best.value + best.gap


def _spider(context: Context) -> list[Sweep]:
    """Along ε, n and M without f¹; along ε and n with f¹ = l1·‖w‖₁, of the squared gradient mapping."""
    problem = SmoothNonconvex(4)
    # Short phases flatten the slopes: q is 5 to 23 here, and iterates follow half to nine tenths of a fresh error.
    values: dict[str, list[float]] = {
        "epsilon": [1, 1.7, 2.8, 4.75, 8],
        "n": [800, 1350, 2260, 3800, 6400],
        "M": [16, 45, 128, 362, 1024],
    }

    def formula(M: int, **point: Any) -> float:
        constants = problem.constants
        known = {"d": problem.d, "N": M, "L": constants.L, "Delta": problem.scale, "beta": constants.beta}
        return context.evaluate("nonconvex-3.1", M=M, delta=DELTA, **known, **point).value

    def sweep_axes(axis: str, l1: float) -> list[Sweep]:
        def sample(part: Context, n: int, M: int, epsilon: float) -> Array:
            point = spider_point(context, problem, n=n, M=M, epsilon=epsilon, delta=DELTA, l1=l1)
            return spider_gradients(part, problem, point, M, context.trials(20), l1)

        base = {"epsilon": 2.0, "n": 1600 if axis == "epsilon" else 800, "M": 16}
        claims = {axis: (*SPIDER[axis], values[axis])}
        regime, names = ("private, with l1", ("spider", "l1")) if l1 else ("private", ("spider",))
        return sweeps(context, "nonconvex-3.1", regime, claims, base, sample, formula, names=names)

    # Weak enough that the minimiser is not 0, strong enough that the proximal step decides some coordinates.
    axes = [("epsilon", 0.0), ("n", 0.0), ("M", 0.0), ("epsilon", 0.01), ("n", 0.01)]
    return [sweep for axis, l1 in axes for sweep in sweep_axes(axis, l1)]
