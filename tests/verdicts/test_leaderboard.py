"""The leaderboard's comparisons on planted errors."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from planted import trials

from silodp.cli import main
from silodp.config.loading import known_experiments
from silodp.verdicts.comparisons import COLUMNS, compare
from silodp.verdicts.leaderboard import axis_position, compared, counted, on_board, pairs_on

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


def of_pair(table, first, second="minibatch_sgd"):
    return table[(table["first"] == first) & (table["second"] == second)]


def test_every_algorithm_is_compared_with_minibatch_sgd_as_everywhere():
    rows = reported(ERRORS)
    table = compared(rows)
    assert list(table) == [*COLUMNS, "holm"]
    for name, outcome in (("local_sgd", "behind"), ("dp_mu2", "behind"), ("minibatch_sgd_adam", "ahead")):
        own = of_pair(table, name)
        assert set(own["outcome"]) == {outcome}
        assert own["holm"].all()
        pd.testing.assert_frame_equal(own[COLUMNS].reset_index(drop=True), compare(rows, name, "minibatch_sgd"))
    same = compared(reported(dict.fromkeys(ERRORS, 0.2), ERRORS))
    assert set(same["outcome"]) == {"no difference found"}
    assert not same["holm"].any()


def test_a_diverged_trial_decides_nothing():
    rows = reported(ERRORS)
    rows.loc[(rows["algorithm"] == "dp_mu2") & (rows["trial"] == 3), ["test_error", "train_loss"]] = np.inf
    own = of_pair(compared(rows), "dp_mu2")
    assert set(own["outcome"]) == {"no difference found"}
    assert not own["holm"].any()


def test_holm_asks_more_of_more_cells():
    """A difference with p near 0.01 stands by itself and falls among twenty cells; the raw outcome stays beside."""
    errors = {"minibatch_sgd": 0.20, "minibatch_sgd_adam": 0.1905}
    few = compared(reported(errors, epsilons=(1.0,)))
    many = compared(reported(errors, epsilons=tuple(float(e) for e in range(1, 21))))
    assert few.iloc[0]["high"] < 0.001
    assert many["holm"].sum() < (many["outcome"] == "ahead").sum()
    (row,) = counted(many).to_dict("records")
    assert (row["cells"], row["ahead"], row["ahead after Holm"]) == (20, (many["high"] < 0).sum(), many["holm"].sum())
    assert row["behind"] == row["behind after Holm"] == 0


def test_a_model_for_each_silo_is_not_compared_where_a_constant_model_has_no_error():
    """Silos of a single class: silo-only training wins by guessing."""
    errors = ERRORS | {"mr_mtl": 0.1}
    for experiment, personal in (("wbcd_leaderboard", False), ("digits_leaderboard", True)):
        table = compared(reported(errors, experiment=experiment))
        assert (len(of_pair(table, "mr_mtl")) > 0) is personal
        assert (len(of_pair(table, "minibatch_sgd", "silo_only")) > 0) is personal


def test_the_axis_of_heterogeneity_has_pairs_of_its_own():
    names = {"minibatch_sgd", "local_sgd", "dp_scaffold", "silo_only"}
    pairs = [("dp_scaffold", "minibatch_sgd"), ("dp_scaffold", "local_sgd"), ("minibatch_sgd", "silo_only")]
    assert pairs_on("mnist_share_p0", names) == pairs
    errors = dict.fromkeys(names, 0.2) | {"dp_scaffold": 0.1}
    experiments = ("mnist_share_p0", "mnist_share_p100", "mnist_dirichlet_a10")
    table = counted(compared(pd.concat([reported(errors, experiment=name) for name in experiments])))
    cells = of_pair(table, "dp_scaffold").set_index("over")
    assert cells["cells"].to_dict() == cells["ahead"].to_dict() == {"share p": 4, "Dirichlet α": 2}


def test_a_place_on_an_axis_is_the_number_in_the_experiments_name():
    names = [name for name in known_experiments() if re.search(r"_(share_p|dirichlet_a)\d+$", name)]
    assert len(names) == 10
    for name in names:
        number = float(re.findall(r"\d+$", name)[0])
        assert axis_position(name) == pytest.approx(number if "_p" in name else number / 100), name
    assert math.isnan(axis_position("wbcd_mlp"))


def test_the_command_writes_comparisons_counts_and_figures(tmp_path, capsys):
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
    assert "| data set | minibatch_sgd_adam | minibatch_sgd | 2 | 2 | 0 | 2 | 0 |" in said
    assert main(["leaderboard", str(tmp_path), "--output", str(tmp_path / "board")]) == 2
    assert "must be the folder of a finished run" in capsys.readouterr().err


def test_an_unknown_algorithm_is_named():
    with pytest.raises(ValueError, match="nobody"):
        compared(reported({"nobody": 0.1}))
