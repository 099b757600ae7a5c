"""Trials of several files: those of a variant name the points that the default reading stands for, others do not."""

import pandas as pd
import pytest
from finished import run_file
from gridrows import rows

from silodp.config.loading import known_experiments
from silodp.experiments.made_for import write_trained
from silodp.experiments.selection import losses, select
from silodp.experiments.table import ENDS, KEY, delivered_lookup
from silodp.experiments.validation import load
from silodp.files import write_csv
from silodp.jobs.__main__ import main as run_job
from silodp.jobs.table import trained_rows


def test_losses_of_files_with_and_without_the_column_trained():
    default = rows("minibatch_sgd", [[0.3, 0.2], [0.4, 0.1]])
    variant = rows("minibatch_sgd", [[0.5, 0.6], [0.5, 0.6]], reading="stepsize_grid=linear")
    variant["trained"] = [True, False, True, False]
    found = losses(trained_rows(pd.concat([default, variant], ignore_index=True)))
    assert found["train_loss_mean"].round(12).tolist() == [0.35, 0.15, 0.5]
    assert losses(trained_rows(default)).equals(losses(default))


@pytest.mark.parametrize(
    ("change", "said"),
    [(lambda rows: rows, "no fresh runs"), (lambda rows: rows[1:], "what is chosen from these trials")],
)
def test_chosen_points_are_those_that_select_chooses(tmp_path, capsys, change, said):
    others = dict.fromkeys(known_experiments()["wbcd_mlp"]["algorithms"])
    keys = {"trials": 2, "algorithms": others | {"minibatch_sgd": {"private": "private"}}, "alternatives": []}
    run = run_file(tmp_path / "r.yaml", "r", {"wbcd_mlp": keys})
    resolved = load(run)
    made = "wbcd_mlp", resolved.experiments["wbcd_mlp"], resolved.run
    grid = rows("minibatch_sgd", [[0.3, 0.2], [0.4, 0.1]]).assign(
        experiment="wbcd_mlp", M=2, R=5, epsilon=3.0, clip=1.0, phase_length=1
    )
    write_trained(grid, tmp_path / "grid.parquet", *made)
    write_trained(change(select(grid, made[1])), tmp_path / "chosen.parquet", *made)
    write_csv(pd.DataFrame(columns=[*KEY, *ENDS]), tmp_path / "privacy.csv")
    words = [f"{kind}={tmp_path / kind}.parquet" for kind in ("grid", "chosen", "losses")] + ["fresh="]
    words += [f"privacy={tmp_path / 'privacy.csv'}", f"output={tmp_path / 't.csv'}", f"reported={tmp_path / 'r.csv'}"]
    assert run_job(["table", f"run_file={run}", "experiment=wbcd_mlp", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_point_has_one_row_of_privacy():
    row = {"algorithm": "a", "reading": "", "M": 2, "R": 5, "epsilon": 1.0, "phase_length": 1}
    table = pd.DataFrame([row | {"delivered_epsilon": value, "delivered_lower": 0.5} for value in (0.9, 9.0)])
    assert delivered_lookup(table[:1])(pd.Series(row | {"source": "a"})) == (0.9, 0.5)
    with pytest.raises(ValueError, match="twice: must be one row a point"):
        delivered_lookup(table)
