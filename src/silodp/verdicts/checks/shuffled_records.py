"""Theorem 4.1 with several records a silo (convex paper, strongly convex): the private term along n, and along M < N.

It is d/(ε²n²N²) up to logarithms, whatever M is, where ISRL-DP has d/(ε²n²M). The other term, 1/(nM), leads only where
the theorem asks for some n·10⁸ rounds and more: it is left to the runs without noise of check 3.
"""

import functools
from typing import Any

import numpy as np

from silodp.privacy.plan import Release
from silodp.privacy.shuffling.shuffled_gaussian import shuffled_noise
from silodp.theory.convex.schedules import Schedule, theorem_4_1_strong
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Claim, Context, Row, Sweep, sweep_rows, sweeps
from silodp.verdicts.checks.prescribed_runs import algorithm_for, circle, excess, like_records, logarithm, run_on
from silodp.verdicts.checks.stack import Draw, TrialFederation

# The theorem asks for R ≥ n²N²ε²/M rounds, and noise that leaves the iterates on the ball for nNε ≳ 40,000: very many
# silos and a small ε keep the rounds few, and cost nothing where all silos hold the same records.
SIZE, SILOS, EPSILON, DELTA = 4, 64_000_000, 1 / 3200, 1e-8
BASE = {"n": 4, "M": SILOS}
AXES: dict[str, Claim] = {
    "n": (-2.0, (-1.0, -3.0), [2, 4, 8, 16, 32]),
    "M": (0.0, (-1.0, 1.0), [SILOS // 16, SILOS // 8, SILOS // 4, SILOS // 2, SILOS]),
}
# Distance of the records from their mean.
SPREAD = 0.5
PROBLEM = Quadratic(SIZE, bias=0.5)
POINT = {"d": SIZE, "N": SILOS, "epsilon": EPSILON, "delta": DELTA, "L": PROBLEM.constants.L, "D": 1.0, "mu": 1.0}


class AlikeSilos(TrialFederation):
    """Silos that all hold the same n records; each that takes part sends the gradient of one, drawn uniformly.

    Gradients have to be affine in the record: the mean over silos is then that of the mean record drawn, whose counts
    are multinomial.
    """

    def _rows(self, release: Release, cohort: Draw, round: int) -> Array:
        stored = self.records_of[0, 0]
        generator = self.streams.generator("records", round, release.kind)
        counts = generator.multinomial(self.silo_count, np.full(len(stored), 1 / len(stored)), size=self.trials)
        return (counts / self.silo_count @ stored)[:, None, None]


def shuffled_records(context: Context) -> list[Row]:
    """Slopes of the excess risk along n and along M, with the least noise that is proven to be private."""
    return [row for sweep in _sweeps(context) for row in sweep_rows(sweep, context.streams)]


def _sweeps(context: Context) -> list[Sweep]:
    def formula(n: int, M: int) -> float:
        schedule = _schedule(n, M)
        result = context.evaluate("convex-4.1-strong", n=n, M=M, R=schedule.rounds, **POINT)
        # The proof's step, ln(…)/(μR), leaves its logarithm in the risk, which Õ hides.
        return result.terms["private"] * logarithm(schedule)

    return sweeps(context, "convex-4.1-strong", "shuffled, several records", AXES, BASE, _risk, formula)


@functools.cache
def _schedule(n: int, M: int) -> Schedule:
    """Rounds and steps of Theorem 4.1 under calibrated noise; refused where its conditions are not met."""
    L = PROBLEM.constants.L
    rounds = theorem_4_1_strong(n=n, M=M, beta=1.0, sigma=L, **POINT).rounds
    sigma = shuffled_noise(EPSILON, N=SILOS, M=M, n=n, R=rounds, delta=DELTA).sigma
    return theorem_4_1_strong(n=n, M=M, beta=1.0, sigma=sigma * L, **POINT)


def _records(n: int) -> Array:
    """n different records of a silo, on a circle around the problem's mean record, (1, 1, n, d)."""
    records = np.tile(like_records(PROBLEM)[0, 0], (n, 1))
    records[:, :2] += SPREAD * circle(n)
    return records[None, None]


def _risk(context: Context, n: int, M: int) -> Array:
    """Excess risk of the weighted mean of the iterates, (trials,). Which M silos take part does not matter here."""
    schedule, trials = _schedule(n, M), context.trials(60)
    algorithm = algorithm_for("minibatch_sgd", schedule.rounds, average=True, mu=schedule.strong)
    releases = [Release("gradient", schedule.rounds, 1, schedule.sigma2**0.5 / PROBLEM.constants.L)]
    options: dict[str, Any] = {"releases": releases, "federation": AlikeSilos, "stepsize": schedule.step}
    outputs = run_on(PROBLEM, _records(n), algorithm, context.streams, trials=trials, N=M, **options)
    return excess(PROBLEM, outputs)
