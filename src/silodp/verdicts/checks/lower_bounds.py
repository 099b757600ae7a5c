"""Check 2: lower bounds on the instances of their proofs, along ε, against the best mechanism that we know there.

A lower bound speaks of all algorithms, and says most where an algorithm can do least: records ±D/√d in each coordinate
whose bias is as large as the noise of the best estimate of their mean, so that its sign can hardly be told. The
algorithm is one noisy release of the mean gradient, calibrated exactly: minibatch SGD with R = 1 and K = n. (R releases
of √R times the noise, whose mean has the same law, keep each round's ε as small as the proofs ask for.) One algorithm
on one instance cannot confirm a statement about all; it contradicts it by a risk below a tenth of the bound, whose
constants are hidden and stand here as 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.federation.prox import ball
from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.privacy.plan import Release
from silodp.theory.problems.known import LinearOnBall, Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, row, within
from silodp.verdicts.checks.stack import TrialFederation, run
from silodp.verdicts.statistics import Interval, mean_interval
from silodp.verdicts.words import AS_PRINTED, CORRECTED, Verdict

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# What a lower bound may be multiplied by at most, where the paper hides its constant.
LEAST_CONSTANT = 0.1
# N, n and δ within the assumptions of Theorem 3.1: δ below 1/(nN)². Central noise needs few records to be seen at all.
LOCAL, CENTRAL = (10_000, 100), (10, 10)
DELTA, SIZE = 1e-13, 16


@dataclass(frozen=True)
class Instance:
    """A lower bound and what it bounds.

    Attributes:
        theorem: key of the bound.
        part: name of the random streams of its rows, and of the parameter.
        convex: linear loss; else the squared distance, ½‖w − x‖².
        central: the noise is added to the sum of all silos' records; else by every silo to its own.
        sampled: population risk over drawn records; else empirical risk over records that have the bias exactly.
        square: ‖∇F‖² in place of the excess risk.
    """

    theorem: str
    part: str
    convex: bool
    central: bool = False
    sampled: bool = True
    square: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """N and n."""
        return CENTRAL if self.central else LOCAL


INSTANCES = (
    Instance("convex-3.1", "linear", convex=True),
    Instance("convex-3.1-strong", "squared distance", convex=False),
    Instance("convex-E.4", "linear, empirical", convex=True, sampled=False),
    Instance("convex-E.3", "linear, central", convex=True, central=True),
    Instance("convex-E.3-strong", "squared distance, central", convex=False, central=True),
    Instance("nonconvex-3.3", "squared distance, empirical", convex=False, sampled=False, square=True),
)


def lower_bounds(context: Context) -> list[Row]:
    """Rows of all instances along ε."""
    return [
        found
        for one in INSTANCES
        for epsilon in EPSILONS
        for found in _rows(context.child(one.theorem, epsilon), one, epsilon)
    ]


def _rows(context: Context, instance: Instance, epsilon: float) -> list[Row]:
    """One row, or one for the printed and one for the corrected form where the theorem has both."""
    theorem, (N, n) = context.theorems[instance.theorem], instance.sizes
    point = {"n": n, "d": SIZE, "N": N, "L": 1.0, "D": 1.0, "mu": 1.0, "epsilon": epsilon, "delta": DELTA}
    given: dict[str, Any] = {name: value for name, value in point.items() if name in theorem.parameters}
    measured, parameter = mean_interval(measure(context, instance, epsilon)), f"epsilon ({instance.part})"
    if "reading" not in theorem.parameters:
        return [judge(instance.theorem, parameter, epsilon, measured, theorem(**given).value)]
    return [
        judge(instance.theorem, parameter, epsilon, measured, theorem(**given, reading=reading).value, form)
        for reading, form in (("printed", AS_PRINTED), ("right", CORRECTED))
    ]


def judge(theorem: str, parameter: str, value: float, measured: Interval, lower: float, form: str = "") -> Row:
    """A mean with its interval against a lower bound: it contradicts it or it does not."""
    verdict = within(measured, LEAST_CONSTANT * lower, math.nan)
    verdict = Verdict.NOT_CONTRADICTED if verdict == Verdict.CONFIRMED else verdict
    detail = f"{measured.value / lower:.3g} of the bound"
    return row(theorem, parameter, value, measured, verdict, lower=lower, form=form, detail=detail)


def measure(context: Context, instance: Instance, epsilon: float) -> Array:
    """What the lower bound is about, of one exactly calibrated release on the instance, (trials,)."""
    trials, (N, n) = context.trials(400), instance.sizes
    records = N * n
    silos, own = (1, records) if instance.central else (N, n)
    # Records have norm 1, so that another one moves a silo's mean by 2/own.
    sigma = 2 / own / gaussian_mu(epsilon, DELTA)
    spread = math.sqrt(sigma**2 / silos + (1 / (SIZE * records) if instance.sampled else 0.0))
    bias = min(1.0, spread * math.sqrt(SIZE))
    problem = LinearOnBall(SIZE, bias=bias) if instance.convex else Quadratic(SIZE, bias=bias)
    share = np.full((trials, SIZE), (1 + bias) / 2)
    if instance.sampled:
        share = context.streams.generator("records").binomial(records, share) / records
    # Of all records only the mean matters.
    means = ((2 * share - 1) / math.sqrt(SIZE)).reshape(trials, 1, 1, SIZE)
    federation = TrialFederation(
        problem.gradients, means, [Release("gradient", 1, 0, sigma)], trials=trials, N=silos, streams=context.streams,
        stepsize=1e9 if instance.convex else 1.0, prox=ball(1.0),
    )  # fmt: skip
    outputs = run(ALGORITHMS["minibatch_sgd"](1), federation, np.zeros(SIZE))
    risk: Callable[[Array], float] = problem.excess_population_risk
    found = np.array([risk(w) for w in outputs])
    # The gradient of ½‖w − x̄‖² has twice that as its square.
    return 2 * found if instance.square else found
