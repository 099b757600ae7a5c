"""The true ε of each noise formula of the papers in the setting of its experiments, and of released programs.

The settings are those of the MNIST experiments (n = 1,238 training records a silo, δ = 1/n²), with the rounds, batch
sizes and grids of ε of either paper. No data and no training are involved.
"""

from typing import NamedTuple

import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.experiments.protocol_plans import Protocol, complete_plan
from silodp.privacy.plan import Budget, Clipping
from silodp.privacy.true_epsilon import ends, refuting_epsilon
from silodp.theory.theorem import AssumptionError

RECORDS = 1238
# Tensors of the perceptron, each clipped to L in the released program of the non-convex paper.
TENSORS = 4


class Formula(NamedTuple):
    """A noise formula: the algorithm that has it with its options, and how a released program departs from it.

    `in_range`: K = ⌊n√(ε/(4R))⌋ at every ε, the largest that the remark after Theorem 2.1 allows, in place of one K.
    """

    name: str
    source: str
    algorithm: str
    options: tuple[tuple[str, object], ...] = ()
    clipping: Clipping = "record"
    in_range: bool = False


class FormulaSetting(NamedTuple):
    """R, the ε in K, and the claims of a paper's experiment, with its formulas."""

    R: int
    batch_epsilon: float
    epsilons: tuple[float, ...]
    formulas: tuple[Formula, ...]


_LONG = (("log_term", "2/delta"),)
PAPERS = {
    "convex": FormulaSetting(
        35,
        18.0,
        (0.75, 1.5, 3.0, 6.0, 12.0, 18.0),
        (
            Formula("MB-SGD, theorem form", "Theorem 2.1", "minibatch_sgd", (("noise", "theorem"),)),
            Formula("MB-SGD, moments form", "remark after Theorem 2.1", "minibatch_sgd"),
            Formula("MB-SGD, moments form, K in its range", "remark after Theorem 2.1", "minibatch_sgd", in_range=True),
            Formula("local SGD", "Appendix G", "local_sgd"),
            Formula("released: only the mean clipped", "insurance program", "minibatch_sgd", (), "batch_mean"),
        ),
    ),
    "nonconvex": FormulaSetting(
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
    """One row for each formula and claim; claims outside a theorem's assumptions are left out."""
    rows = (
        _row(paper, setting, formula, epsilon)
        for paper, setting in PAPERS.items()
        for formula in setting.formulas
        for epsilon in setting.epsilons
    )
    return pd.DataFrame([row for row in rows if row is not None])


def _row(paper: str, setting: FormulaSetting, formula: Formula, epsilon: float) -> dict | None:
    algorithm = ALGORITHMS[formula.algorithm].with_options({"rounds": setting.R} | dict(formula.options))
    batch_epsilon = epsilon if formula.in_range else setting.batch_epsilon
    budget = Budget(RECORDS, setting.R, epsilon, RECORDS**-2.0, batch_epsilon)
    try:
        plan = complete_plan(algorithm, budget, Protocol(formula.clipping, TENSORS))
    except AssumptionError:
        return None
    found = ends([plan])
    return {
        "paper": paper,
        "formula": formula.name,
        "source": formula.source,
        "n": RECORDS,
        "R": setting.R,
        "K": plan.releases[0].records_drawn,
        "delta": budget.delta,
        "claimed_epsilon": epsilon,
        "noise_multiplier": plan.noise_multiplier,
        "delivered_epsilon": found.upper,
        "holds": found.upper <= epsilon,
        "delivered_lower": refuting_epsilon(plan, found, everyone=True),
    }
