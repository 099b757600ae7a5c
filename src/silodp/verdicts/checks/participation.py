"""Check 5: a random number M_r of silos in a round, and unbalanced silos (convex paper, Assumption 2, Theorem 2.1).

A random M_r and a fixed M with the same E[1/M_r] give the same risk; silos of unequal n_i and ε_i add the noise that
each owes to its own, and the complete Theorem 2.1 says what comes of it.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from silodp.federation.prox import no_prox
from silodp.theory.convex.upper import Unbalanced, privacy_term, unbalanced
from silodp.theory.convex.upper import participation as harmonic
from silodp.theory.problems.known import LinearOnBall, Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, bounded, contains, equals
from silodp.verdicts.checks.prescribed_runs import algorithm_for, excess, like_records, run_alike
from silodp.verdicts.statistics import ratio_interval

N = 24
# Values of M_r, the M with the same E[1/M_r], and the M that is the mean of M_r.
CASES = (((2, 6), 3, 4), ((3, 6), 4, 5), ((4, 12), 6, 8))
# Smoothness that the linear loss is taken to have, for the rounds and steps of Theorem 2.1: it has any above 0.
BETA = 0.01
# Unbalanced silos: n and ε of every second silo and of the others; M_r is one of the sizes, each as likely.
TOTAL, DELTA = 2**14, 1e-6
SIZES, ODDS = (TOTAL // 2, TOTAL), (0.5, 0.5)
SILOS = {
    "n_i of 200 and 1,600": ((200, 1600), (4.0, 4.0)),
    "epsilon_i of 2 and 8": ((200, 200), (2.0, 8.0)),
    "equal silos": ((200, 200), (4.0, 4.0)),
}
LINEAR = LinearOnBall(8, bias=1.0)


def participation(context: Context) -> list[Row]:
    """Ratios of risks, random over fixed M at the same E[1/M_r] and at the same E[M_r]; then unbalanced silos."""
    rows: list[Row] = []
    for sizes, same, mean in CASES:
        M = harmonic(sizes, [1 / len(sizes)] * len(sizes))[0]
        part = context.child(*sizes)
        random = _risk(part.child("random"), sizes)
        for fixed, what in ((same, "E[1/M_r]"), (mean, "E[M_r]")):
            ratio = ratio_interval(random, _risk(part.child("fixed", fixed), fixed), part.streams.generator("ratio"))
            name = f"random M_r of {sizes} over fixed M of the same {what}; M ="
            rows.append(contains("convex-lemma-D.5", name, fixed, ratio, fixed / M))
    for name, (n, epsilon) in SILOS.items():
        rows += _unbalanced(context.child("unbalanced", name), name, n, epsilon)
    return rows


def _risk(context: Context, cohort: int | Sequence[int]) -> Array:
    """Excess risk of the last iterate, where noise of variance dσ²E[1/M_r] is all there is, (trials,)."""
    problem, rounds = Quadratic(10, bias=0.3), 40
    sigma = math.sqrt(8 * rounds * math.log(1e6)) / 5000
    options = {"noise": sigma, "stepsize": 0.25, "cohort": cohort}
    return excess(problem, run_alike(problem, algorithm_for("minibatch_sgd", rounds), context, 2000, N, **options))


def _unbalanced(context: Context, name: str, n: tuple[int, int], epsilon: tuple[float, float]) -> list[Row]:
    """Half of the silos owe more noise than the others: variance of a round's noise, risk of the complete theorem."""
    R, step, terms = _rounds_and_step(n, epsilon)
    noises = np.sqrt([256 * R * privacy_term(a, R, e, DELTA) for a, e in zip(n, epsilon, strict=True)] * (TOTAL // 2))

    def outputs(rounds: int, trials: int, **options: Any) -> Array:
        algorithm = algorithm_for("minibatch_sgd", rounds, average=rounds > 1)
        more = {"noise": 1.0, "noises": noises, "cohort": SIZES} | options
        return run_alike(LINEAR, algorithm, context.child(rounds), trials, TOTAL, **more)

    # One step of size 1 from 0 is the message, with its sign turned.
    centre = -LINEAR.gradients(np.zeros((1, 1, 1, LINEAR.d)), like_records(LINEAR)).reshape(LINEAR.d)
    squares = ((outputs(1, 2000, prox=no_prox) - centre) ** 2).sum(axis=1)
    exact = LINEAR.d * float((noises**2).mean()) / harmonic(SIZES, ODDS)[0]
    rows = [equals("convex-lemma-D.5", f"noise of a round's mean message, {name}; N =", TOTAL, squares, exact)]
    # Of equal silos the bound is the exact variance itself.
    if noises.min() < noises.max():
        upper = LINEAR.d * 256 * R * terms.privacy_term / terms.M_tilde
        what = f"noise of a round's mean message against 256 L²RdΞ̃/M̃, {name}; N ="
        rows.append(bounded("convex-2.1-complete", what, TOTAL, squares, upper=upper, reach=math.inf))
    point = {"n": terms.n_min, "M_tilde": terms.M_tilde, "privacy_term": terms.privacy_term}
    upper = context.evaluate("convex-2.1-complete", **point, d=LINEAR.d, L=1.0, D=1.0).value
    risk = excess(LINEAR, outputs(R, 60, stepsize=step))
    return [*rows, bounded("convex-2.1-complete", f"excess risk, {name}; N =", TOTAL, risk, upper=upper, reach=2.0)]


def _rounds_and_step(n: tuple[int, int], epsilon: tuple[float, float]) -> tuple[int, float, Unbalanced]:
    """R, η and the terms of the complete Theorem 2.1."""
    R = 1
    # Rounds enter Ξ through a logarithm: a few turns find those that the theorem asks for at themselves.
    for _ in range(5):
        terms = unbalanced(n * (TOTAL // 2), epsilon * (TOTAL // 2), [DELTA] * TOTAL, R, SIZES, ODDS)
        gain = min(math.sqrt(terms.n_min), 1 / math.sqrt(LINEAR.d * terms.privacy_term))
        R = math.ceil(max(BETA * math.sqrt(terms.M_tilde) * gain, gain**2 / terms.n_min))
    return R, min(1 / (4 * BETA), math.sqrt(terms.M_tilde) * gain / R), terms
