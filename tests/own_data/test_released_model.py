"""A released model predicts a record alike, alone and among others, by the schema that it holds."""

from pathlib import Path

import numpy as np
import pandas as pd
import patients
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import silodp
from silodp.cli import main
from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.schema import Column, Schema, TableError
from silodp.own_data.released_model import ReleasedModel, load_model


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    patients.write_records(tmp_path / "patients.csv")
    return tmp_path


PATIENTS = {"age": Column("number"), "smoker": Column("boolean", ("no", "yes")), "hospital": Column("ignored")}
PATIENTS |= {"readmitted": Column("category", ("no", "yes"))}
WARDS = {"ward": Column("category", ("01", "02", "0A")), "smoker": Column("boolean", ("no", "yes"))}
SCHEMA = Schema("y", {**WARDS, "age": Column("number"), "y": Column("category", ("no", "yes"))}, silo="hospital")
ABOUT = {"model": {"name": "logistic"}, "bounds": {"age": [0, 120]}, "constant_column": True}


def test_predictions_are_those_of_the_model_and_unseen_categories_are_counted(folder, capsys):
    place = "model.npz"
    ReleasedModel(np.array([0.5, -1.0, 0.25]), ABOUT, Schema("readmitted", PATIENTS)).save(folder / place)
    frame = pd.read_csv("patients.csv")
    model = silodp.load_model(place)
    table = model.predict(frame)
    assert table["P(no)"].to_numpy() + table["P(yes)"].to_numpy() == pytest.approx(np.ones(100))
    x = np.column_stack([2 * frame["age"] / 120 - 1, frame["smoker"] == "yes", np.ones(100)])
    wanted = 1 / (1 + np.exp(-x @ model.weights))
    np.testing.assert_allclose(table["P(yes)"], wanted, atol=1e-12)
    assert ((table["predicted"] == "yes") == (wanted > 0.5)).all()
    frame.loc[:4, "smoker"] = "sometimes"
    frame.to_csv("new.csv", index=False)
    assert main(["predict", place, "new.csv", "--output", "out.csv"]) == 0
    assert "column 'smoker': 5 of 100 values are unknown to the model" in capsys.readouterr().err
    assert pd.read_csv("out.csv")["predicted"].isna().sum() == 5
    frame.drop(columns="age").to_csv("new.csv", index=False)
    assert main(["predict", place, "new.csv", "--output", "out.csv"]) == 2
    assert "new.csv: column 'age': missing" in capsys.readouterr().err
    assert main(["predict", "patients.csv", "new.csv", "--output", "out.csv"]) != 0


def test_a_row_gives_the_same_alone_and_among_others(tmp_path):
    """Only features are needed, and a saved model reads as the one in memory."""
    ReleasedModel(np.arange(1.0, 7.0), ABOUT, SCHEMA).save(tmp_path / "model.npz")
    model, rows = load_model(tmp_path / "model.npz"), ["01,no,50", "02,yes,50", "0A,no,70", "1,yes,50"]
    assert model.schema == SCHEMA

    def predicted(*rows, unknown="empty"):
        (tmp_path / "new.csv").write_text("ward,smoker,age\n" + "\n".join(rows) + "\n")
        return model.predict(model.read_records(tmp_path / "new.csv"), unknown)

    whole = predicted(*rows)
    for text in (
        "age,smoker,ward\n50,no,01\n",
        "\ufeffward,smoker,age\r\n01,no,50",
        'ward , smoker, age,z\n"01", no,50,\n',
    ):
        (tmp_path / "new.csv").write_text(text)
        found = model.predict(model.read_records(tmp_path / "new.csv"))
        np.testing.assert_allclose(found["P(yes)"], whole["P(yes)"][[0]], rtol=1e-12)
    for place, row in enumerate(rows):
        np.testing.assert_allclose(predicted(row)["P(yes)"], whole["P(yes)"][[place]], rtol=1e-12)
    assert whole["predicted"].isna().tolist() == [False, False, False, True]
    assert whole.attrs["unknown"] == {"ward": 1}
    zero = predicted("1,yes,50", "01,perhaps,50", unknown="zero")
    assert zero["predicted"].isna().tolist() == [False, True]
    assert zero["P(yes)"][0] == pytest.approx(1 / (1 + np.exp(-(4 + 5 * (2 * 50 / 120 - 1) + 6))))


