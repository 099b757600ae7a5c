"""Theorem 4.1 with several records a silo (convex paper, strongly convex): the private term along n, and along M < N.

It is d/(ε²n²N²) up to logarithms, whatever M is, where ISRL-DP has d/(ε²n²M). The other term, 1/(nM), leads only where
the theorem asks for some n·10⁸ rounds and more: it is left to the runs without noise of check 3.
"""

import functools
from typing import Any

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.federation.prox import ball
from silodp.privacy.plan import Release
from silodp.privacy.shuffling.shuffled_gaussian import shuffled_noise
from silodp.theory.convex.schedules import Schedule
from silodp.theory.convex.shuffled_schedule import theorem_4_1_strong
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, Sweep, sweep_rows
from silodp.verdicts.checks.prescribed_runs import excess, logarithm
from silodp.verdicts.checks.stack import Draw, TrialFederation, run

# The theorem asks for R ≥ n²N²ε²/M rounds, and noise that leaves the iterates on the ball for nNε ≳ 40,000: very many
# silos and a small ε keep the rounds few, and cost nothing where all silos hold the same records.
SIZE, SILOS, EPSILON, DELTA = 4, 64_000_000, 1 / 3200, 1e-8
BASE = {"n": 4, "M": SILOS}
AXES = {
    "n": (-2.0, (-1.0, -3.0), [2, 4, 8, 16, 32]),
    "M": (0.0, (-1.0, 1.0), [SILOS // 16, SILOS // 8, SILOS // 4, SILOS // 2, SILOS]),
}
# Distance of the records from their mean.
SPREAD = 0.5


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
    return [found for axis in AXES for found in sweep_rows(_sweep(context, axis), context.streams)]


def _sweep(context: Context, axis: str) -> Sweep:
    exponent, rivals, values = AXES[axis]

    def sample(value: float) -> Array:
        return _risk(context.child(axis, value), **(BASE | {axis: int(value)}))

    def formula(value: float) -> float:
        point = BASE | {axis: int(value)}
        constants, found = Quadratic(SIZE).constants, _schedule(**point)
        theorem = context.theorems["convex-4.1-strong"](
            **point, d=SIZE, N=SILOS, R=found.rounds, L=constants.L, mu=constants.mu, epsilon=EPSILON, delta=DELTA
        )
        # The proof's step, ln(…)/(μR), leaves its logarithm in the risk, which Õ hides.
        return theorem.terms["private"] * logarithm(found)

    return Sweep("convex-4.1-strong", axis, "shuffled, several records", exponent, rivals, values, sample, formula)


@functools.cache
def _schedule(n: int, M: int) -> Schedule:
    """Rounds and steps of Theorem 4.1 under calibrated noise; refused where its conditions are not met."""
    own = Quadratic(SIZE).constants
    point: dict[str, Any] = {"n": n, "d": SIZE, "N": SILOS, "M": M, "epsilon": EPSILON, "delta": DELTA}
    point |= {"L": own.L, "D": own.D, "beta": own.beta, "mu": own.mu}
    rounds = theorem_4_1_strong(**point, sigma=own.L).rounds
    sigma = shuffled_noise(EPSILON, N=SILOS, M=M, n=n, R=rounds, delta=DELTA).sigma
    return theorem_4_1_strong(**point, sigma=sigma * own.L)


def _records(problem: Quadratic, n: int) -> Array:
    """n different records of a silo, on a circle around the problem's mean record, (1, 1, n, d)."""
    angles = 2 * np.pi * np.arange(n) / n
    records = np.full((n, problem.d), problem.bias * problem.D / np.sqrt(problem.d))
    records[:, 0] += SPREAD * np.cos(angles)
    records[:, 1] += SPREAD * np.sin(angles)
    return records[None, None]


def _risk(context: Context, n: int, M: int) -> Array:
    """Excess risk of the weighted mean of the iterates, (trials,). Which M silos take part does not matter here."""
    problem, trials, schedule = Quadratic(SIZE, bias=0.5), context.trials(60), _schedule(n, M)
    L = problem.constants.L
    release = Release("gradient", schedule.rounds, 1, schedule.sigma2**0.5 / L)
    federation = AlikeSilos(
        problem.gradients, _records(problem, n), [release], trials=trials, N=M, streams=context.streams, clip=L,
        stepsize=schedule.step or 1.0, prox=ball(problem.D),
    )  # fmt: skip
    algorithm = ALGORITHMS["minibatch_sgd"](schedule.rounds, average=True, mu=schedule.strong)  # type: ignore[call-arg]
    return excess(problem, run(algorithm, federation, np.zeros(SIZE)))
