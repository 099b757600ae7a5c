"""Check 2: lower bounds on the instances of their proofs, along ε, against the best mechanism that we know there.

A lower bound speaks of all algorithms, and says most where an algorithm can do least: records ±D/√d in each coordinate
whose bias is as large as the noise of the best estimate of their mean, so that its sign can hardly be told. The
algorithm is one noisy release of the mean gradient, calibrated exactly: minibatch SGD with R = 1 and K = n. (R releases
of √R times the noise, whose mean has the same law, keep each round's ε as small as the proofs ask for.) One algorithm
on one instance cannot confirm a statement about all; it contradicts it by a risk below a tenth of the bound, whose
constants are hidden and stand here as 1.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from silodp.privacy.accounting.mechanisms import gaussian_mu
from silodp.theory.problems.known import LinearOnBall, Quadratic
from silodp.verdicts.checks.base import Array, Context, Row, judge_interval, row
from silodp.verdicts.checks.prescribed_runs import algorithm_for, excess, run_on
from silodp.verdicts.statistics import mean_interval
from silodp.verdicts.words import AS_PRINTED, CORRECTED, Verdict

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# What a lower bound may be multiplied by at most, where the paper hides its constant.
LEAST_CONSTANT = 0.1
# N, n and δ within the assumptions of Theorem 3.1: δ below 1/(nN)². Central noise needs few records to be seen at all.
LOCAL, CENTRAL = (10_000, 100), (10, 10)
DELTA, SIZE = 1e-13, 16


@dataclass(frozen=True)
class Instance:
    """A lower bound, on ‖∇F‖² if `square`, else on the excess risk of the linear loss (`convex`) or of ½‖w − x‖².

    Noise is added to the sum of all records (`central`), or by each silo to its own. The risk is the population's over
    `sampled` records, else empirical over records that have the bias exactly. `part` names streams and parameter.
    """

    theorem: str
    part: str
    convex: bool
    central: bool = False
    sampled: bool = True
    square: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        return CENTRAL if self.central else LOCAL


INSTANCES = (
    Instance("convex-3.1", "linear", convex=True),
    Instance("convex-3.1-strong", "squared distance", convex=False),
    Instance("convex-E.4", "linear, empirical", convex=True, sampled=False),
    Instance("convex-E.4-strong", "squared distance, empirical", convex=False, sampled=False),
    Instance("convex-E.5", "linear, central, empirical", convex=True, central=True, sampled=False),
    Instance("convex-E.5-strong", "squared distance, central, empirical", convex=False, central=True, sampled=False),
    Instance("convex-E.3", "linear, central", convex=True, central=True),
    Instance("convex-E.3-strong", "squared distance, central", convex=False, central=True),
    Instance("nonconvex-3.3", "squared distance, empirical", convex=False, sampled=False, square=True),
)


def lower_bounds(context: Context) -> list[Row]:
    """Rows of all instances along ε."""
    return [
        row
        for instance in INSTANCES
        for epsilon in EPSILONS
        for row in _rows(context.child(instance.theorem, epsilon), instance, epsilon)
    ]


def _rows(context: Context, instance: Instance, epsilon: float) -> list[Row]:
    """A row; or two, for the printed and for the corrected form, where the theorem has both."""
    N, n = instance.sizes
    point = {"n": n, "d": SIZE, "N": N, "L": 1.0, "D": 1.0, "mu": 1.0, "epsilon": epsilon, "delta": DELTA}
    measured, parameter = mean_interval(measure(context, instance, epsilon)), f"epsilon ({instance.part})"
    both = "reading" in context.theorems[instance.theorem].parameters
    rows = []
    for reading, form in (("printed", AS_PRINTED), ("right", CORRECTED)) if both else (("right", ""),):
        lower = context.evaluate(instance.theorem, **point, reading=reading).value
        verdict = judge_interval(measured, LEAST_CONSTANT * lower, math.nan)
        verdict = Verdict.NOT_CONTRADICTED if verdict == Verdict.CONFIRMED else verdict
        columns: Row = {"lower": lower, "form": form, "detail": f"{measured.value / lower:.3g} of the bound"}
        rows.append(row(instance.theorem, parameter, epsilon, measured, verdict, **columns))
    return rows


def measure(context: Context, instance: Instance, epsilon: float) -> Array:
    """What the lower bound is about, of one exactly calibrated release on the instance, (trials,)."""
    trials, (N, n) = context.trials(400), instance.sizes
    records = N * n
    silos, per_silo = (1, records) if instance.central else (N, n)
    # Records have norm 1, so that another record moves a silo's mean by 2/per_silo.
    sigma = 2 / per_silo / gaussian_mu(epsilon, DELTA)
    spread = math.sqrt(sigma**2 / silos + (1 / (SIZE * records) if instance.sampled else 0.0))
    bias = min(1.0, spread * math.sqrt(SIZE))
    problem = LinearOnBall(SIZE, bias=bias) if instance.convex else Quadratic(SIZE, bias=bias)
    share = np.full((trials, SIZE), (1 + bias) / 2)
    if instance.sampled:
        share = context.streams.generator("records").binomial(records, share) / records
    # Of all records only the mean matters.
    means = ((2 * share - 1) / math.sqrt(SIZE)).reshape(trials, 1, 1, SIZE)
    algorithm, step = algorithm_for("minibatch_sgd", 1), 1e9 if instance.convex else 1.0
    options: dict[str, Any] = {"noise": sigma, "clip": 1.0, "stepsize": step}
    outputs = run_on(problem, means, algorithm, context.streams, trials=trials, N=silos, **options)
    # The gradient of ½‖w − x̄‖² has twice the excess risk as its square.
    return 2 * excess(problem, outputs) if instance.square else excess(problem, outputs)
