"""The leaderboard: which algorithm is best at each true ε of each data set, and what its questions come to.

The rules were written before the run (docs/leaderboard.md). Of a group of algorithms the one with the smallest mean
training loss stands for it, so that no test error chooses what test errors compare; trials are pairs; Holm's method
holds over all comparisons of a question.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.config.loading import known_experiments
from silodp.verdicts.claims.base import holm
from silodp.verdicts.comparisons import CELL
from silodp.verdicts.pairs import paired_errors
from silodp.verdicts.statistics import paired_test

PERSONAL = ("silo_only", "mr_mtl")
SUCCESSORS = (
    "mr_mtl",
    "dp_scaffold",
    "localised_accelerated",
    "dp_mu2",
    "dp_mu2_difference",
    "dp_mu2_correlated",
    "minibatch_sgd_correlated",
    "minibatch_sgd_momentum",
    "minibatch_sgd_adam",
)
ONE_PASS = (*SUCCESSORS[3:7], "one_pass_accelerated_sgd")
BASELINES = ("silo_only",)
# Pairs along the axis of heterogeneity: what may pay, and what it is held against.
CORRECTED = (
    ("dp_scaffold", "minibatch_sgd"),
    ("dp_scaffold", "local_sgd"),
    ("fedprox_spider", "minibatch_sgd"),
    ("localised_accelerated", "accelerated_minibatch_sgd"),
    ("minibatch_sgd", "silo_only"),
)
# Questions between a model for each silo, tested on the silo's own records, and a single model.
BY_SILO = ("personal", "federating")
# Key that experiments vary → what messages call a point of that axis; the larger, the more alike silos are.
SHARE, ALPHA = "silos.mixed", "silos.alpha"
AXES = {SHARE: "p = {:g} %", ALPHA: "α = {:g}"}
# Column of the table that a reader quotes → the question that it answers.
GAINS = {"gain over silo_only": "federating", "successor over papers' best": "successor"}
COLUMNS = ["question", *CELL, "first", "second", "first_error", "second_error", "difference", "low", "high", "p"]


def heterogeneity_axis(experiment: str) -> str:
    """The axis of heterogeneity that an experiment is a point of, a key of `AXES`; empty where it is on none."""
    return str(known_experiments().get(experiment, {}).get("vary", ""))


def axis_position(experiment: str) -> float:
    """Where on its axis an experiment is: p in percent, or α."""
    if not (axis := heterogeneity_axis(experiment)):
        return math.nan
    section, key = axis.split(".")
    return known_experiments()[experiment][section][key] * (100 if axis == SHARE else 1)


def on_board(experiment: str) -> bool:
    """Whether the leaderboard ranks algorithms by this experiment of config/experiments."""
    return known_experiments().get(experiment, {}).get("board") == "leaderboard"


class Question(NamedTuple):
    """A question: is the best of `first` better than the best of `second`?"""

    key: str
    words: str
    first: frozenset[str]
    second: frozenset[str]


def questions(names: Sequence[str], axis: str = "") -> list[Question]:
    """The questions about algorithms `names`, of a leaderboard's data set or along an `axis` of heterogeneity."""
    private = frozenset(names)
    if axis:
        pairs = [pair for pair in CORRECTED if private.issuperset(pair)]
        # Each axis has questions of its own, so that the cells of one ask nothing more of the other's.
        end = " by α" if axis == ALPHA else ""
        return [Question(f"{a}, {b}{end}", f"does {a} beat {b}{end}", frozenset({a}), frozenset({b})) for a, b in pairs]
    papers, single = private - {*SUCCESSORS, *BASELINES}, private - {*PERSONAL}
    asked = [
        Question("successor", "does a successor beat the papers' best", single & {*SUCCESSORS}, papers),
        Question("personal", "does a model for each silo beat the best single model", private & {"mr_mtl"}, single),
        Question("federating", "does federating beat training alone", single, private & {*BASELINES}),
        Question("linear time", "is one pass better than many", single & {*ONE_PASS}, single - {*ONE_PASS}),
    ]
    return [question for question in asked if question.first and question.second]


def best(rows: pd.DataFrame, names: frozenset[str]) -> str:
    """The algorithm of `names` with the smallest mean training loss; one with a trial that diverged comes last."""
    losses = rows[rows["algorithm"].isin(names)].groupby("algorithm")["train_loss"]
    return str(losses.agg(lambda values: values.mean() if np.isfinite(values).all() else np.inf).idxmin())


