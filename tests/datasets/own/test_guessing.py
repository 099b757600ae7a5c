"""Files as people have them: read right, or refused with row and column and all that is wrong."""

import csv
import gzip
import unicodedata

import numpy as np
import pandas as pd
import pytest

from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.guessing import Wishes, guess_schema
from silodp.datasets.own.parsing import read_table
from silodp.datasets.own.schema import Column, Form, TableError

I = np.arange(120)
COLUMNS = {"site": [f"S{i % 4}" for i in I], "age": 20 + I % 60, "outcome": I % 2}


@pytest.fixture
def found(tmp_path):
    """The guess of a file with these columns beside `COLUMNS`, and its records."""

    def one(name="a.csv", text=None, wishes=None, **columns):
        frame, path = pd.DataFrame(COLUMNS | columns), tmp_path / name
        if name.endswith(".parquet"):
            frame.to_parquet(path, index=False)
        else:
            data = (frame.to_csv(index=False) if text is None else text).encode()
            path.write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
        guess = guess_schema(path, Wishes("outcome", silo="site", **(wishes or {})))
        return guess, read_records(path, guess.schema, guess.frame)[0]

    return one


def column(data, name):
    return data.x[:, data.feature_names.index(name)]


@pytest.mark.parametrize(
    "values",
    [1_700_000_000.0 + I, 1e-42 * (1 + I), 16_777_217.0 + I],
    ids=["seconds since 1970", "tiny", "beyond float32's whole numbers"],
)
def test_numbers_keep_their_digits_until_their_bounds_are_taken_off(found, values):
    np.testing.assert_array_equal(column(found(value=values)[1], "value"), values)


@pytest.mark.parametrize("cell", ["1e-330", "-0.5e-310", "0.0003E-320"])
def test_a_number_too_small_for_a_float_is_refused_and_zero_is_none(found, cell):
    cells = ["0", "0.000", *map(str, I[2:])]
    assert column(found(p=cells)[1], "p")[1] == 0
    assert column(found(p=["2.2250738585072014e-308", *cells[1:]])[1], "p")[0] == np.finfo(float).tiny
    with pytest.raises(TableError, match=r"row 8, column 'p': .*: a number too small for float64"):
        found(p=[*cells[:7], cell, *cells[8:]])


@pytest.mark.parametrize(
    ("ids", "row"),
    [(1e16 + 2 * I, 1), (np.float32(2**24) + 2 * I.astype(np.float32), 1), (np.append(I[1:], 2.0**53), 120)],
)
@pytest.mark.parametrize("role", [{"person": "who"}, {"types": {"who": "category"}}])
def test_ids_that_a_float_has_rounded_are_refused(found, ids, row, role):
    with pytest.raises(TableError, match=f"row {row}, column 'who': .*: several may have become one"):
        found("a.parquet", wishes=role, who=ids)
    assert found("a.parquet", wishes=role, who=I % 12)


