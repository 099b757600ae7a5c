"""Check 5: a random M_r and a fixed M with the same E[1/M_r] give the same risk (convex paper, Assumption 2)."""

import math
from collections.abc import Sequence

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.federation.prox import ball
from silodp.privacy.plan import Release
from silodp.theory.convex.upper import participation as harmonic
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, row
from silodp.verdicts.checks.prescribed_runs import excess, like_records
from silodp.verdicts.checks.stack import TrialFederation, run
from silodp.verdicts.statistics import ratio_interval
from silodp.verdicts.words import Verdict

N = 24
# Values of M_r, the M with the same E[1/M_r], and the M that is the mean of M_r.
CASES = (((2, 6), 3, 4), ((3, 6), 4, 5), ((4, 12), 6, 8))


def participation(context: Context) -> list[Row]:
    """Ratios of risks: random over fixed M, at the same E[1/M_r], where it is 1, and at the same E[M_r]."""
    rows: list[Row] = []
    for sizes, same, mean in CASES:
        M = harmonic(sizes, [1 / len(sizes)] * len(sizes))[0]
        part = context.child(*sizes)
        random = _risk(part.child("random"), sizes)
        for fixed, what in ((same, "E[1/M_r]"), (mean, "E[M_r]")):
            ratio = ratio_interval(random, _risk(part.child("fixed", fixed), fixed), part.streams.generator("ratio"))
            expected = fixed / M
            verdict = Verdict.CONFIRMED if ratio.low <= expected <= ratio.high else Verdict.REFUTED
            name = f"random M_r of {sizes} over fixed M of the same {what}; M ="
            rows.append(row("convex-lemma-D.5", name, fixed, ratio, verdict, lower=expected, upper=expected))
    return rows


def _risk(context: Context, cohort: int | Sequence[int]) -> Array:
    """Excess risk of the last iterate, where noise of variance dσ²E[1/M_r] is all there is, (trials,)."""
    problem, trials, rounds = Quadratic(10, bias=0.3), context.trials(2000), 40
    sigma = math.sqrt(8 * rounds * math.log(1e6)) / (5000 * 1.0)
    federation = TrialFederation(
        problem.gradients, like_records(problem), [Release("gradient", rounds, 0, sigma)], trials=trials, N=N,
        streams=context.streams, clip=problem.constants.L, stepsize=0.25, cohort=cohort, prox=ball(problem.D),
    )  # fmt: skip
    return excess(problem, run(ALGORITHMS["minibatch_sgd"](rounds), federation, np.zeros(problem.d)))
