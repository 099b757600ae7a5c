"""The leaderboard's rules on planted errors."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from planted import trials

from silodp.cli import main
from silodp.config.loading import known_experiments
from silodp.verdicts.leaderboard import axis_position, compared, headline, on_board, questions, verdicts

ERRORS = {"minibatch_sgd": 0.20, "local_sgd": 0.22, "silo_only": 0.30, "dp_mu2": 0.25, "minibatch_sgd_adam": 0.15}


def reported(errors, losses=None, experiment="wbcd_leaderboard", epsilons=(1.0, 8.0)):
    generator, drawn = np.random.default_rng(0), {}
    for name, error in errors.items():
        drawn |= {(name, epsilon): error + generator.normal(0, 0.01, 10) for epsilon in epsilons}
    rows = pd.DataFrame(trials(experiment, drawn))
    return rows.assign(train_loss=rows["algorithm"].map(losses or errors))


def outcomes(table):
    return {key: set(part["outcome"]) for key, part in table.groupby("question")}


def test_the_papers_algorithms_have_as_many_gradients_as_dp_mu2():
    """DP-μ² takes two gradients of each record once: K·R of minibatch SGD is at least 2n wherever they meet."""
    of_board = [options for name, options in known_experiments().items() if on_board(name)]
    shared = [options for options in of_board if "dp_mu2" in options["algorithms"] and "batch_share" in options]
    assert len(shared) == 4
    assert all(options["batch_share"] * setting["R"] >= 2 for options in shared for setting in options["settings"])


def test_planted_differences_are_found_and_equal_errors_are_not():
    found = outcomes(compared(reported(ERRORS)))
    assert found == {"successor": {"yes"}, "federating": {"yes"}, "linear time": {"no, worse"}}
    same = outcomes(compared(reported(dict.fromkeys(ERRORS, 0.2), ERRORS)))
    assert set.union(*same.values()) == {"no difference found"}


def test_training_loss_chooses_and_test_error_does_not():
    table = compared(reported(ERRORS, ERRORS | {"minibatch_sgd_adam": 0.9}))
    assert set(table.loc[table["question"] == "successor", "first"]) == {"dp_mu2"}
    top = headline(reported(ERRORS), table)
    assert set(top["best"]) == {"minibatch_sgd_adam"}


def test_a_diverged_trial_decides_nothing():
    rows = reported(ERRORS)
    rows.loc[(rows["algorithm"] == "silo_only") & (rows["trial"] == 3), ["test_error", "train_loss"]] = np.inf
    found = outcomes(compared(rows))
    assert found["federating"] == {"no difference found"}


def test_holm_asks_more_of_more_cells():
    """A difference with p near 0.01 stands by itself and falls among twenty cells."""
    errors = {"minibatch_sgd": 0.20, "minibatch_sgd_adam": 0.1905}
    few = compared(reported(errors, epsilons=(1.0,)))
    many = compared(reported(errors, epsilons=tuple(float(e) for e in range(1, 21))))
    first = many[many["epsilon"] == 1.0].iloc[0]
    assert few.iloc[0]["high"] < 0.001
    assert many["holm"].sum() < (many["high"] < 0).sum()
    assert first["question"] == "successor"


def test_a_model_for_each_silo_is_not_compared_where_a_constant_model_has_no_error(tmp_path, capsys):
    """Silos of a single class: silo-only training wins by guessing, so no question counts it."""
    (tmp_path / "reported").mkdir()
    reported(ERRORS | {"silo_only": 0.0, "mr_mtl": 0.0}).to_csv(tmp_path / "reported/wbcd_leaderboard.csv", index=False)
    for scheme, asked in (("iid", True), ("by_class", False)):
        config = {"experiments": {"wbcd_leaderboard": {"silos": {"scheme": scheme}}}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert main(["leaderboard", str(tmp_path), "--output", str(tmp_path / "board")]) == 0
        found = pd.read_csv(tmp_path / "board/leaderboard.csv")["question"]
        assert ({"personal", "federating"} <= set(found)) is asked
        assert "successor" in set(found)


def test_the_axis_of_heterogeneity_has_questions_of_its_own():
    names = ["minibatch_sgd", "local_sgd", "dp_scaffold", "silo_only"]
    pairs = {"dp_scaffold, minibatch_sgd", "dp_scaffold, local_sgd", "minibatch_sgd, silo_only"}
    assert {question.key for question in questions(names, axis="silos.mixed")} == pairs


def test_a_place_on_an_axis_is_the_number_in_the_experiments_name():
    names = [name for name in known_experiments() if re.search(r"_(share_p|dirichlet_a)\d+$", name)]
    assert len(names) == 10
    for name in names:
        number = float(re.findall(r"\d+$", name)[0])
        assert axis_position(name) == pytest.approx(number if "_p" in name else number / 100), name
    assert math.isnan(axis_position("wbcd_mlp"))


def test_a_correction_pays_from_the_largest_alpha_at_which_it_wins():
    """Planted: it wins at α = 0.1 and 0.3 and not at 1; p = 0 % beside it has a question of its own."""
    better, same = {"minibatch_sgd": 0.3, "dp_scaffold": 0.2}, {"minibatch_sgd": 0.2, "dp_scaffold": 0.2}
    planted = {"mnist_dirichlet_a10": better, "mnist_dirichlet_a30": better, "mnist_dirichlet_a100": same}
    rows = [reported(errors, experiment=name) for name, errors in planted.items()]
    table = compared(pd.concat([*rows, reported(same, experiment="mnist_share_p0")]))
    by_share, by_alpha = sorted(verdicts(table), key=lambda line: "by α" in line)
    assert "yes at 4, worse at 0 of 6 cells" in by_alpha
    assert by_alpha.endswith("pays from α = 0.3 at ε = 1, from α = 0.3 at ε = 8")
    assert by_share.endswith("pays nowhere at ε = 1, nowhere at ε = 8")


def test_the_command_writes_table_verdicts_and_figures(tmp_path, capsys):
    (tmp_path / "run" / "reported").mkdir(parents=True)
    (tmp_path / "run" / "config.json").write_text('{"experiments": {}}')
    errors = ERRORS | {"dp_scaffold": 0.18, "accelerated_minibatch_sgd": 0.2, "localised_accelerated": 0.2}
    reported(ERRORS).to_csv(tmp_path / "run" / "reported" / "wbcd_leaderboard.csv", index=False)
    for name in ("mnist_share_p0", "mnist_share_p100", "mnist_dirichlet_a10"):
        reported(errors, experiment=name).to_csv(tmp_path / "run" / "reported" / f"{name}.csv", index=False)
    assert main(["leaderboard", str(tmp_path / "run"), "--output", str(tmp_path / "board")]) == 0
    names = {file.name for file in (tmp_path / "board").iterdir()}
    assert names == {"leaderboard.csv", "leaderboard.md", "leaderboard.svg", "leaderboard_heterogeneity.svg"}
    said = capsys.readouterr().out
    assert said == (tmp_path / "board" / "leaderboard.md").read_text()
    assert "does a successor beat the papers' best: yes at 2, worse at 0 of 2 cells after Holm" in said
    assert main(["leaderboard", str(tmp_path), "--output", str(tmp_path / "board")]) == 2
    assert "must be the folder of a finished run" in capsys.readouterr().err


def test_an_unknown_algorithm_is_named():
    with pytest.raises(ValueError, match="nobody"):
        compared(reported({"nobody": 0.1}))
