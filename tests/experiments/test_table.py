"""The tables that report chosen points, worked out by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from gridrows import INF, NAN, experiment, reported, rows, spiders

from silodp.experiments.columns import TABLE_COLUMNS, TABLE_EXTRA
from silodp.experiments.selection import RUN, complete, select
from silodp.experiments.table import at_edge, summarise, table
from silodp.experiments.task import POINT
from silodp.experiments.variants import trained_as


def test_same_reports_the_runs_that_chose_and_fresh_the_new_ones():
    grid = rows("minibatch_sgd", [[1.0, 2.0], [3.0, 2.5]])
    fresh = rows("minibatch_sgd", [[1.5, 9.0], [3.5, 8.0]])
    found = reported(grid, fresh=fresh, evaluation="same")
    assert found["train_loss"].tolist() == [1.0, 3.0]
    found = reported(grid, fresh=fresh, evaluation="fresh")
    assert found["train_loss"].tolist() == [1.5, 3.5]
    assert found["stepsize"].tolist() == [0.1, 0.1]
    found = reported(grid, "per_trial", fresh=fresh, evaluation="fresh")
    assert found["train_loss"].tolist() == [1.5, 8.0]


def delivered(row):
    """Upper and lower ends that say whose they are."""
    upper = {"fedprox_spider": 1.0, "fed_spider": 2.0}.get(row["source"], 3.0) + 0.1 * row["phase_length"]
    return upper, upper - 0.5


def test_summaries_by_hand():
    """Errors 0.1 … 0.5: mean 0.3, percentiles 5 and 95 at 0.12 and 0.48."""
    frame = rows("minibatch_sgd", [[1.0], [2.0], [3.0], [4.0], [5.0]], errors=[[0.1], [0.2], [0.3], [0.4], [0.5]])
    frame["seconds"] = [1.0, 2.0, 3.0, 4.0, 5.0]
    (row,) = summarise(reported(frame), delivered).to_dict("records")
    wanted = {"trials": 5, "diverged": 0, "train_loss_mean": 3.0, "test_error_mean": 0.3, "test_error_p05": 0.12}
    wanted |= {"test_error_p95": 0.48, "seconds": 3.0, "N": 4, "n": 100, "K": 5, "delta": 1e-4, "stepsize": 0.1}
    wanted |= {"clip": 1.0, "phase_length": 1, "private": True, "delivered_epsilon": 3.1, "proven": False}
    wanted |= {"delivered_lower": 2.6}
    assert {name: row[name] for name in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_diverged_trial_stays_in_the_means(bad):
    frame = rows("minibatch_sgd", [[1.0], [bad], [3.0]], errors=[[0.1], [1.0], [0.2]])
    (row,) = summarise(reported(frame), delivered).to_dict("records")
    assert (row["trials"], row["diverged"], row["train_loss_mean"]) == (3, 1, INF)
    assert row["test_error_mean"] == pytest.approx(1.3 / 3)
    regression = rows("minibatch_sgd", [[1.0]] * 21, errors=[[0.5]] * 20 + [[INF]])
    (row,) = summarise(reported(regression), delivered).to_dict("records")
    assert (row["test_error_mean"], row["test_error_p05"], row["test_error_p95"]) == (INF, 0.5, 0.5)


def test_what_trials_chose_differently_has_no_single_value():
    short = rows("fedprox_spider", [[1.0], [9.0]], q=1, K=5)
    long = rows("fedprox_spider", [[9.0], [1.0]], q=4, K=8)
    frame = pd.concat([short, long], ignore_index=True)
    (row,) = summarise(reported(frame, "per_trial"), delivered).to_dict("records")
    assert row["stepsize"] == 0.1
    assert math.isnan(row["phase_length"])
    assert math.isnan(row["K"]), "K goes with the phase length"
    assert row["delivered_epsilon"] == pytest.approx(1.4), "the largest upper end of the trials' holds for the row"


def test_a_spider_row_has_the_true_epsilon_of_its_source():
    frame = spiders([[1.0], [3.0]], [[2.0], [2.0]])
    found = summarise(reported(frame, "per_trial"), delivered).set_index("algorithm")["delivered_epsilon"]
    assert found.to_dict() == pytest.approx({"fedprox_spider": 1.2, "fed_spider": 2.1, "spider": 2.1})
    found = summarise(reported(frame), delivered).set_index("algorithm")["delivered_epsilon"]
    assert found.to_dict() == pytest.approx({"fedprox_spider": 1.2, "fed_spider": 2.1, "spider": 1.2})


def full():
    """A grid of every algorithm at two ε and without noise, and fresh runs of it."""
    generator = np.random.default_rng(0)
    algorithms = ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider")
    parts = [
        rows(algorithm, generator.random((3, 4)).tolist(), epsilon=epsilon, M=M)
        for algorithm, epsilon, M in itertools.product(algorithms, (8.0, NAN, 1.0), (2, 1))
    ]
    grid = pd.concat(parts, ignore_index=True)
    return grid, grid.assign(train_loss=grid["train_loss"] + 1, test_error=0.5)


def test_a_table_has_its_columns_and_one_row_for_each_key():
    grid, fresh = full()
    config = experiment(
        settings=[{"M": 2, "R": 3}, {"M": 1, "R": 3}],
        reports=[
            {"selection": "pooled", "evaluation": "fresh"},
            {"selection": "pooled", "evaluation": "same"},
            {"selection": "per_trial", "evaluation": "fresh"},
        ],
    )
    found = table(grid, fresh, select(grid, config), config, delivered)
    assert list(found.columns) == [*TABLE_COLUMNS, *TABLE_EXTRA]
    assert not found.duplicated(["algorithm", "M", "R", "epsilon", "reading"]).any()
    assert set(found["reading"]) == {"", "evaluation=same", "selection=per_trial"}
    assert len(found) == 3 * 2 * (4 * 3 + 3)
    assert set(found["algorithm"]) == {"minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider", "spider"}
    first = found[found["reading"] == ""]
    assert set(first["selection"]) == {"pooled"}
    assert set(first["evaluation"]) == {"fresh"}
    assert (first["test_error_mean"] == 0.5).all()
    assert (found[found["reading"] == "evaluation=same"]["test_error_mean"] != 0.5).all()
    assert set(found[found["reading"] == "selection=per_trial"]["selection"]) == {"per_trial"}
    assert (found["private"] == found["epsilon"].notna()).all()
    # Settings, then algorithms in the config's order with spider last, then ε upwards and the baseline.
    assert first["M"].tolist() == sorted(first["M"])
    one = first[first["M"] == 1]
    assert list(dict.fromkeys(one["algorithm"])) == [*config.algorithms, "spider"]
    assert one["epsilon"].fillna(-1).tolist() == [1.0, 8.0, -1] * 5


@pytest.mark.parametrize(
    ("chosen", "clip", "edge"),
    [
        ([0.1, 0.1, 0.1], 1.0, "lowest stepsize"),
        ([0.4, 0.4, 0.2], 10.0, "highest stepsize"),
        ([0.2, 0.2, 0.1], 0.5, "lowest clip"),
        ([0.1, 0.2, 0.4], 1.0, ""),
        # ∞ is no clipping at all: there is nothing beyond.
        ([0.4, 0.4, 0.4], np.inf, "highest stepsize"),
    ],
)
def test_chosen_points_at_an_end_of_their_grid_are_named(chosen, clip, edge):
    clips = [0.5, 1.0, 10.0, np.inf]
    tried = pd.DataFrame([{"stepsize": s, "clip": c} for s in (0.1, 0.2, 0.4) for c in clips])
    assert at_edge(pd.DataFrame({"stepsize": chosen, "clip": clip}), tried) == edge
    assert at_edge(pd.DataFrame({"stepsize": [0.1], "clip": 1.0}), tried[tried["stepsize"] == 0.1]) == ""


def test_readings_without_effect_show_the_default_runs():
    config = experiment(alternatives=[{"spider_q1_noise": "minibatch"}, {"batch": "per_eps"}])
    labels = ["", "spider_q1_noise=minibatch", "batch=per_eps"]
    parts = [
        rows(algorithm, [[1.0, 2.0]], reading=label)
        for algorithm in config.algorithms
        for label in labels
        if trained_as(config, algorithm, label) == label
    ]
    found = complete(pd.concat(parts, ignore_index=True), config)
    keys = found[["algorithm", "reading"]].drop_duplicates()
    assert {tuple(key) for key in keys.to_numpy()} == {(a, r) for a in config.algorithms for r in labels}
    assert not found.duplicated([*RUN, "trial", *POINT]).any()
    whole = table(found, None, select(pd.concat(parts, ignore_index=True), config), config, delivered)
    assert len(whole) == 3 * 5
