"""Files of one's own: what is inferred, and one line for whatever cannot be used."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.guessing import Wishes, guess_schema
from silodp.datasets.own.schema import Column, Schema, TableError

RECORDS = 60


def patients(**changes) -> pd.DataFrame:
    """Two hospitals, a number, two and three categories, one of them rare, two classes."""
    i = np.arange(RECORDS)
    columns = {
        "hospital": np.where(i % 3 == 0, "North", "South"),
        "age": 20.0 + i,
        "smoker": np.where(i % 2 == 0, "yes", "no"),
        "ward": np.where(i == 7, "rare", np.where(i < 30, "A", "B")),
        "readmitted": np.where(i % 4 == 0, "yes", "no"),
    }
    return pd.DataFrame({name: value for name, value in (columns | changes).items() if value is not None})


@pytest.fixture
def read(tmp_path):
    def one(frame, name="patients.csv", text=None, **said):
        path = tmp_path / name
        if text is not None:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        elif path.suffix == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False)
        return read_guessed(path, **{"target": "readmitted", "silo": "hospital"} | said)

    return one


def read_guessed(path, target, **said):
    """Records by the schema that is guessed, names of numbers, and records dropped."""
    guess = guess_schema(path, Wishes(target, **said))
    for name, why in guess.refused.items():
        raise TableError(f"{path}: column {name!r}: {why}")
    data, dropped = read_records(path, guess.schema)
    return data, guess.schema.numbers, dropped


def test_numbers_categories_classes_and_silos_are_inferred(read):
    data, numbers, dropped = read(patients())
    assert data.feature_names == ("age", "smoker=yes", "ward=A", "ward=B")
    assert (numbers, dropped) == (("age",), 0)
    assert data.x[0].tolist() == [20, 1, 1, 0]
    # A category of few records has no column: its name would tell of them.
    assert data.x[7].tolist() == [27, 0, 0, 0]
    assert (data.classes, data.class_names, data.y[:5].tolist()) == (2, ("no", "yes"), [1, 0, 0, 0, 1])
    assert data.silo[:4].tolist() == [0, 1, 1, 0]


def test_other_forms_of_the_file_give_the_same_records(read):
    frame = patients(hospital=np.where(np.arange(RECORDS) % 3 == 0, "Süd", "Nord"))
    wanted, text = read(frame)[0], frame.to_csv(index=False)
    for found, _, _ in (
        read(frame, "a.parquet"),
        read(frame.astype({"age": np.float16}), "b.parquet"),
        read(frame, "a.txt", text.replace(",", ";")),
        read(frame, "a.csv", text.encode("latin-1"), form={"encoding": "latin-1"}),
        read(frame, "a.csv.gz", gzip.compress(text.encode())),
    ):
        assert found.feature_names == wanted.feature_names
        np.testing.assert_array_equal(found.x, wanted.x)
        np.testing.assert_array_equal(found.silo, wanted.silo)


def test_a_target_of_numbers_is_a_regression_unless_told(read):
    i = np.arange(RECORDS)
    assert read(patients(readmitted=1.5 * i))[0].classes is None
    assert read(patients(readmitted=i))[0].classes is None
    assert read(patients(readmitted=i % 5))[0].classes == 5
    assert read(patients(readmitted=i % 5), task="regression")[0].classes is None


def test_the_order_of_records_changes_no_code(read):
    straight, turned = read(patients())[0], read(patients()[::-1])[0]
    np.testing.assert_array_equal(straight.x, turned.x[::-1])
    np.testing.assert_array_equal(straight.silo, turned.silo[::-1])
    np.testing.assert_array_equal(straight.y, turned.y[::-1])


def test_missing_values_are_refused_dropped_or_left_to_be_filled(read):
    frame = patients()
    frame.loc[4, "age"], frame.loc[9, "ward"] = np.nan, ""
    with pytest.raises(
        TableError, match=r"row 5, column 'age': missing, as in 1 of 60: must be filled in, or `missing`"
    ):
        read(frame)
    data, _, dropped = read(frame, missing="drop")
    assert (len(data.y), dropped) == (RECORDS - 2, 2)
    data, _, dropped = read(frame, missing="mean")
    assert (len(data.y), dropped) == (RECORDS, 0)
    assert np.isnan(data.x[4, 0])
    assert data.x[9, 2:].tolist() == [0, 0]
    frame.loc[11, "readmitted"] = ""
    with pytest.raises(TableError, match="row 12, column 'readmitted': missing"):
        read(frame, missing="mean")


SECRET = "Zz-secret-7"
HEADER = "hospital,age,readmitted\n"
WRONG = {
    "text": (patients(note=[f"{SECRET} {i}" for i in range(RECORDS)]), {}, "column 'note': text with more than 50"),
    "date": (patients(seen=pd.date_range("2020", periods=RECORDS).astype(str)), {}, "column 'seen': dates or times"),
    "constant": (patients(note=SECRET), {}, "column 'note': the same value in every record"),
    "one class": (patients(readmitted=SECRET), {}, "column 'readmitted': the same value in every record"),
    "lonely class": (patients(readmitted=[SECRET] + ["no"] * 30 + ["yes"] * 29), {}, "a class of one record"),
    "no target": (patients(readmitted=None), {}, "no column is called 'readmitted': must be one of hospital, age"),
    "wrong ignore": (patients(), {"ignore": ("aeg",)}, "no column is called 'aeg'"),
    "words": (patients(), {"task": "regression"}, "column 'readmitted': not numbers"),
    "infinite": (
        patients(age=[np.inf] + [1.0] * 59),
        {},
        "row 1 is no number in columns age: must be units (--units-row)",
    ),
    "duplicate": ("hospital,age,age,readmitted\n" + "N,1,2,yes\n" * 9, {}, "column 'age' is named more than once"),
    "short row": (HEADER + "N,1,yes\nN,2,no\n" * 9 + "N,3\n", {}, "row 19, column 'readmitted': missing"),
    "long row": (HEADER + f"N,1,yes\nN,1,yes,{SECRET}\n", {}, "Expected 3 fields in line 3, saw 4"),
    "long rows": (HEADER + f"N,1,yes,{SECRET}\n" * 9, {}, "line 1 has a name less than the rows"),
    "long name": ('hospital,"a\nge",readmitted\n' + "N,1,yes\n" * 9, {}, "name of column 2: must be given, printable"),
    "silo is target": (patients(), {"silo": "readmitted"}, "target, silo and person must be different columns"),
    "one target": (patients(readmitted=3.5), {"task": "regression"}, "the same value in every record: must differ"),
    "no name": ("hospital,,readmitted\nN,1,yes\n", {}, "name of column 2: must be given"),
    "empty": (HEADER, {}, "no records below its header"),
    "nothing": ("", {}, "must be text with one record a line"),
    "one column": ("age\n1\n", {}, "one column: must be a table"),
    "bytes": (
        b"hospital,age,readmitted\nN\xff\xfe,1,yes\n" + b"N,1,yes\nN,2,no\n" * 9,
        {},
        "row 1: not text in utf-8: the encoding must be given",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_used_is_a_line_each_without_a_cell(read, case):
    given, said, wanted = WRONG[case]
    frame, text = (given, None) if isinstance(given, pd.DataFrame) else (None, given)
    with pytest.raises(TableError) as error:
        read(frame, text=text, **said)
    lines = str(error.value).splitlines()
    assert sum(wanted in line for line in lines) == 1
    assert all("patients.csv" in line for line in lines)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("column", ["readmitted", "smoker"])
def test_a_word_that_classes_or_a_boolean_do_not_have_is_refused_by_its_row(column):
    """Of a category with more values it is 0 in all their columns."""
    frame = patients(age=None, hospital=None)
    kinds = {"smoker": "boolean", "ward": "category", "readmitted": "category"}
    words = {"smoker": ("no", "yes"), "ward": ("A", "B"), "readmitted": ("no", "yes")}
    schema = Schema("readmitted", {name: Column(kind, words[name]) for name, kind in kinds.items()})
    assert read_records(Path("a.csv"), schema, frame)[0].x[7].tolist() == [0, 0, 0]
    frame.loc[3, column] = "maybe"
    with pytest.raises(TableError, match=f"row 4, column '{column}': .*no value of the schema: must be one of the 2"):
        read_records(Path("a.csv"), schema, frame)


def test_stray_words_between_numbers_are_missing_and_categories_stay(read):
    frame = patients(age=[" ? ", "n/a", *map(str, range(58))], ward=["unknown"] * 30 + ["A"] * 30)
    data = read(frame, missing="mean")[0]
    assert np.isnan(data.x[:2, 0]).all()
    assert data.x[2, 0] == 0
    assert "ward=unknown" in data.feature_names


def test_lists_are_no_feature_and_no_target(tmp_path):
    path = tmp_path / "a.parquet"
    patients(scan=[[1.0, 2.0]] * RECORDS).to_parquet(path)
    with pytest.raises(TableError, match="column 'scan': neither numbers nor words"):
        read_guessed(path, "readmitted")
    with pytest.raises(TableError, match="column 'scan': neither numbers nor words: must hold"):
        read_guessed(path, "scan")
    assert len(read_guessed(path, "readmitted", ignore=("scan",))[0].y) == RECORDS


def test_a_file_that_is_not_there_or_no_table_is_one_line(tmp_path):
    for name, wanted in (("a.csv", "no such file"), ("a.xlsx", "must end in"), ("a.parquet", "not a Parquet file")):
        if "such" not in wanted:
            (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(TableError, match=wanted):
            read_guessed(Path(tmp_path / name), "y")


def test_a_column_that_is_numbers_in_its_first_megabyte_only_is_words(read):
    rows = 120_000
    frame = pd.DataFrame({"hospital": "N", "age": np.arange(rows) % 7, "code": 7, "readmitted": np.arange(rows) % 2})
    frame = frame.astype({"code": object})
    frame.loc[rows - 20 :, "code"] = "late"
    data, numbers, _ = read(frame)
    assert numbers == ("age",)
    assert data.feature_names == ("age", "code=late")
