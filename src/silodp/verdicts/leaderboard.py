"""The leaderboard: algorithms compared in pairs at each certified ε of each data set (docs/leaderboard.md)."""

import math

import numpy as np
import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.config.loading import known_experiments
from silodp.verdicts.claims.base import holm
from silodp.verdicts.comparisons import AHEAD, BEHIND, compare

# What every algorithm is set against; training alone, which is set against nothing but that.
REFERENCE, ALONE = "minibatch_sgd", "silo_only"
# What may pay where silos differ, and what it is held against.
CORRECTED = (
    ("dp_scaffold", "minibatch_sgd"),
    ("dp_scaffold", "local_sgd"),
    ("fedprox_spider", "minibatch_sgd"),
    ("localised_accelerated", "accelerated_minibatch_sgd"),
    ("minibatch_sgd", "silo_only"),
)
# Key that experiments vary → what messages call a point of that axis; the larger, the more alike silos are.
SHARE, ALPHA = "silos.mixed", "silos.alpha"
AXES = {SHARE: "p = {:g} %", ALPHA: "α = {:g}"}
# What the cells of a row of counts vary.
VARIED = {"": "data set", SHARE: "share p", ALPHA: "Dirichlet α"}
COUNTS = ["over", "first", "second", "cells", "ahead", "behind", "ahead after Holm", "behind after Holm"]


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
    """Whether the leaderboard compares algorithms by this experiment of config/experiments."""
    return known_experiments().get(experiment, {}).get("board") == "leaderboard"


def pairs_on(experiment: str, names: set[str]) -> list[tuple[str, str]]:
    """The pairs of an experiment's algorithms: `CORRECTED`, and beside an axis each against `REFERENCE`.

    Models of one silo are not compared where each silo has a single class: a constant has no error there.
    """
    pairs = list(CORRECTED)
    if not heterogeneity_axis(experiment):
        each = [(name, REFERENCE) for name in sorted(names - {REFERENCE, ALONE, "spider"})]
        pairs = list(dict.fromkeys([*each, *CORRECTED]))
    if known_experiments()[experiment]["silos"]["scheme"] == "by_class":
        pairs = [pair for pair in pairs if not {"silo_only", "mr_mtl"} & {*pair}]
    return [pair for pair in pairs if names.issuperset(pair)]


def compared(reported: pd.DataFrame) -> pd.DataFrame:
    """The comparisons of `pairs_on` at every ε, and `holm`: whether Holm's method keeps the difference.

    `reported` has a row a trial (`silodp table --reported`) of any number of experiments. Holm's method holds over the
    cells of a pair, those on an axis apart. Raises ValueError for a row of an algorithm that is unknown.
    """
    rows = reported[reported["epsilon"].notna()]
    if unknown := set(rows["algorithm"]) - {*ALGORITHMS, "spider"}:
        raise ValueError(f"algorithm: {', '.join(sorted(unknown))}: must be registered")
    table = pd.concat(
        compare(part, *pair)
        for experiment, part in rows.groupby("experiment")
        for pair in pairs_on(str(experiment), {*part["algorithm"]})
    ).reset_index(drop=True)
    # Both sides are tested: half the level each, as `holm` has it. A trial that diverged decides nothing.
    sided = np.minimum(table["p"], 1 - table["p"]).where(table["low"].notna(), 0.5)
    axis = table["experiment"].map(heterogeneity_axis)
    kept = sided.groupby([table["first"], table["second"], axis], sort=False).transform(lambda p: holm(p.tolist()))
    return table.assign(holm=kept.astype(bool))


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """`COUNTS` of every pair: its cells, and where the first is ahead or behind, raw and after Holm's method."""
    found = []
    axes = table["experiment"].map(heterogeneity_axis).map(VARIED)
    for key, part in table.groupby([axes, "first", "second"], sort=False):
        sides = [part["outcome"] == word for word in (AHEAD, BEHIND)]
        found.append((*key, len(part), *map(sum, sides), *((side & part["holm"]).sum() for side in sides)))
    return pd.DataFrame(found, columns=COUNTS)
