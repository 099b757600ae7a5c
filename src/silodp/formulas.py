"""What each noise formula of the papers delivers in its own experiments' setting, and what released programs do.

Independent of any run: no data, no training. Settings are those of the MNIST experiments (n = 1,238 training records a
silo, δ = 1/n²), with the rounds, batch sizes and grids of ε of either paper.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd
from dp_accounting import dp_event

from silodp.algorithms import ALGORITHMS
from silodp.privacy.accounting import upper_epsilon
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.theory.registry import AssumptionError

COLUMNS = [
    "paper",
    "formula",
    "source",
    "n",
    "R",
    "K",
    "delta",
    "claimed_epsilon",
    "noise_multiplier",
    "delivered_epsilon",
    "holds",
]
RECORDS = 1238
# Tensors of the perceptron, each clipped to L in the released program of the non-convex paper.
TENSORS = 4
Option = tuple[tuple[str, object], ...]


class Formula(NamedTuple):
    """A noise formula: the algorithm that has it with its options, and how a released program departs from it."""

    name: str
    source: str
    algorithm: str
    options: Option = ()
    clipping: str = "record"


class Setting(NamedTuple):
    """R, the ε in K, and the claims of a paper's experiment, with its formulas."""

    R: int
    batch_epsilon: float
    epsilons: tuple[float, ...]
    formulas: tuple[Formula, ...]


_LONG = (("log_term", "2/delta"),)
PAPERS = {
    "convex": Setting(
        35,
        18.0,
        (0.75, 1.5, 3.0, 6.0, 12.0, 18.0),
        (
            Formula("MB-SGD, theorem form", "Theorem 2.1", "minibatch_sgd", (("noise", "theorem"),)),
            Formula("MB-SGD, moments form", "remark after Theorem 2.1", "minibatch_sgd"),
            Formula("local SGD", "Appendix G", "local_sgd"),
            Formula("released: only the mean clipped", "insurance program", "minibatch_sgd", (), "batch_mean"),
        ),
    ),
    "nonconvex": Setting(
        25,
        24.0,
        (0.75, 1.0, 1.5, 3.0, 6.0, 12.0, 18.0),
        (
            Formula("MB-SGD, moments form", "Appendix H.2", "minibatch_sgd", _LONG),
            Formula("local SGD", "Appendix H.2", "local_sgd"),
            Formula("FedProx-SPIDER, q = 1", "Appendix H.2, Theorem 3.1", "fedprox_spider"),
            Formula("FedProx-SPIDER, q = 2", "Appendix H.2, Theorem 3.1", "fedprox_spider", (("phase_length", 2),)),
            Formula("Fed-SPIDER, R releases", "Appendix H.2, Algorithm 11", "fed_spider"),
            Formula("Fed-SPIDER, 2R − 1 releases", "corrected", "fed_spider", (("fed_spider_releases", "2R-1"),)),
            Formula("released: tensors clipped one by one", "program", "minibatch_sgd", _LONG, "per_tensor"),
        ),
    ),
}


def formula_rows() -> pd.DataFrame:
    """`COLUMNS`: one row for each formula and claim; claims outside a theorem's assumptions are left out."""
    return pd.DataFrame(_rows(), columns=COLUMNS)


def _rows() -> Iterator[dict]:
    for paper, setting in PAPERS.items():
        for formula in setting.formulas:
            for epsilon in setting.epsilons:
                algorithm = ALGORITHMS[formula.algorithm].with_options({"rounds": setting.R} | dict(formula.options))
                budget = Budget(RECORDS, setting.R, epsilon, RECORDS**-2.0, setting.batch_epsilon)
                try:
                    plan = algorithm.plan(budget)
                except AssumptionError:
                    continue
                event, multiplier = _released(plan, formula.clipping)
                delivered = upper_epsilon(event, budget.delta)
                yield {
                    "paper": paper,
                    "formula": formula.name,
                    "source": formula.source,
                    "n": RECORDS,
                    "R": setting.R,
                    "K": plan.releases[0].drawn,
                    "delta": budget.delta,
                    "claimed_epsilon": epsilon,
                    "noise_multiplier": multiplier,
                    "delivered_epsilon": delivered,
                    "holds": delivered <= epsilon,
                }


def _released(plan: PrivacyPlan, clipping: str) -> tuple[dp_event.DpEvent, float]:
    """The event of the plan's noise under a way to clip, and its noise multiplier.

    Tensors clipped to L one by one make a gradient of norm √tensors·L. A clipped mean moves by 2L as soon as the record
    is drawn at all, and no further however often: as a record that is drawn once with that probability, rounded up.
    """
    if clipping == "per_tensor":
        factor = math.sqrt(TENSORS)
        releases = tuple(dataclasses.replace(one, noise=one.noise / factor) for one in plan.releases)
        plan = dataclasses.replace(plan, releases=releases)
    elif clipping == "batch_mean":
        (one,) = plan.releases
        n, multiplier = plan.budget.n, one.noise / (2 * one.gradients)
        drawn = math.ceil(n * -math.expm1(one.records * math.log1p(-1 / n)))
        sampled = dp_event.SampledWithoutReplacementDpEvent(n, drawn, dp_event.GaussianDpEvent(multiplier))
        return dp_event.SelfComposedDpEvent(sampled, one.count), multiplier
    return plan.event, plan.noise_multiplier