def test_an_index_is_left_out_with_a_note_and_an_accent_may_be_two_letters(folder, capsys):
    schema = Schema("y", {"d\u00e9bit": Column("number"), "y": Column("category", ("no", "yes"))})
    model = ReleasedModel(np.array([1.0, 2.0]), ABOUT | {"bounds": {"d\u00e9bit": [0, 9]}}, schema)
    model.save(folder / "model.npz")
    frame = pd.DataFrame({"de\u0301bit": [1, 5]})
    frame.to_csv("new.csv")
    assert main(["predict", "model.npz", "new.csv", "--output", "out.csv"]) == 0
    assert "new.csv: a first column without a name is left out, as an index of rows" in capsys.readouterr().err
    assert pd.read_csv("out.csv")["P(yes)"].tolist() == pytest.approx(model.predict(frame)["P(yes)"].tolist())


def test_a_row_at_fault_is_counted_among_those_that_are_given(tmp_path):
    model = ReleasedModel(np.arange(1.0, 7.0), ABOUT, SCHEMA)
    (tmp_path / "new.csv").write_text("ward,smoker,age\n01,no,50\n01,no,50\n01,no,old\n")
    with pytest.raises(TableError, match="row 2, column 'age'"):
        model.predict(model.read_records(tmp_path / "new.csv").iloc[1:])


CLASSES = {"linear": (), "logistic": ("no", "yes"), "softmax": ("a", "b", "c")}


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(CLASSES)), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_every_answer_is_that_of_the_formula(name, constant, bounded, seed):
    """Of numbers within, beyond and on their bounds and of none, of words, and of a target with bounds or without."""
    rng, n, classes = np.random.default_rng(seed), 12, CLASSES[name]
    columns = {"age": Column("number"), **WARDS, "y": Column("category", classes) if classes else Column("number")}
    bounds = {"age": [10.0, 60.0]} | ({} if classes or not bounded else {"y": [-4.0, 20.0]})
    width, outs = 5 + constant, len(classes) if name == "softmax" else 1
    w = rng.normal(size=width * outs + (outs if name == "softmax" else 0))
    about = {"model": {"name": name}, "bounds": bounds, "constant_column": constant}
    frame = pd.DataFrame(
        {
            "age": rng.permutation(["", "10", "60", "35", *map(str, rng.integers(0, 80, n - 4))]),
            "ward": rng.choice(WARDS["ward"].values, n),
            "smoker": rng.choice(["no", "yes"], n),
        }
    )
    found = ReleasedModel(w, about, Schema("y", columns, missing="mean")).predict(frame)
    for row in frame.assign(**found).to_dict("records"):
        age = 0.0 if row["age"] == "" else 2 * (min(max(float(row["age"]), 10), 60) - 10) / 50 - 1
        wards = [float(row["ward"] == one) for one in WARDS["ward"].values]
        x = np.array([age, *wards, float(row["smoker"] == "yes"), *[1.0] * constant])
        if not classes:
            value = w @ x
            assert row["predicted"] == pytest.approx(-4 + (value + 1) * 12 if bounded else value)
            continue
        said = [0.0, w @ x] if name == "logistic" else w[: 3 * width].reshape(3, width) @ x + w[3 * width :]
        p = np.exp(said) / np.exp(said).sum()
        assert [row[f"P({one})"] for one in classes] == pytest.approx(p)
        assert row["predicted"] == classes[int(np.argmax(p))]
    cut = [place + 1 for place, age in enumerate(frame["age"]) if age and not 10 <= float(age) <= 60]
    assert found.attrs["cut"] == ({"age": cut} if cut else {})


