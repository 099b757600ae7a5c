"""`silodp audit`: the first word is an algorithm or a run file."""

import json

import pandas as pd
import pytest

from silodp.cli import main
from silodp.files import AS_PLANNED, AUDIT_EXTRA

SMALL = ("--records", "20", "--rounds", "3", "--runs", "40", "--batch", "5")


def test_an_algorithm_is_audited_by_both_tests(capsys, tmp_path):
    path = tmp_path / "audit.csv"
    assert main(["audit", "minibatch_sgd", *SMALL, "--epsilon", "1", "8", "--json", "--output", str(path)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["claimed_epsilon"] for row in rows] == [1, 8]
    assert all(row["audited_lower"] <= row["delivered_epsilon"] and row["profile_holds"] for row in rows)
    assert all(row["mechanism"] == AS_PLANNED and row["mechanism_p"] > 1e-5 for row in rows)
    table = pd.read_csv(path)
    assert list(table.columns)[-len(AUDIT_EXTRA) :] == AUDIT_EXTRA
    assert len(table) == 2


def test_the_table_is_printed(capsys):
    assert main(["audit", "one_pass_accelerated_sgd", "--records", "20", "--runs", "40", "--epsilon", "2"]) == 0
    said = capsys.readouterr().out
    assert "one_pass_accelerated_sgd: n = 20, R = 20" in said
    assert AS_PLANNED in said


def test_an_option_reaches_the_algorithm(capsys):
    """q = 3 of 3 rounds: one fresh gradient, two differences."""
    arguments = ["audit", "fedprox_spider", *SMALL, "--runs", "4", "--epsilon", "2", "--json"]
    found = []
    for option in ("phase_length=1", "phase_length=3"):
        assert main([*arguments, "--option", option]) == 0
        found.append(json.loads(capsys.readouterr().out)[0]["delivered_epsilon"])
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sgd"], "'sgd': must be an algorithm"),
        (["minibatch_sgd", "wbcd_mlp"], "takes no experiment"),
        (["config/default.yaml", "wbcd_mlp"], "--silos: missing"),
        (["minibatch_sgd", "--runs", "3"], "--runs: 3: must be at least 4"),
        (["minibatch_sgd", "--epsilon", "-1"], "--epsilon: -1.0: must be positive"),
        (["minibatch_sgd", "--batch", "400"], "--batch: 400: must lie between 1 and --records = 169"),
        (["minibatch_sgd", "--records", "1"], "--delta: 1.0: must lie between 0 and 1"),
        (["minibatch_sgd", "--rounds", "0"], "--rounds: 0: must be at least 1"),
        (["minibatch_sgd", "--option", "speed=3"], "--option: 'speed=3': must be NAME=VALUE"),
    ],
)
def test_bad_input_is_one_line(arguments, said, capsys):
    assert main(["audit", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
