"""The leaderboard's comparisons on planted errors."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from planted import trials

from silodp.config.board import on_board
from silodp.config.loading import known_experiments
from silodp.jobs.__main__ import main as run_job
from silodp.verdicts.comparisons import AHEAD, BEHIND, NO_DIFFERENCE
from silodp.verdicts.leaderboard import CORRECTED, axis_position, best_models, board_pairs, compared

ERRORS = {"minibatch_sgd": 0.20, "local_sgd": 0.22, "silo_only": 0.30, "dp_mu2": 0.25, "minibatch_sgd_adam": 0.15}


def reported(errors, losses=None, experiment="wbcd_leaderboard", epsilons=(1.0, 8.0)):
    generator, drawn = np.random.default_rng(0), {}
    for name, error in errors.items():
        drawn |= {(name, epsilon): error + generator.normal(0, 0.01, 10) for epsilon in epsilons}
    rows = pd.DataFrame(trials(experiment, drawn))
    return rows.assign(train_loss=rows["algorithm"].map(losses or errors))


def test_the_papers_algorithms_have_as_many_gradients_as_dp_mu2():
    """DP-μ² takes two gradients of each record once: K·R of minibatch SGD is at least 2n wherever they meet."""
    of_board = [options for name, options in known_experiments().items() if on_board(name)]
    shared = [options for options in of_board if "dp_mu2" in options["algorithms"] and "batch_share" in options]
    assert len(shared) == 4
    assert all(options["batch_share"] * setting["R"] >= 2 for options in shared for setting in options["settings"])


def test_each_algorithm_stands_against_minibatch_sgd_and_equal_errors_differ_nowhere():
    table = compared(reported(ERRORS))
    assert {*zip(table["first"], table["second"], strict=True)} == {(n, "minibatch_sgd") for n in list(ERRORS)[1:]}
    found = {name: set(part["outcome"]) for name, part in table.groupby("first")}
    assert found == {"minibatch_sgd_adam": {AHEAD}, **{name: {BEHIND} for name in ("local_sgd", "silo_only", "dp_mu2")}}
    same = compared(reported(dict.fromkeys(ERRORS, 0.2), ERRORS))
    assert not same["holm"].any()


def test_training_loss_chooses_the_best_single_model_and_test_error_does_not():
    small_loss = ERRORS | {"silo_only": 0.0, "dp_mu2": 0.01}
    best = best_models(reported(ERRORS, small_loss))
    assert best["best"].tolist() == ["dp_mu2", "dp_mu2"]
    assert best["test_error"].tolist() == pytest.approx([0.25, 0.25], abs=0.01)
    rows = reported(ERRORS, small_loss)
    rows.loc[(rows["algorithm"] == "dp_mu2") & (rows["trial"] == 3), "train_loss"] = np.inf
    assert best_models(rows)["best"].tolist() == ["minibatch_sgd_adam"] * 2


def test_a_diverged_trial_decides_nothing():
    rows = reported(ERRORS)
    rows.loc[(rows["algorithm"] == "silo_only") & (rows["trial"] == 3), ["test_error", "train_loss"]] = np.inf
    found = compared(rows).query("first == 'silo_only'")
    assert set(found["outcome"]) == {NO_DIFFERENCE}
    assert not found["holm"].any()


def test_holm_asks_more_of_more_cells():
    """A difference with p near 0.01 stands by itself and falls among twenty cells."""
    errors = {"minibatch_sgd": 0.20, "minibatch_sgd_adam": 0.1905}
    few = compared(reported(errors, epsilons=(1.0,)))
    many = compared(reported(errors, epsilons=tuple(float(e) for e in range(1, 21))))
    assert few.iloc[0]["high"] < 0.001
    assert many["holm"].sum() < (many["high"] < 0).sum()


def test_corrections_are_asked_about_along_an_axis_and_each_axis_by_itself():
    names = ["minibatch_sgd", "local_sgd", "dp_scaffold", "silo_only"]
    wanted = {("dp_scaffold", "minibatch_sgd"), ("dp_scaffold", "local_sgd"), ("minibatch_sgd", "silo_only")}
    assert {*board_pairs(names, "silos.mixed")} == wanted < {*CORRECTED}
    better, same = {"minibatch_sgd": 0.3, "dp_scaffold": 0.2}, {"minibatch_sgd": 0.2, "dp_scaffold": 0.2}
    planted = {"mnist_dirichlet_a10": better, "mnist_dirichlet_a30": better, "mnist_share_p0": same}
    table = compared(pd.concat([reported(errors, experiment=name) for name, errors in planted.items()]))
    assert {axis: set(part["holm"]) for axis, part in table.groupby("axis")} == {
        "silos.alpha": {True},
        "silos.mixed": {False},
    }


def test_a_place_on_an_axis_is_the_number_in_the_experiments_name():
    names = [name for name in known_experiments() if re.search(r"_(share_p|dirichlet_a)\d+$", name)]
    assert len(names) == 10
    for name in names:
        number = float(re.findall(r"\d+$", name)[0])
        assert axis_position(name) == pytest.approx(number if "_p" in name else number / 100), name
    assert math.isnan(axis_position("wbcd_mlp"))


def test_the_command_writes_tables_and_figures(tmp_path):
    errors = ERRORS | {"dp_scaffold": 0.18, "accelerated_minibatch_sgd": 0.2, "localised_accelerated": 0.2}
    files = []
    for name in ("wbcd_leaderboard", "mnist_share_p0", "mnist_share_p100", "mnist_dirichlet_a10"):
        files.append(str(tmp_path / f"{name}.csv"))
        reported(errors, experiment=name).to_csv(files[-1], index=False)
    names = {"leaderboard.csv", "leaderboard_best.csv", "leaderboard.svg"}
    for some, more in ((files[:1], set()), (files, {"leaderboard_heterogeneity.svg"})):
        assert run_job(["leaderboard", "reported=", *some, f"folder={tmp_path / 'board'}", "formats=svg"]) == 0
        assert {file.name for file in (tmp_path / "board").iterdir()} == names | more