def test_a_persons_id_with_an_exponent_is_refused_in_text(found):
    with pytest.raises(TableError, match=r"row 1, column 'who': '9.9999999999999999a\+99'"):
        found(wishes={"person": "who"}, who=[f"{1.2345678901234567e16 + 2 * (i // 2)}" for i in I])
    assert len(np.unique(found(wishes={"person": "who"}, who=[str(10**16 + i // 2) for i in I])[1].person)) == 60


def test_a_number_as_R_writes_it_among_whole_numbers_is_a_number_and_a_code_is_none(found):
    cells = ["1e+05", "75000", "125000", "5E+4", "3e5"]
    assert column(found(cost=cells * 24)[1], "cost")[:5].tolist() == [1e5, 75000, 125000, 5e4, 3e5]
    guess, data = found(outcome=cells * 24)
    assert (data.classes, guess.notes) == (5, [])
    for codes in (["1E1", "1E2", "10"], ["73928e03", "4e872096", "10"]):
        assert found(code=codes * 40)[0].schema.columns["code"].type == "category"


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_zero_with_a_minus_is_zero(found, name):
    classes = np.where(I % 2 == 0, 0.0, 1.0) * np.where(I % 4 == 0, -1, 1)
    guess, data = found(name, outcome=classes, dose=-classes, wishes={"types": {"dose": "category"}})
    assert guess.schema.classes == ("0.0", "1.0")
    assert data.y.tolist() == (I % 2).tolist()
    assert not [value for value in guess.schema.columns["dose"].values if value.startswith("-0")]


@pytest.mark.parametrize(
    "cells", [["\u22120.0", "0.0", "+0.0", "1.0"], ["-0", "+0", "\u22120", "0", "1"], ["\u22121", "1"]]
)
def test_a_target_of_zeros_with_signs_has_two_classes(found, cells):
    assert found(outcome=(cells * 60)[:120])[1].classes == 2


UNITS = {
    "few, a blank": [f"{i % 4} mg" for i in I],
    "many": [f"{50 + i / 10} kg" for i in I],
    "units that differ": [f"{i % 4} {'mg' if i % 3 else 'g'}" for i in I],
    "no blank": [f"{50 + i}kg" for i in I],
    "beside bare numbers": [f"{50 + i} kg" if i % 3 else f"{50 + i}" for i in I],
    "a power": [f"{i % 60} x 10^9/L" for i in I],
    "an exponent": [f"{i % 4 + 1}e3 /ul" for i in I],
    "a long word": [f"{i % 60} milligrams/deciliter" for i in I],
    "two numbers": [f"{120 + i % 20}/{70 + i % 10} mmHg" for i in I],
}


@pytest.mark.parametrize("cells", UNITS.values(), ids=UNITS)
def test_a_number_with_its_unit_is_refused_with_row_and_column(found, cells):
    for name in ("dose", "outcome"):
        with pytest.raises(
            TableError, match=rf"row [12], column '{name}': .*--type {name}=category|a word in a column"
        ):
            found(**{name: cells})
    if len(set(cells)) < 10:
        assert found(dose=cells, wishes={"types": {"dose": "category"}})


@pytest.mark.parametrize("codes", [["0A", "01", "12"], ["1st", "2nd", "3rd"], ["Ward 1", "Ward 2", "Ward 3"]])
def test_codes_with_letters_are_categories(found, codes):
    assert found(ward=codes * 40)[0].schema.columns["ward"].type == "category"


@pytest.mark.parametrize("many", [3, 100])
def test_a_value_below_a_limit_is_refused_with_each_way_out_and_what_it_loses(found, many):
    cells = [str(1 + i % many) if i > 5 else "<0.5" for i in I]
    with pytest.raises(TableError, match=r"row 1, column 'crp'.*the limit or half of it, .*which loses.*which loses"):
        found(crp=cells)


def test_a_first_column_without_a_name_is_left_out(found, tmp_path):
    frame = pd.DataFrame(COLUMNS)
    for text in (
        frame.to_csv(),
        frame.to_csv().replace(",site", '"",site', 1),
        # Names of rows as R has them, between commas only in quotes.
        frame.to_csv(sep="\t").removeprefix("\t"),
        frame.set_index((I + 1).astype(str)).to_csv(quoting=csv.QUOTE_NONNUMERIC).removeprefix('"",'),
    ):
        guess, data = found(text=text)
        assert guess.notes == ["a first column without a name is left out, as an index of rows"]
        assert data.feature_names == ("age",)
    assert list(read_table(tmp_path / "a.csv", Form())) == ["site", "age", "outcome"]


def test_a_separator_may_stand_once_more_in_rows_than_in_names(found):
    """Rows with their names, as R writes them; the header has as many commas as semicolons."""
    rows = "\n".join(f"{i};S{i % 4};{20 + i % 60};{i % 2}" for i in I)
    guess, data = found(text=f"site;age, in, years;outcome\n{rows}\n")
    assert guess.schema.form.separator == ";"
    np.testing.assert_array_equal(column(data, "age, in, years"), 20 + I % 60)


@pytest.mark.parametrize(("rare", "kept"), [(9, ("a", "b")), (10, ("a", "b", "c"))])
def test_a_category_has_ten_records(found, rare, kept):
    words = np.where(rare > I, "c", np.where(I % 2, "b", "a"))
    assert found(ward=words)[0].schema.columns["ward"] == Column("category", kept)
    assert found(ward=np.where(rare > I, "c", "a"))[0].schema.columns["ward"].type == (
        "category" if rare < 10 else "boolean"
    )


@pytest.mark.parametrize("words", [1, 2, 3])
def test_what_is_said_to_be_a_boolean_has_two_words_however_rare(found, words):
    column = np.array(["yes", "no", "maybe"])[np.where(I < 3, I % words, 0)]
    wishes = {"types": {"smoker": "boolean"}}
    if words == 2:
        assert found(smoker=column, wishes=wishes)[0].schema.columns["smoker"] == Column("boolean", ("no", "yes"))
        return
    with pytest.raises(TableError, match=f"column 'smoker': {words} different words: a boolean must have two"):
        found(smoker=column, wishes=wishes)


def test_a_column_has_fifty_words_and_a_target_twenty_classes(found):
    words = [f"w{i % 50}" for i in np.arange(1000)]
    assert found(ward=["other", *words[1:120]])[0].refused == {"ward": "text with more than 50 different values"}
    assert found(ward=words[:120])[0].refused == {"ward": "no category with 10 records"}
    for many in (20, 21):
        classes = found(outcome=I % many)[1].classes
        assert classes == (20 if many == 20 else None)
    assert found(outcome=words[:120])[1].classes == 50
    with pytest.raises(TableError, match="column 'outcome': 51 different values: must be at most 50 classes"):
        found(outcome=[f"w{i % 51}" for i in I])


@pytest.mark.parametrize(("notes", "told"), [(5, r"row 116 is no record .*\(--last-row 115\)"), (6, "a word in")])
def test_up_to_five_words_below_the_numbers_are_notes(found, notes, told):
    with pytest.raises(TableError, match=told):
        found(bmi=[f"{20 + i}" if i < 120 - notes else "Zz" for i in I])


@pytest.mark.parametrize(
    ("numbers", "words", "mixed"), [(49, 1, False), (50, 1, True), (30, 30, False), (31, 30, True)]
)
def test_words_among_numbers_are_a_fault_where_these_are_more_and_all_are_too_many_for_categories(
    found, numbers, words, mixed
):
    cells = [*(f"w{'a' * i}" for i in range(words)), *map(str, range(numbers))]
    column = [cells[i % len(cells)] for i in I]
    if not mixed:
        assert "ward" in found(ward=column)[0].refused
        return
    with pytest.raises(TableError, match=r"column 'ward': .*a word in a column of numbers"):
        found(ward=column)


def test_a_name_too_few_is_no_index_where_the_first_cells_repeat(found):
    with pytest.raises(TableError, match=r"line 1 has a name less than the rows, .*: line 1 must name every"):
        found(text="site;dose;outcome\n" + "S0;1;5;0\nS1;2;5;1\n" * 20)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", ["P00{}", "{}", '"P00{}"'])
@pytest.mark.parametrize(
    ("cell", "outcome"), [("21,7", "1"), ("1,234", "1"), ("-1,5", "1"), ("Fracture, closed", "1"), ("21,7", "")]
)
def test_a_cell_with_a_comma_makes_no_column_names_of_rows(tmp_path, rows, cell, name, outcome):
    lines = [f"{name.format(row + 1)},{cell},{20 + row},S1,{outcome}\n" for row in range(rows)]
    (tmp_path / "a.csv").write_text("id,bmi,age,site,outcome\n" + "".join(lines))
    with pytest.raises(TableError, match="names of rows or a cell with a separator, as 1,5: line 1 must name every"):
        read_table(tmp_path / "a.csv", Form())


@pytest.mark.parametrize("name", ["A.CSV", "a.CSV.gz", "a.csv.GZ", "a.Txt"])
def test_a_suffix_may_be_in_capitals(found, name):
    assert found(name)[1].feature_names == ("age",)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("file", ["a.csv", "a.parquet"])
def test_an_accent_may_be_typed_as_one_letter_or_two(found, form, file):
    guess, _ = found(file, **{unicodedata.normalize(form, "température"): I % 30})
    assert "temp\u00e9rature" in guess.schema.numbers


def test_all_faults_of_a_file_are_told_at_once(found, tmp_path):
    text = pd.DataFrame(
        COLUMNS
        | {"bmi": [f"{20 + i / 10}" if i - 5 else "k.A." for i in I]}
        | {"crp": [f"{1 + i}" if i - 7 else "<0.5" for i in I]}
        | {"dose": [f"{i} mg" for i in I], "Gr\u00f6\u00dfe": I % 7, "smoker": ["", *["yes", "no"] * 59, "no"]}
    ).to_csv(index=False)
    (tmp_path / "a.csv").write_bytes(text.encode("cp1252"))
    with pytest.raises(TableError) as error:
        guess_schema(tmp_path / "a.csv", Wishes("outcome", silo="site"))
    wanted = ["--encoding", "column 'bmi'", "column 'crp'", "column 'dose'", "missing in 'smoker' (1 of 120)"]
    lines = str(error.value).split("\n")
    assert len(lines) == len(wanted)
    for line, words in zip(lines, wanted, strict=True):
        assert words in line
        assert line.startswith(str(tmp_path / "a.csv"))
