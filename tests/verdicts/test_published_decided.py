"""Rows of the decided table are what the committed trials give, and the trials what the code gives."""

import shutil

import numpy as np
import pandas as pd
import pytest
from small import ROOT

from silodp.cli import main
from silodp.files import read_parquet
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.claims.claim_files import read_protocol
from silodp.verdicts.decided_trials import choosable, parts_of, train_points, trial_files

KEY = ["family", "data_set", "first", "second"]
NUMBERS = ["difference", "low", "high", "low_90", "high_90"]


def part_of(folder):
    """Breast cancer under the papers' noise."""
    return next(part for part in parts_of(read_protocol(), "printed", folder) if part.experiment == "wbcd_mlp")


def test_the_command_gives_the_published_rows_of_committed_trials(tmp_path):
    shutil.copytree(ROOT / "results" / "decided" / "printed" / "wbcd_mlp", tmp_path / "printed" / "wbcd_mlp")
    assert main(["decided", "tables", "printed", "--experiments", "wbcd_mlp", "--folder", str(tmp_path)]) == 0
    for name, more in (("decided", ["experiment", "epsilon"]), ("decided_means", ["claim", "data_set"])):
        key = ["family", "first", "second", *more]
        files = (folder / f"{name}.csv" for folder in (tmp_path, ROOT / "results" / "published"))
        found, published = (pd.read_csv(file).fillna({"reading": "", "claim": ""}) for file in files)
        wanted = found[key].merge(published, on=key, how="left")
        assert len(found) == {"decided": 21, "decided_means": 8}[name]
        pd.testing.assert_frame_equal(found, wanted[found.columns], rtol=1e-6, atol=1e-6, check_dtype=False)


def test_a_committed_trial_is_what_the_code_gives():
    part = part_of(ROOT / "results" / "decided")
    points = choosable(read_parquet(part.trials_folder / "pilot.parquet"))
    for side in part.sides():
        file, numbers = next(iter(trial_files(part, side).items()))
        wanted = read_parquet(file).query("trial == @numbers[0]").reset_index(drop=True)
        found = train_points(part, points[points["side"] == side], numbers[:1], "decided")
        assert len(found) == len(wanted) > 0
        np.testing.assert_allclose(found["test_error"], wanted["test_error"], atol=1e-6)
        # Another kind of processor rounds sums differently, and a single long run of SPIDER by up to 5e-5 in the end.
        apart = (found["train_loss"] / wanted["train_loss"] - 1).abs()
        assert apart.quantile(0.9) < 1e-6
        assert apart.max() < 1e-3


@pytest.mark.slow
def test_the_command_makes_tables_of_committed_trials(tmp_path):
    shutil.copytree(ROOT / "results/decided/calibrated/wbcd_certified", tmp_path / "calibrated/wbcd_certified")
    assert main(["decided", "tables", "calibrated", "--experiments", "wbcd_certified", "--folder", str(tmp_path)]) == 0
    found, wanted = (pd.read_csv(file) for file in (tmp_path / "decided.csv", ROOT / "results/published/decided.csv"))
    wanted = wanted.query("experiment == 'wbcd_certified'")
    assert found["outcome"].tolist() == wanted["outcome"].tolist() == ["same"] * 7
    np.testing.assert_allclose(found[NUMBERS].to_numpy(float), wanted[NUMBERS].to_numpy(float), atol=1e-6)
    assert {"gate.csv", "decided_verdicts.csv", "decided_means.csv"} <= {file.name for file in tmp_path.iterdir()}


def test_published_means_are_those_of_the_published_cells():
    """Useless cells and those of one mechanism are in no mean, as in C1's on insurance."""
    cells = pd.read_csv(ROOT / "results/published/decided.csv").query(
        "trials > 0 and not useless and not same_mechanism"
    )
    means = pd.read_csv(ROOT / "results/published/decided_means.csv").query("cells > 0")
    cells["data_set"] = cells["experiment"].map(data_set)
    for row in means[means["claim"].isna()].to_dict("records"):
        own = cells[(cells[["family", "data_set", "first", "second"]] == [row[key] for key in KEY]).all(axis=1)]
        assert (len(own), own["difference"].mean()) == (row["cells"], pytest.approx(row["difference"]))
    insurance = means.query("claim == 'C1' and data_set == 'insurance'").iloc[0]
    assert (insurance["cells"], insurance["apart"]) == (24, 8)
    assert insurance["difference"] == pytest.approx(-0.0197, abs=5e-5)