def compared(reported: pd.DataFrame, constant: Collection[str] = ()) -> pd.DataFrame:
    """Every question at every data set and ε, `COLUMNS`, with `holm` and `outcome`; a negative difference says yes.

    `reported` has a row a trial (`silodp table --reported`) of any number of experiments. In those of `constant` each
    silo has a single class: a constant model of each silo has no error, so the questions `BY_SILO` have no row. Raises
    ValueError for a row of an algorithm that is unknown.
    """
    rows = reported[reported["epsilon"].notna()].assign(reading=reported["reading"].fillna(""))
    if unknown := set(rows["algorithm"]) - {*ALGORITHMS, "spider"}:
        raise ValueError(f"algorithm: {', '.join(sorted(unknown))}: must be registered")
    found = [row for cell, part in rows[rows["algorithm"] != "spider"].groupby(CELL) for row in _cell(cell, part)]
    table = pd.DataFrame(found, columns=COLUMNS)
    table = table[~(table["question"].isin(BY_SILO) & table["experiment"].isin(list(constant)))].reset_index(drop=True)
    # Both sides are tested: half the level each, as `holm` has it. A trial that diverged decides nothing.
    open_ = table["difference"].isna() | (table["difference"] == 0)
    sided = table["p"].where(~open_, 0.5).map(lambda p: min(p, 1 - p))
    kept = sided.groupby(table["question"], sort=False).transform(lambda p: holm(p.tolist())).astype(bool)
    sides = np.where(table["difference"] < 0, "yes", "no, worse")
    return table.assign(holm=kept, outcome=np.where(kept, sides, "no difference found"))


def _cell(cell: tuple, part: pd.DataFrame) -> Iterator[tuple]:
    names, axis = part["algorithm"].unique().tolist(), heterogeneity_axis(cell[0])
    for question in questions(names, axis):
        first, second = best(part, question.first), best(part, question.second)
        errors = np.hstack(paired_errors(part, first, second))
        difference = errors[:, 0] - errors[:, 1]
        test = paired_test(difference if np.isfinite(errors).all() else [np.nan])
        means = errors.mean(0) if np.isfinite(errors).all() else (np.inf, np.inf)
        yield (question.key, *cell, first, second, *means, test.value, test.low, test.high, test.p)


def verdicts(table: pd.DataFrame) -> list[str]:
    """A line for each question: at how many cells the answer is yes, no or open, and where."""
    words = {q.key: q.words for axis in ("", *AXES) for q in questions(list(ALGORITHMS), axis)}
    lines = []
    for key, part in table.groupby("question", sort=False):
        yes, no = (part[part["outcome"] == word] for word in ("yes", "no, worse"))
        places = yes.sort_values("epsilon").groupby("experiment")["epsilon"]
        where = [f"{name} ε = {', '.join(f'{epsilon:g}' for epsilon in epsilons)}" for name, epsilons in places]
        head = f"{words[str(key)]}: yes at {len(yes)}, worse at {len(no)} of {len(part)} cells after Holm"
        lines.append(head + (f" (yes: {'; '.join(where)})" if where else "") + _pays(part))
    return lines


def _pays(part: pd.DataFrame) -> str:
    """From where a correction pays, for each ε: the largest p or α at which the answer is yes."""
    axis = heterogeneity_axis(str(part["experiment"].iloc[0]))
    if not axis or set(part["second"]) <= {*BASELINES}:
        return ""
    said = []
    for epsilon, cells in part.groupby("epsilon"):
        places = cells.loc[cells["outcome"] == "yes", "experiment"].map(axis_position)
        said.append(f"{'from ' + AXES[axis].format(places.max()) if len(places) else 'nowhere'} at ε = {epsilon:g}")
    return f"; pays {', '.join(said)}"


def headline(reported: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The table a reader quotes: at each data set and ε the best single model, its error, and its gains.

    Gains are second minus first with intervals: over silo-only training and over the papers' best.
    """
    asked = {key: part.set_index(["experiment", "epsilon"]) for key, part in table.groupby("question")}
    rows = []
    kept = reported[reported["epsilon"].notna() & ~reported["experiment"].map(heterogeneity_axis).astype(bool)]
    for (experiment, epsilon), part in kept.groupby(["experiment", "epsilon"]):
        name = best(part, frozenset(part["algorithm"]) - {*PERSONAL, "spider"})
        row = {"experiment": experiment, "epsilon": epsilon, "best": name}
        row["test_error"] = part.loc[part["algorithm"] == name, "test_error"].mean()
        for column, key in GAINS.items():
            if key in asked and (experiment, epsilon) in asked[key].index:
                cell = asked[key].loc[(experiment, epsilon)]
                mark = "" if cell["holm"] else " (n.s.)"
                row[column] = f"{-cell['difference']:+.4f} [{-cell['high']:+.4f}, {-cell['low']:+.4f}]{mark}"
        rows.append(row)
    return pd.DataFrame(rows)
