"""The leaderboard: every algorithm compared with minibatch SGD at the same true ε, and corrections along heterogeneity.

Its comparisons are those of `silodp.verdicts.comparisons`; Holm's method holds over all cells of a pair.
"""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from silodp.config.board import heterogeneity_axis
from silodp.config.loading import known_experiments
from silodp.verdicts.claims.base import holm
from silodp.verdicts.comparisons import COLUMNS, NO_DIFFERENCE, compare

PLAIN = "minibatch_sgd"
# Pairs along an axis of heterogeneity: what may pay, and what it is held against.
CORRECTED = (
    ("dp_scaffold", "minibatch_sgd"),
    ("dp_scaffold", "local_sgd"),
    ("fedprox_spider", "minibatch_sgd"),
    ("localised_accelerated", "accelerated_minibatch_sgd"),
    ("minibatch_sgd", "silo_only"),
)
# Algorithms with a model for each silo, which is tested on the silo's own records.
PERSONAL = ("silo_only", "mr_mtl")


def axis_position(experiment: str) -> float:
    """Where on its axis of heterogeneity an experiment is: p in percent, or α; NaN where it is on none."""
    if not (axis := heterogeneity_axis(experiment)):
        return math.nan
    section, key = axis.split(".")
    return known_experiments()[experiment][section][key] * (100 if key == "mixed" else 1)


def board_pairs(names: Iterable[str], axis: str) -> list[tuple[str, str]]:
    """Each of the algorithms `names` against minibatch SGD; along an `axis` of heterogeneity `CORRECTED`."""
    known = dict.fromkeys(names)
    plain = [(name, PLAIN) for name in known if name != PLAIN and PLAIN in known]
    return [pair for pair in CORRECTED if known.keys() >= {*pair}] if axis else plain


def compared(reported: pd.DataFrame) -> pd.DataFrame:
    """The pairs of every experiment, the columns of comparisons.csv and `axis` and `holm`.

    `reported` has a row a trial (the job `table`) of any number of experiments. `holm` says of a row that is
    ahead or behind whether Holm's method keeps it over all rows of its pair: of all data sets, or along its axis.
    """
    private = reported[reported["epsilon"].notna() & (reported["algorithm"] != "spider")]
    found = [
        compare(rows, first, second)
        for name, rows in private.groupby("experiment", sort=False)
        for first, second in board_pairs(rows["algorithm"], heterogeneity_axis(str(name)))
    ]
    table = pd.concat(found, ignore_index=True)[COLUMNS]
    table["axis"] = table["experiment"].map(heterogeneity_axis)
    # Both sides are tested: half the level each, as `holm` has it. A trial that diverged decides nothing.
    sided = np.minimum(table["p"], 1 - table["p"]).where(table["outcome"] != NO_DIFFERENCE, 0.5)
    groups = sided.groupby([table["first"], table["second"], table["axis"]], sort=False)
    return table.assign(holm=groups.transform(lambda p: holm(p.tolist())).astype(bool))


def best_models(reported: pd.DataFrame) -> pd.DataFrame:
    """At each data set and ε the single model with the smallest mean training loss, and its mean test error.

    An algorithm with a trial that diverged comes last; experiments on an axis are left out.
    """
    rows = reported[reported["epsilon"].notna() & ~reported["experiment"].map(heterogeneity_axis).astype(bool)]
    rows = rows[~rows["algorithm"].isin([*PERSONAL, "spider"])]
    keys = ["experiment", "epsilon", "algorithm"]
    means = rows.fillna({"train_loss": np.inf}).groupby(keys, sort=False)[["train_loss", "test_error"]].mean()
    means = means.reset_index().rename(columns={"algorithm": "best"})
    first = means.sort_values("train_loss", kind="stable").groupby(keys[:2], sort=False).head(1)
    return first.sort_values(keys[:2])[["experiment", "epsilon", "best", "test_error"]].reset_index(drop=True)
