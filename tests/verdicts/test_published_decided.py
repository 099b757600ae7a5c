"""Rows of the decided table are what the committed trials give, and the trials what the code gives."""

import shutil

import numpy as np
import pandas as pd
from small import ROOT

from silodp.cli import main
from silodp.files import read_parquet
from silodp.verdicts.decided_tables import COLUMNS, cell_rows
from silodp.verdicts.decided_trials import choosable, parts_of, read_protocol, train_points, trial_files

NUMBERS = ["difference", "low", "high", "low_90", "high_90"]


def part_of(folder):
    """Breast cancer under the papers' noise."""
    return next(part for part in parts_of(read_protocol(), "printed", folder) if part.experiment == "wbcd_mlp")


def test_rows_are_what_committed_trials_give(tmp_path):
    shutil.copytree(ROOT / "results" / "decided" / "printed" / "wbcd_mlp", tmp_path / "printed" / "wbcd_mlp")
    protocol = read_protocol()
    found = pd.DataFrame(cell_rows(part_of(tmp_path), **protocol["data_sets"]["wbcd"]))[COLUMNS]
    wanted = pd.read_csv(ROOT / "results" / "published" / "decided.csv")
    wanted = wanted.query("family == 'printed' and experiment == 'wbcd_mlp'")
    assert found["outcome"].tolist() == wanted["outcome"].tolist()
    np.testing.assert_allclose(found[NUMBERS].to_numpy(float), wanted[NUMBERS].to_numpy(float), atol=1e-6)


def test_a_committed_trial_is_what_the_code_gives():
    part = part_of(ROOT / "results" / "decided")
    points = choosable(read_parquet(part.place / "pilot.parquet"))
    for side in part.sides():
        file, numbers = next(iter(trial_files(part, side).items()))
        wanted = read_parquet(file).query("trial == @numbers[0]").reset_index(drop=True)
        found = train_points(part, points[points["side"] == side], numbers[:1], "decided")
        assert len(found) == len(wanted) > 0
        np.testing.assert_allclose(found["train_loss"], wanted["train_loss"], rtol=1e-5)


def test_the_command_makes_tables_of_committed_trials(tmp_path):
    shutil.copytree(ROOT / "results" / "decided" / "perceptron" / "wbcd_equal", tmp_path / "perceptron" / "wbcd_equal")
    assert main(["decided", "tables", "perceptron", "--experiments", "wbcd_equal", "--folder", str(tmp_path)]) == 0
    found, wanted = (pd.read_csv(file) for file in (tmp_path / "decided.csv", ROOT / "results/published/decided.csv"))
    wanted = wanted.query("experiment == 'wbcd_equal'")
    assert found["outcome"].tolist() == wanted["outcome"].tolist() == ["ahead"] * 5
    np.testing.assert_allclose(found[NUMBERS].to_numpy(float), wanted[NUMBERS].to_numpy(float), atol=1e-6)
    assert {"gate.csv", "decided_verdicts.csv"} <= {file.name for file in tmp_path.iterdir()}
