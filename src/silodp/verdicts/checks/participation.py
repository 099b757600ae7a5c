"""Check 5: a random number M_r of silos in a round, and unbalanced silos (convex paper, Assumption 2, Theorem 2.1).

A random M_r and a fixed M with the same E[1/M_r] give the same risk; silos of unequal n_i and ε_i add the noise that
each owes to its own, and the complete Theorem 2.1 says what comes of it.
"""

import math
from collections.abc import Sequence

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.federation.prox import ball, no_prox
from silodp.privacy.plan import Release
from silodp.theory.convex.upper import participation as harmonic
from silodp.theory.convex.upper import privacy_term, unbalanced
from silodp.theory.problems.known import LinearOnBall, Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, bounded, equals, row
from silodp.verdicts.checks.prescribed_runs import excess, like_records
from silodp.verdicts.checks.stack import TrialFederation, run
from silodp.verdicts.statistics import ratio_interval
from silodp.verdicts.words import Verdict

N = 24
# Values of M_r, the M with the same E[1/M_r], and the M that is the mean of M_r.
# Smoothness that the linear loss is taken to have, for the rounds and steps of Theorem 2.1: it has any above 0.
BETA = 0.01
CASES = (((2, 6), 3, 4), ((3, 6), 4, 5), ((4, 12), 6, 8))


def participation(context: Context) -> list[Row]:
    """Ratios of risks, random over fixed M at the same E[1/M_r] and at the same E[M_r]; then unbalanced silos."""
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
    for name in ("n_i of 200 and 1,600", "epsilon_i of 2 and 8", "equal silos"):
        rows += _unbalanced(context.child("unbalanced", name), name)
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


def _unbalanced(context: Context, name: str) -> list[Row]:
    """Half of the silos owe more noise than the others: variance of a round's noise, and risk of the complete theorem.

    On the linear loss with constant records, its hard instance: noise is all there is. M_r is N/2 or N.
    """
    problem, total, d, delta = LinearOnBall(8, bias=1.0), 2**14, 8, 1e-6
    sizes = [total // 2, total]
    odds = [0.5, 0.5]
    n = {"n_i of 200 and 1,600": [200, 1600]}.get(name, [200, 200])
    epsilon = {"epsilon_i of 2 and 8": [2.0, 8.0]}.get(name, [4.0, 4.0])
    R, found = 1, unbalanced(n * (total // 2), epsilon * (total // 2), [delta] * total, 1, sizes, odds)
    # Rounds enter Ξ through a logarithm: a few turns find those that the theorem asks for at themselves.
    for _ in range(5):
        found = unbalanced(n * (total // 2), epsilon * (total // 2), [delta] * total, R, sizes, odds)
        gain = min(math.sqrt(found.n_min), 1 / math.sqrt(d * found.privacy_term))
        R = math.ceil(max(BETA * math.sqrt(found.M_tilde) * gain, gain**2 / found.n_min))
    step = min(1 / (4 * BETA), math.sqrt(found.M_tilde) * gain / R)
    noises = np.sqrt([256 * R * privacy_term(a, R, e, delta) for a, e in zip(n, epsilon, strict=True)] * (total // 2))
    rows = []
    for rounds, trials in ((1, context.trials(2000)), (R, context.trials(60))):
        federation = TrialFederation(
            problem.gradients, like_records(problem), [Release("gradient", rounds, 0, 1.0)], trials=trials, N=total,
            streams=context.child(rounds).streams, stepsize=1.0 if rounds == 1 else step,
            cohort=sizes, noises=noises, prox=no_prox if rounds == 1 else ball(1.0),
        )  # fmt: skip
        algorithm = ALGORITHMS["minibatch_sgd"](rounds, average=rounds > 1)  # type: ignore[call-arg]
        w = run(algorithm, federation, np.zeros(d))
        if rounds == 1:
            centre = -problem.gradients(np.zeros((1, 1, 1, d)), like_records(problem)).reshape(d)
            squares = ((w - centre) ** 2).sum(axis=1)
            exact = d * float((noises**2).mean()) / harmonic(sizes, odds)[0]
            what = f"noise of a round's mean message, {name}; N ="
            rows.append(equals("convex-lemma-D.5", what, total, squares, exact))
            # Of equal silos the bound is the exact variance itself.
            if noises.min() < noises.max():
                upper = d * 256 * R * found.privacy_term / found.M_tilde
                what = f"noise of a round's mean message against 256 L²RdΞ̃/M̃, {name}; N ="
                rows.append(bounded("convex-2.1-complete", what, total, squares, upper=upper, reach=math.inf))
        else:
            upper = context.theorems["convex-2.1-complete"](
                n=found.n_min, d=d, M_tilde=found.M_tilde, privacy_term=found.privacy_term, L=1.0, D=1.0
            ).value
            what = f"excess risk, {name}; N ="
            rows.append(bounded("convex-2.1-complete", what, total, excess(problem, w), upper=upper, reach=2.0))
    return rows
