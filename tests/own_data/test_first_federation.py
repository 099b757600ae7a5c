"""`silodp init --federation`: a draft that loads, and marks what it read off the records."""

import numpy as np
import pandas as pd
import patients
import pytest

from silodp.cli import main
from silodp.experiments.validation import load
from silodp.own_data.first_run_file import MARK
from silodp.silos.federation_file import read_federation, read_silo
from silodp.silos.run_plan import work_out
from silodp.silos.silo_records import read_silo_records

AGES = 20 + 7 * np.arange(770) % 60
WEIGHTS = [f"{60 + i % 40},5" for i in range(770)]


@pytest.fixture
def draft(tmp_path, monkeypatch, capsys):
    """Exit code and words of the command on a file of patients; the draft is in `federation`."""
    monkeypatch.chdir(tmp_path)
    patients.write_records(tmp_path / "patients.csv", {"North": 647, "South": 123}, age=AGES, weight=WEIGHTS)

    def call(*words):
        code = main(["init", "patients.csv", "--target", "readmitted", "--federation", "--decimal", ",", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def test_a_curators_file_becomes_a_file_and_a_promise_for_each_silo(draft, tmp_path):
    assert draft("--silo", "hospital")[0] == 0
    folder = tmp_path / "federation"
    agreed = read_federation(folder / "federation.yaml")
    assert {name: silo.records for name, silo in agreed.silos.items()} == {"North": 640, "South": 120}
    for name, size in (("North", 647), ("South", 123)):
        (x, y), departures = read_silo_records(read_silo(folder / "records" / f"{name}.yaml"), agreed)
        assert (len(x), len(y), departures) == (size, size, [])
    assert max(abs(x).max() for x, _ in [read_silo_records(read_silo(folder / "records/North.yaml"), agreed)[0]]) <= 1
    plan = work_out(agreed, "federation.yaml")
    assert all(plan.epsilon(silo)[1] <= 1 for silo in range(2))


def test_a_silos_file_becomes_a_silo_and_marks_tell_what_was_read_off_it(draft, tmp_path):
    code, said = draft("--ignore", "hospital")
    assert code == 0
    assert "Still blank: the other silos, the coordinator's address; between machines every certificate" in said
    folder = tmp_path / "federation"
    silo, agreed = read_silo(folder / "silo.yaml"), read_federation(folder / "federation.yaml")
    assert (silo.name, len(read_silo_records(silo, agreed)[0][1]), silo.form.decimal) == ("patients", 770, ",")
    marked = [line for line in (folder / "federation.yaml").read_text().splitlines()[2:] if MARK in line]
    # Two columns of words, the bounds of two numbers, one size.
    assert len(marked) == 5


def test_a_silo_drafts_under_its_name_beside_its_file(draft, tmp_path):
    """It was called as its file, and the folder had to be a new one."""
    assert draft("--ignore", "hospital", "--name", "north", "--output", ".")[0] == 0
    assert list(read_federation(tmp_path / "federation.yaml").silos) == ["north"]
    silo = read_silo(tmp_path / "silo.yaml")
    assert (silo.name, silo.key) == ("north", str(tmp_path / "north.key"))
    assert (silo.budget, silo.delta) == (4.0, 1e-3)


def test_the_study_is_of_made_up_records(draft, tmp_path):
    """Other records in the same bounds and categories give the same study."""
    draft("--silo", "hospital")
    first = (tmp_path / "federation/made_up.csv").read_bytes()
    moved = {"age": np.roll(AGES, 5), "weight": WEIGHTS}
    patients.write_records(tmp_path / "patients.csv", {"North": 647, "South": 123}, **moved)
    assert draft("--silo", "hospital", "--output", "again")[0] == 0
    assert (tmp_path / "again/made_up.csv").read_bytes() == first
    config = load(tmp_path / "federation/study.yaml").experiments["federation_made_up"]
    assert config.is_own
    bounds = read_federation(tmp_path / "federation/federation.yaml").records.bounds
    assert config.preprocess.bounds.keys() == bounds.keys()


def test_made_up_silos_have_forty_records_at_least_and_a_target_fills_its_bounds(draft, tmp_path):
    patients.write_records(tmp_path / "patients.csv", {"North": 747, "South": 23}, age=AGES)
    assert main(["init", "patients.csv", "--target", "age", "--silo", "hospital", "--federation"]) == 0
    low, high = read_federation(tmp_path / "federation/federation.yaml").records.bounds["age"]
    made = pd.read_csv(tmp_path / "federation/made_up.csv")
    assert made["silo"].value_counts().to_dict() == {"North": 740, "South": 40}
    assert (made["age"].min(), low < 20 < 79 < high) == (low, True)
    assert high - 0.01 * (high - low) < made["age"].max() <= high


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--missing", "drop"), "--missing: drop: must be left out with --federation"),
        (("--person", "weight"), "--person: 'weight': must be left out with --federation"),
        (("--output", "."), "study.yaml: already exists"),
        (("--name", "North", "--silo", "hospital"), "--name: North: must be left out with --silo"),
    ],
)
def test_what_lets_a_record_move_others_is_refused(draft, tmp_path, words, said):
    (tmp_path / "study.yaml").touch()
    code, told = draft(*words)
    assert (code, said in told) == (2, True)
    assert not list(tmp_path.rglob("federation*"))
