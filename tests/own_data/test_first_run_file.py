"""`silodp init`: a run file that loads as it stands, and what it says of a file."""

import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.datasets.base import Data
from silodp.datasets.own.guessing import Wishes, guess_schema
from silodp.datasets.own.schema import Column, Schema
from silodp.experiments.validation import load, silo_sizes
from silodp.own_data.first_run_file import (
    bounds_around,
    identities,
    leaks,
    missing_marks,
    name_of,
    outlier,
    repeated_ids,
    restarting,
    run_file,
    survey,
)

ROW = np.arange(300)
HOSPITALS = np.where(ROW < 12, "Tiny", np.where(ROW % 3 == 0, "North", "South"))
COLUMNS = {"hospital": HOSPITALS, "age": 20.0 + ROW % 60, "smoker": np.where(ROW % 2 == 0, "yes", "no")}
COLUMNS |= {"note": [f"Zz-secret {n}" for n in ROW], "readmitted": np.where(ROW % 4 == 0, "yes", "no")}


@pytest.fixture
def init(tmp_path, monkeypatch, capsys):
    """Exit code, output and errors of `silodp init` on a file with these columns."""
    monkeypatch.chdir(tmp_path)

    def one(*words, **columns):
        pd.DataFrame(COLUMNS | columns).to_csv("patients.csv", index=False)
        code = main(["init", "patients.csv", "--target", "readmitted", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return one


def test_the_file_is_described_and_the_run_file_loads(init, tmp_path):
    code, said, _ = init("--silo", "hospital")
    assert code == 0
    assert "300 records" in said
    assert "numbers: age" in said
    assert "categories, as 1 columns: smoker" in said
    assert "ignored: note: text with more than 50 different values" in said
    assert "silos: 2 with 96 to 192 records; 1 left out with fewer than 20" in said
    assert "Zz-secret" not in said
    path = tmp_path / "config" / "patients.yaml"
    text = path.read_text()
    assert "Zz-secret" not in text
    config = load(path).experiments["patients"]
    assert silo_sizes(config) == (2, 76)
    assert config.preprocess.bounds == {"age": [10.0, 80.0]}
    assert config.preprocess.bounds_from == "file"
    assert set(config.algorithms) == {"minibatch_sgd", "silo_only"}
    assert config.readings.noise == "calibrated"
    assert all(config.delta_of(n) < n**-1.1 for n in (76, 153))
    assert not config.paper


def test_seeds_are_drawn_and_no_file_is_written_over(init, tmp_path):
    init("--silo", "hospital")
    first = yaml.safe_load((tmp_path / "config" / "patients.yaml").read_text())["seed"]
    code, _, error = init("--silo", "hospital")
    assert (code, error.count("\n")) == (2, 1)
    assert "patients.yaml: already exists; remove it or choose another --output" in error
    init("--silo", "hospital", "--output", "other.yaml")
    assert yaml.safe_load((tmp_path / "other.yaml").read_text())["seed"] != first


@pytest.mark.parametrize(
    ("target", "model"),
    [
        pytest.param(100.0 + 1.5 * ROW, "linear", marks=pytest.mark.slow),
        pytest.param(ROW % 3, "softmax", marks=pytest.mark.slow),
        (COLUMNS["readmitted"], "logistic"),
    ],
)
def test_the_model_follows_from_the_target_and_silos_are_cut_without_a_column(init, tmp_path, target, model):
    assert init(readmitted=target)[0] == 0
    config = load(tmp_path / "config" / "patients.yaml").experiments["patients"]
    assert config.model.name == model
    assert config.silos.scheme == "iid"
    assert (config.label == "target") == (model == "linear")


def test_what_cannot_be_used_is_one_line_and_leaves_nothing(init, tmp_path):
    gap = {"age": np.where(ROW == 7, np.nan, ROW % 50)}
    for words, more, wanted in (
        (["--silo", "clinic"], {}, "no column is called 'clinic'"),
        (["--silo", "hospital"], gap, "row 8, column 'age': missing"),
        (["--silo", "note"], {}, "no silo has 20 records"),
        (["--type", "clinic=number"], {}, "no column is called 'clinic'"),
        (["--missing-word", "clinic=a"], {}, "no column is called 'clinic'"),
        *((["--type", word], {}, f"--type: {word}: must be COLUMN=WORD") for word in ("age", "=number", "age=")),
    ):
        code, _, error = init(*words, **more)
        assert (code, error.count("\n")) == (2, 1)
        assert wanted in error
        assert not (tmp_path / "config" / "patients.yaml").exists()
    assert init("--silo", "hospital", "--missing", "drop", **gap)[0] == 0


def test_a_separator_is_one_character_or_the_word_tab(init):
    pd.DataFrame(COLUMNS).to_csv("tabs.tsv", sep="\t", index=False)
    for mark in ("ab", "", "\n", '"'):
        code, _, error = init("--separator", mark)
        assert (code, error.count("\n")) == (2, 1)
        assert f"{mark!r} is not one character" in error
    for name, mark in {"word": "tab", "code": r"\t", "mark": "\t"}.items():
        words = ["--target", "readmitted", "--separator", mark, "--output", f"{name}.yaml"]
        assert main(["init", "tabs.tsv", *words]) == 0


def test_a_person_column_is_counted(init, tmp_path):
    _, said, _ = init("--silo", "hospital", "--person", "who", who=ROW // 2)
    assert "persons: 150, with at most 2 records" in said
    assert load(tmp_path / "config" / "patients.yaml").experiments["patients"].dataset.person == "who"


def test_what_a_file_hides_is_named(init, tmp_path):
    more = {"patient_nr": ROW % 7, "code": ROW * 3 + 11, "age": np.where(ROW == 5, 1e6, 20 + ROW % 60), "ward": ROW % 2}
    more |= {"leak": (ROW % 4 == 0) * 1, "who": np.where(ROW < 29, 10, ROW // 30)}
    more |= {"weight": np.where(ROW == 8, "?", (ROW % 50).astype(str))}
    more |= {"pulse": np.where(ROW % 9 == 0, -999, 60 + ROW % 40), "grade": np.where(ROW % 9 == 0, 9, ROW % 9)}
    code, said, error = init("--person", "who", "--person-limit", "29", "--missing", "mean", "--silos", "3", **more)
    assert code == 0, error
    assert "ignored: patient_nr: its name is that of an identity" in said
    assert "ignored: code: whole numbers that nearly all differ" in said
    assert "column 'leak' predicts the target by itself" in said
    assert "column 'ward' predicts" not in said
    assert "column 'weight': 1 of 300 values are words such as ? or n/a, taken as missing (row 9)" in said
    assert "column 'pulse': a number as -9 or 999 lies far from all others" in said
    assert "column 'grade': a number as" not in said
    assert "bounds of 'age': " in said
    assert "9 persons have more than 29 records" in said
    config = load(tmp_path / "config" / "patients.yaml").experiments["patients"]
    assert config.silos.count == 3
    assert config.preprocess.bounds["age"][1] < 200


def test_names_of_identities_are_told_from_words_that_end_alike(tmp_path):
    ids = ["id", "ID", "patient_nr", "PatientID", "zip_code", "postcode", "ward no", "visitId"]
    words = ["acid", "fluid", "casino", "covid", "kidney", "nitrogen", "GRID"]
    frame = pd.DataFrame({name: np.arange(9) % 4 for name in [*ids, *words, "y"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    guess = guess_schema(tmp_path / "a.csv", Wishes("y"))
    parsed = {name: guess.frame[name].to_numpy(float) for name in guess.schema.columns}
    assert [name for name, _ in identities(parsed, guess.schema)] == ids


def test_ids_that_restart_in_each_centre_are_asked_about():
    """Not where a few persons go to two centres."""
    silo, place = np.repeat([0, 1, 2], 20), np.arange(60)
    schema = Schema("y", dict.fromkeys(("y", "silo", "who"), Column("name")), silo="silo", person="who")

    def asked(person, silo=silo, names=("A", "B", "C")):
        data = Data(np.zeros((60, 1)), np.zeros(60), None, silo=silo, silo_names=names, person=person)
        return restarting(data, schema)

    assert "100% of the ids in column 'who' occur in several silos" in asked(place % 20)
    assert "100% of the ids" in asked(place % 30, place // 30, ("A", "B"))
    assert asked(place // 2 + place % 9 // 8) == ""
    # Of 40 ids 20 are asked about, 19 of 41 are not.
    shared = np.concatenate([np.arange(20), np.arange(20), 20 + np.arange(20)])
    assert "50% of the ids" in asked(shared)
    assert asked(np.where(place == 20, 40, shared)) == ""


@pytest.mark.parametrize(("least", "silos"), [(19, 1), (20, 2)])
def test_a_silo_has_twenty_records(init, least, silos):
    said = init("--silo", "centre", centre=np.where(least > ROW, "Small", "Large"))[1]
    assert f"silos: {silos} with {300 - least if silos == 1 else least} to {300 - least} records" in said
    assert ("1 left out with fewer than 20" in said) == (silos == 1)


@pytest.mark.parametrize(("silos", "read"), [(12, "own"), (13, "rounded")])
def test_up_to_twelve_sizes_of_silos_have_noise_of_their_own(tmp_path, silos, read):
    centre = np.repeat(np.arange(silos), 20 + np.arange(silos))
    pd.DataFrame({"centre": [f"C{c}" for c in centre], "age": np.arange(len(centre)) % 30, "ill": centre % 2}).to_csv(
        tmp_path / "a.csv", index=False
    )
    text = run_file(survey(tmp_path / "a.csv", Wishes("ill", silo="centre")), "a", tmp_path / "a.yaml")
    assert f"readings: {{records: {read}, noise: calibrated}}" in text


@pytest.mark.parametrize(("records", "weak"), [(62, True), (63, False)])
def test_a_delta_is_weak_below_fifty_training_records(init, records, weak):
    said = init("--silo", "centre", centre=np.where(records > ROW, "Small", "Large"))[1]
    assert ("δ is weak in 1 of 2 silos: with 49 training records" in said) == weak


@pytest.mark.parametrize(
    ("records", "different", "refused"),
    [(100, 90, True), (100, 89, False), (51, 51, True), (50, 50, False)],
)
def test_a_whole_number_that_differs_in_nine_tenths_of_fifty_records_numbers_them(records, different, refused):
    schema = Schema("y", {"y": Column("number"), "x": Column("number")})
    values = np.arange(float(records)) % different
    assert [name for name, _ in identities({"x": values}, schema)] == ["x"] * refused
    assert not [*identities({"x": np.append(values[:-1], 0.5)}, schema)]


@pytest.mark.parametrize(
    ("different", "records", "asked"), [(50, 100, False), (51, 102, True), (100, 120, False), (100, 121, True)]
)
def test_ids_that_stand_more_than_six_times_in_five_may_be_persons(different, records, asked):
    frame = pd.DataFrame({"code": [f"P{n % different}" for n in range(records)]})
    assert len([*repeated_ids(frame, {"code": "text"})]) == asked


def test_what_is_called_a_person_is_asked_about_and_a_date_is_not(init):
    persons = dict.fromkeys(("person", "subject", "patientId", "proband_nr"), ROW % 40)
    others = {"inpatient": ROW % 3, "patient": np.where(ROW % 2, "yes", "no")}
    dates = {"seen": pd.date_range("2024-01-01", periods=100).astype(str)[ROW % 100]}
    _, said, _ = init("--silo", "hospital", **persons, **others, **dates)
    asked = [line for line in said.splitlines() if "its values repeat" in line]
    assert [line.split("say --person ")[1] for line in asked] == [*persons]


def test_a_run_file_may_name_columns_in_another_form_of_unicode(init, tmp_path):
    assert (
        init("--silo", "Klinik\u00fc", "--missing", "drop", **{"Klinik\u00fc": HOSPITALS, "d\u00e9bit": ROW % 50})[0]
        == 0
    )
    path = tmp_path / "config" / "patients.yaml"
    wanted = load(path).experiments["patients"]
    path.write_text(unicodedata.normalize("NFD", path.read_text()))
    assert load(path).experiments["patients"] == wanted
    assert "d\u00e9bit" in wanted.preprocess.bounds


def test_every_gap_and_every_wrong_name_is_told_at_once(init):
    gaps = {name: np.where(place == ROW, "", ROW % 7) for place, name in enumerate(("bmi", "crp", "hb"))}
    tiny = {"p": np.where(ROW == 3, "1e-330", ROW / 9)}
    code, _, error = init("--silo", "hospital", "--ignore", "note", **gaps, **tiny)
    wanted = ["row 4, column 'p': ", "row 1, column 'bmi': ", "row 2, column 'crp': ", "row 3, column 'hb': "]
    assert (code, error.count("\n")) == (2, 4)
    assert all(words in line for words, line in zip(wanted, error.splitlines(), strict=True))
    code, _, error = init("--silo", "clinic", "--person", "who")
    assert (code, error.count("\n")) == (2, 1)
    assert "no column is called 'clinic', 'who': must be one of hospital" in error


@pytest.mark.parametrize(("largest", "cut"), [(2.9, False), (3.1, True)])
def test_bounds_leave_out_a_half_percent_at_each_end_that_makes_them_three_times_as_wide(largest, cut):
    values = np.append(np.linspace(0, 1, 999), [largest, np.nan])
    found = outlier(values)
    assert (found is not None) == cut
    if found:
        low, high, beyond = found
        assert (low, high) == pytest.approx((0.005, 0.995), abs=2e-3)
        assert beyond == (values < low).sum() + (values > high).sum() == 10
    assert outlier(np.append(np.zeros(999), largest)) is None, "all but one alike"
    exact = np.repeat([-1.0, 0, 1, 2], [5, 500, 491, 5])
    assert outlier(exact) is None
    assert outlier(np.append(exact[:-1], largest)) == (0, 1, 10)


def test_a_column_right_in_98_of_100_records_is_no_leak_nor_is_one_without_information():
    row, found = np.arange(100), []
    schema = Schema("y", {"y": Column("category", ("no", "yes")), "x": Column("number")})
    for one in range(12):
        y, rare = row % 2, (row == one).astype(int)
        found.append([*leaks({"x": np.where(row == one, 1 - y, y), "y": y}, schema)])
        assert not [*leaks({"x": 0 * row, "y": rare}, schema)]
    # Half of the records are asked: the wrong one is among these 50 or not.
    assert sorted(map(len, found))[:: len(found) - 1] == [0, 1]


def test_small_silos_have_a_weak_delta(init):
    said = init("--silo", "centre", centre=np.where(ROW < 20, "Tiny", "Large"))[1]
    assert "with 16 training records δ = 1/n² = 0.0039 allows" in said


def test_bounds_are_wider_than_the_values_and_never_one_of_them():
    generator = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 7654321.125):
        for _ in range(50):
            values = np.round(generator.normal(generator.normal(), 1, 9) * scale, 3)
            low, high = bounds_around(values)
            assert low < values.min() or low == values.min() == 0
            assert high > values.max()
            assert high - low <= 1.4 * np.ptp(values) + 1e-9
    assert bounds_around(np.array([0.0, 1.0, 1.0])) == (0, 1)
    assert bounds_around(np.array([0.0, 30.0])) == (0, 31)
    for values in ([0.0], [7.0, np.nan], [-1e-30, 2e-30], [1e9, 1e9 + 1e-6], [1e30, 3e30]):
        low, high = bounds_around(np.array(values))
        assert low < np.nanmax(values) < high or low == np.nanmax(values) == 0 < high


def test_the_run_file_quotes_names_that_yaml_would_read_otherwise(init, tmp_path):
    names = ["two words", "it's", 'a "b"', "yes", "1", "# x", "a: b", "null", "[x", "é{{x}}", "back\\slash"]
    columns = {name: ROW % 50 + place for place, name in enumerate(names)}
    code, _, error = init("--silo", "hospital", **columns)
    assert code == 0, error
    config = load(tmp_path / "config" / "patients.yaml").experiments["patients"]
    assert set(config.preprocess.bounds) == {"age", *names}
    assert [name_of(Path(name)) for name in ("a b.csv.gz", "Ö.csv")] == ["a_b", "mine"]


def test_one_mark_for_decimals_and_thousands_is_refused_in_a_run_file(init, tmp_path):
    """As on the command line: values would be ten times too large without a word."""
    init("--silo", "hospital")
    path = tmp_path / "config" / "patients.yaml"
    path.write_text(path.read_text().replace('thousands: ""', 'thousands: "."'))
    with pytest.raises(ConfigError, match=r"dataset\.form: .*: decimal and thousands must be two different marks"):
        load(path)


@pytest.mark.parametrize("name", ["no", "null", "2023", "007", "12_30", "1e5", "true"])
def test_a_file_may_be_called_as_what_yaml_reads_otherwise(init, tmp_path, name):
    pd.DataFrame(COLUMNS).to_csv(f"{name}.csv", index=False)
    assert main(["init", f"{name}.csv", "--target", "readmitted", "--silo", "hospital"]) == 0
    found = load(tmp_path / "config" / f"{name}.yaml")
    assert found.run.run == name
    assert list(found.experiments) == [name]


@pytest.mark.parametrize(
    ("codes", "marks"),
    [
        ([-9], ["-9"]),
        ([888, 999], ["888", "999"]),
        ([-99, 999], ["-99", "999"]),
        ([77.0], ["77"]),
        ([9], []),
        ([66], []),
    ],
)
def test_numbers_of_one_digit_that_stand_alone_far_away_may_mean_missing(codes, marks):
    values = np.concatenate([np.repeat(codes, 5), 5 + np.arange(40) % 20])
    assert sorted(missing_marks(values.astype(float)), key=float) == marks
    assert missing_marks(np.append(5.0 + np.arange(40) % 20, 999.0)) == [], "it stands once"
    # An age of 99 beside one of 98 is none.
    assert missing_marks(np.repeat(np.arange(20.0, 100.0), 2)) == []


def test_marks_of_missing_values_ids_that_repeat_and_emptied_silos_are_noted(init):
    bmi = np.where(HOSPITALS == "South", "", (20 + ROW % 15).astype(str))
    code, said, _ = init(
        *("--silo", "hospital", "--missing", "drop"),
        age=np.where(ROW % 20 == 0, -9, 20 + ROW % 60),
        patient=[f"P{n // 3:04}" for n in ROW],
        bmi=bmi,
    )
    assert code == 0
    assert "note: column 'age': a number as -9 or 999 lies far from all others" in said
    assert "note: column 'patient': its values repeat: where they name persons, say --person patient" in said
    assert "note: silo 'South' has no record without a missing value, and is left out" in said
    assert "'North'" not in said
    assert "say --person" not in init("--silo", "hospital", "--output", "b.yaml", patient=[f"P{n}" for n in ROW])[1]


def test_every_fault_of_a_file_is_a_line(init):
    code, _, error = init(dose=[f"{n} mg" for n in ROW], bmi=["?!" if n == 40 else str(20 + n) for n in ROW])
    assert code == 2
    assert [line.split("column ")[1].split(":")[0] for line in error.splitlines()] == ["'bmi'", "'dose'"]
    assert all(line.startswith("silodp init: patients.csv: row ") for line in error.splitlines())