@pytest.mark.parametrize("cells", [["1.5", "", "-1e60"], ["1.5", "", "1e400"], [1.5, np.nan, np.inf]])
def test_a_number_that_float32_does_not_hold_is_refused_in_training_and_in_prediction(cells):
    """Bounds would cut it in prediction alone."""
    schema = Schema("y", {"age": Column("number"), "y": Column("category", ("0", "1"))}, missing="drop")
    frame = pd.DataFrame({"age": cells, "y": ["0", "1", "1"]})
    model = ReleasedModel(np.ones(2), ABOUT, schema)
    for reading in (lambda: read_records(Path("a"), schema, frame), lambda: model.predict(frame)):
        with pytest.raises(TableError, match=r"row 3, column 'age': '[-.9ae]+': a number too large for float32"):
            reading()


def test_a_model_predicts_a_file_in_another_form_and_of_one_column(folder, capsys):
    """A federation's model does not know how its silos write their files."""
    schema = Schema("y", {"age": Column("number"), "y": Column("category", ("no", "yes"))})
    ReleasedModel(np.array([0.5, -1.0]), ABOUT, schema).save(folder / "model.npz")
    words = ["predict", "model.npz", "new.csv", "--output", "out.csv"]
    for text, form in (
        ("age\n1200\n40.5\n", []),
        ("age;z\n1.200;a\n40,5;b\n", ["--separator", ";", "--decimal", ",", "--thousands", "."]),
    ):
        (folder / "new.csv").write_text(text)
        assert main([*words, *form]) == 0
        wanted = 1 / (1 + np.exp(-(0.5 * np.array([1.0, 2 * 40.5 / 120 - 1]) - 1)))
        np.testing.assert_allclose(pd.read_csv("out.csv")["P(yes)"], wanted, rtol=1e-9)
    capsys.readouterr()
    assert main(words) == 2
    assert "new.csv: " in (error := capsys.readouterr().err)
    assert error.count("\n") == 1


def test_a_number_beyond_its_bounds_is_told_by_column_and_row(folder, capsys):
    ReleasedModel(np.array([0.5, -1.0, 0.25]), ABOUT, Schema("readmitted", PATIENTS)).save(folder / "model.npz")
    frame = pd.DataFrame({"age": ["50", "1000", "120", "-1"], "smoker": "no"})
    # An index without a name, as pandas writes it, is left out.
    frame.to_csv("new.csv")
    assert main(["predict", "model.npz", "new.csv", "--output", "out.csv"]) == 0
    assert (
        "column 'age': 2 of 4 values are beyond the model's bounds, and are cut (row 2, 4)" in capsys.readouterr().err
    )
    found = pd.read_csv("out.csv")["P(yes)"]
    assert found[1] == found[2]


def test_a_header_that_is_one_name_asks_for_the_separator(folder, capsys):
    ReleasedModel(np.array([0.5, -1.0, 0.25]), ABOUT, Schema("readmitted", PATIENTS)).save(folder / "model.npz")
    (folder / "new.csv").write_text("age;smoker\n50;no\n")
    assert main(["predict", "model.npz", "new.csv", "--output", "out.csv"]) == 2
    assert "missing: must be one of age;smoker (or --separator be given)" in capsys.readouterr().err


def test_seconds_since_1970_are_told_apart_within_narrow_bounds():
    start = 1_700_000_000
    schema = Schema("y", {"seconds": Column("number"), "y": Column("category", ("no", "yes"))})
    about = ABOUT | {"bounds": {"seconds": [start, start + 64]}}
    frame = pd.DataFrame({"seconds": [str(start + second) for second in range(65)]})
    found = ReleasedModel(np.array([1.0, 0.0]), about, schema).predict(frame)["P(yes)"]
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-(2 * np.arange(65) / 64 - 1))), rtol=1e-9)
