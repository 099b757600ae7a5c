"""Prox-PL-SVRG against Prox-SGD on one empirical risk (non-convex paper, Theorems 2.1 and 2.2): risk, κ, rounds.

The bounds have κL²d/(με²n²M) for the one and κ²L²d/(με²n²M) for the other, with constants, logarithms and restarts that
they hide. Both run with the noise that their theorems print, on a quadratic whose curvatures run from 1/κ to 1, from a
start off the optimum: Prox-PL-SVRG for the rounds and restarts of its theorem, Prox-SGD until nothing of the start is
left. The server's coin for the iterate that a restart goes on from is one for all trials; after so many restarts its
iterates are all alike. Records of a silo repeat few distinct ones in an order in which every batch holds each equally
often, so that only the noise is random.
"""

import numpy as np

from silodp.privacy.plan import Release
from silodp.theory.nonconvex.upper import SVRGSchedule, theorem_e_2
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, formula_slope, row, slope_row, sweep_rows, sweeps
from silodp.verdicts.checks.prescribed_runs import algorithm_for, excess, prox_sgd_risk, run_alike
from silodp.verdicts.statistics import Interval, ratio_interval, slope_interval
from silodp.verdicts.words import Verdict

KAPPAS = [2.0, 4.0, 8.0, 16.0, 32.0]
N_RECORDS, SIZE, SILOS, EPSILON, DELTA = 64_000, 4, 2**20, 1.0, 1e-6
# Q steps an epoch, K = n/Q, and the restarts that Theorem E.2 asks for where κ is least, for all κ: S is in the noise,
# where the rate hides it. Its 12κ rounds, too few for the proof (docs/errata.md), leave a third of a quadratic's risk.
PHASE, RESTARTS = 8, 43
# Rounds of Prox-SGD: (1 − 1/2κ)^(2·16κ) of the start is left.
SGD_PER_KAPPA = 16
HIDDEN = "the rates hide constants and restarts"


def svrg_against_sgd(context: Context) -> list[Row]:
    """Slopes in κ of both risks and of their ratio, and at each κ the ratio and the rounds."""
    # What lies outside the theorem's conditions is refused before anything is run.
    schedules = {kappa: _schedule(kappa) for kappa in KAPPAS}
    samples = {
        (name, kappa): method(context.child(name, kappa), kappa)
        for name, method in (("svrg", _svrg), ("sgd", _sgd))
        for kappa in KAPPAS
    }
    rows: list[Row] = []
    for kappa, schedule in schedules.items():
        worse = ratio_interval(samples["svrg", kappa], samples["sgd", kappa], context.streams.generator("worse", kappa))
        longer = Interval(*[schedule.restarts * schedule.rounds / _sgd_rounds(kappa)] * 3)
        for what, ratio, upper in (("risk", worse, 1 / kappa), ("rounds", longer, 1.0)):
            parameter = f"{what} of svrg over sgd; kappa ="
            rows.append(row("nonconvex-2.2", parameter, kappa, ratio, Verdict.OPEN, upper=upper, detail=HIDDEN))

    def sample(_: Context, kappa: float) -> Array:
        """Values whose mean is the ratio of means, and whose spread that of both to first order."""
        sgd, svrg = samples["sgd", kappa], samples["svrg", kappa]
        above, below = sgd / sgd.mean() - 1, svrg / svrg.mean() - 1
        return sgd.mean() / svrg.mean() * (1 + above - below)

    def formula(kappa: float) -> float:
        return _formula(context, "nonconvex-2.1", kappa) / _formula(context, "nonconvex-2.2", kappa)

    # Both rates are of one shape in κ, a factor κ apart: what is claimed of the two algorithms is that factor.
    claims = {"kappa": (1.0, (0.0, 2.0), KAPPAS)}
    (sweep,) = sweeps(context, "nonconvex-2.2", "risk of Prox-SGD over Prox-PL-SVRG", claims, {}, sample, formula)
    rows += sweep_rows(sweep, context.streams)
    for name, theorem, exponent in (("svrg", "nonconvex-2.2", 2.0), ("sgd", "nonconvex-2.1", 3.0)):
        risks = [samples[name, kappa] for kappa in KAPPAS]
        measured = slope_interval(KAPPAS, risks, context.streams.generator("slope", name))
        exact = formula_slope(KAPPAS, [_formula(context, theorem, kappa) for kappa in KAPPAS])
        parameter, rivals = f"slope in kappa (risk of {name})", (exponent - 1, exponent + 1)
        found = slope_row(theorem, parameter, measured, exponent, exact, rivals)
        if measured.high < found["lower"]:
            found |= {"verdict": str(Verdict.OPEN), "detail": "grows more slowly than the bound"}
        rows.append(found)
    return rows


def _formula(context: Context, theorem: str, kappa: float) -> float:
    """The private term of a rate, M = N."""
    point = {"n": N_RECORDS, "d": SIZE, "N": SILOS, "M": SILOS, "L": 2.0, "beta": 1.0, "mu": 1 / kappa}
    return context.evaluate(theorem, **point, epsilon=EPSILON, delta=DELTA, upsilon=0.0).terms["private"]


def _sgd_rounds(kappa: float) -> int:
    return round(SGD_PER_KAPPA * kappa)


def _problem(kappa: float) -> Quadratic:
    return Quadratic(SIZE, mu=1 / kappa, bias=0.5)


def _schedule(kappa: float) -> SVRGSchedule:
    constants, start = _problem(kappa).constants, _problem(kappa).excess_population_risk(np.zeros(SIZE))
    sizes = {"n": N_RECORDS, "d": SIZE, "M": SILOS, "K": N_RECORDS // PHASE, "Q": PHASE, "S": RESTARTS}
    privacy: dict[str, float] = {"epsilon": EPSILON, "delta": DELTA}
    return theorem_e_2(L=constants.L, beta=1.0, mu=1 / kappa, Delta=start, **sizes, **privacy)


def _sgd(context: Context, kappa: float) -> Array:
    """Excess risk of Prox-SGD's last iterate in one pass, (trials,), η = 1/(2β)."""
    budget = {"n": N_RECORDS, "epsilon": EPSILON, "delta": DELTA}
    return prox_sgd_risk(context, _problem(kappa), _sgd_rounds(kappa), 100, SILOS, **budget)


def _svrg(context: Context, kappa: float) -> Array:
    """Excess risk of Prox-PL-SVRG's output, (trials,)."""
    problem, schedule = _problem(kappa), _schedule(kappa)
    L, rounds = problem.constants.L, schedule.restarts * schedule.rounds
    releases = [
        Release("difference", rounds, 0, schedule.difference / L, gradients=2),
        Release("anchor", rounds // PHASE, 0, schedule.anchor / L, sampler="all"),
    ]
    algorithm = algorithm_for("prox_pl_svrg", rounds, phase_length=PHASE, restarts=schedule.restarts)
    step = schedule.step
    return excess(problem, run_alike(problem, algorithm, context, 100, SILOS, releases=releases, stepsize=step))
