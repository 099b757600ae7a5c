"""Rows are held to the run file: half a grid, rows twice and another experiment's rows are one line."""

import pandas as pd
import pytest
from finished import run_file

from silodp.cli.select import read_planned
from silodp.experiments.validation import load
from silodp.files import write_parquet


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows, ""),
        (lambda rows: rows[rows["algorithm"] != "local_sgd"], "('local_sgd', 2, 5, ''): missing"),
        (lambda rows: pd.concat([rows, rows[:1]]), "has rows twice"),
        (lambda rows: rows[1:], "lacks rows of a trial"),
        (lambda rows: rows.assign(experiment="other"), "experiment 'other': is another one"),
        (lambda rows: pd.concat([rows, rows[:1].assign(R=6)]), "is no task of it"),
    ],
)
def test_rows_are_those_of_the_plan(tmp_path, change, said):
    keys = {"trials": 2, "algorithms": {"minibatch_sgd": {}, "local_sgd": {}}}
    config = load(run_file(tmp_path / "r.yaml", "r", {"wbcd_mlp": keys})).experiments["wbcd_mlp"]
    config = config.model_copy(update={"algorithms": {n: config.algorithms[n] for n in keys["algorithms"]}})
    grid = {"algorithm": list(keys["algorithms"])}, {"trial": [0, 1]}, {"stepsize": [0.1, 0.2]}
    rows = pd.DataFrame({"experiment": ["wbcd_mlp"]})
    for one in grid:
        rows = rows.merge(pd.DataFrame(one), how="cross")
    rows = rows.assign(reading="", M=2, R=5, epsilon=3.0, clip=1.0, phase_length=1)
    rows = rows.assign(train_loss=1.0, test_error=0.5, diverged=False)
    write_parquet(change(rows), tmp_path / "t.parquet")
    if not said:
        assert len(read_planned([tmp_path / "t.parquet"], "wbcd_mlp", config)) == 8
        return
    with pytest.raises(ValueError, match="rows of wbcd_mlp: ") as caught:
        read_planned([tmp_path / "t.parquet"], "wbcd_mlp", config)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
