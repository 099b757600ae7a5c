"""Reading by a schema: what is guessed from inputs that were read wrongly, and that a row's reading is its own."""

import hashlib
import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from silodp.datasets import DATASETS
from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.guessing import Wishes, guess_schema
from silodp.datasets.own.parsing import parse_column, read_table
from silodp.datasets.own.schema import Column, Form, Schema, TableError, cell_shape, schema_from, sorted_names

N = 60
I = np.arange(N)
COLUMNS = {"site": [f"H{i % 3}" for i in I], "age": 20 + I % 30, "outcome": I % 2}


def cycled(*words):
    return [words[i % len(words)] for i in I]


@pytest.fixture
def guessed(tmp_path):
    """The guess and the records of a file with these columns beside those of `COLUMNS`."""

    def one(text=None, separator=",", wishes=None, **columns):
        path = tmp_path / "a.csv"
        frame = pd.DataFrame(COLUMNS | columns)
        path.write_text(frame.to_csv(index=False, sep=separator) if text is None else text, encoding="utf-8")
        guess = guess_schema(path, Wishes(**{"target": "outcome", "silo": "site"} | (wishes or {})))
        return guess, read_records(path, guess.schema)[0]

    return one


CODES = {
    "zero": ("01", "1", "2"),
    "zero and a letter": ("01", "02", "0A"),
    "exponent": ("2E1", "20", "3E1"),
    "hexadecimal": ("0x1A", "0x1B", "26"),
    "NA": ("NA", "BW", "ZA"),
    "None": ("None", "Mild", "Severe"),
    "truth and another": ("TRUE", "FALSE", "former"),
    "month": ("2009-10", "2010-11", "2011-12"),
}


@pytest.mark.parametrize("words", CODES.values(), ids=CODES)
def test_names_of_silos_classes_and_categories_are_the_text_as_written(guessed, words):
    columns = {"site": cycled(*words), "outcome": cycled(*words), "ward": cycled(*words)}
    guess, data = guessed(**columns)
    assert data.silo_names == data.class_names == tuple(sorted_names(words))
    assert [data.silo_names[place] for place in data.silo] == columns["site"]
    assert [data.class_names[place] for place in data.y] == columns["outcome"]
    if words != CODES["month"]:
        assert guess.schema.columns["ward"] == Column("category", tuple(sorted_names(words)))
        assert data.x[:, 1:].argmax(axis=1).tolist() == [sorted_names(words).index(word) for word in columns["ward"]]


@pytest.mark.parametrize("ids", [[f"{i % 10:0{i % 20 // 10 + 1}}" for i in I], [f"1{i % 20:022}" for i in I]])
def test_twenty_persons_are_twenty_persons(guessed, ids):
    data = guessed(wishes={"person": "who"}, who=ids)[1]
    assert len(np.unique(data.person)) == 20
    assert np.bincount(data.person).max() == 3


def test_whole_numbers_of_any_length_sort_by_value_and_then_as_text():
    names = ["-" + "9" * 5000, "-7", "+0", "-0", "0", "007", "7", "10", "9" * 5000, "1" + "0" * 5000]
    assert sorted_names(reversed(names)) == names


TWO_WAYS = {
    "whole numbers beside a point": (";", {"cost": cycled("950", "1.200", "12.500")}),
    "a decimal comma elsewhere": (";", {"cost": cycled("1.200", "12.500"), "bmi": cycled("1,5", "2,5")}),
    "commas": (",", {"cost": cycled("3,626", "258", "1,214")}),
}


@pytest.mark.parametrize(("separator", "columns"), TWO_WAYS.values(), ids=TWO_WAYS)
def test_a_mark_that_can_be_read_in_two_ways_is_refused_until_it_is_said(guessed, separator, columns):
    with pytest.raises(TableError, match=r"row \d, column 'cost': '9+.999': can be read in two ways: thousands"):
        guessed(separator=separator, **columns)
    mark = "," if separator == "," else "."
    guess, data = guessed(separator=separator, wishes={"form": {"thousands": mark}}, **columns)
    place = data.feature_names.index("cost")
    assert data.x[:, place].tolist() == [float(word.replace(mark, "")) for word in columns["cost"]]
    assert guess.schema.form.thousands == mark


def test_a_point_before_three_digits_alone_is_a_decimal(guessed):
    data = guessed(cost=cycled("1.234", "2.345"))[1]
    assert set(data.x[:, 1]) == {1.234, 2.345}


def test_a_tab_between_columns_leaves_the_comma_to_decimals(guessed):
    guess, data = guessed(separator="\t", dose=cycled("1,5", "2,5"), outcome=[f"{i},5" for i in I])
    assert guess.schema.numbers == ("age", "dose")
    assert data.classes is None
    assert data.y.tolist() == [i + 0.5 for i in I]


def test_separators_in_quotes_and_a_line_sep_are_read(guessed):
    rows = "".join(f"H{i % 3};{i};{i % 2}\n" for i in I)
    for head in ('site;"age, years";"died, 30 d"\n', '"site";"age, years";"died, 30 d"\n'):
        assert guessed(head + rows, wishes={"target": "died, 30 d"})[1].feature_names == ("age, years",)
    assert guessed("sep=;\nsite;age;outcome\n" + rows)[0].schema.form.separator == ";"
    # Separators at the lines' ends, with and without the header's.
    for head in ("site;age;outcome;\n", "site;age;outcome\n"):
        guess, data = guessed(head + rows.replace("\n", ";\n"))
        assert (len(data.y), len(guess.notes)) == (N, 1)


def test_a_word_is_missing_between_numbers_and_a_name_elsewhere(guessed):
    columns = {"bmi": ["NA", *map(str, range(1, N))], "country": cycled("NA", "BW", "ZA")}
    guess, data = guessed(wishes={"missing": "mean"}, **columns)
    assert guess.schema.columns["bmi"] == Column("number", (), ("NA",))
    assert np.flatnonzero(np.isnan(data.x[:, 1])).tolist() == [0]
    assert "country=NA" in data.feature_names
    guess, data = guessed(wishes={"missing": "drop", "missing_words": {"country": ("NA",)}}, **columns)
    assert len(data.y) == N - len(I[::3])
    assert guessed(told=cycled("none", "unknown"))[0].schema.columns["told"] == Column("boolean", ("none", "unknown"))


REFUSED = {
    "units": ("site,age,outcome\n,years,\n" + "A,1,0\nB,2,1\n" * 9, "row 1 is no number in columns age", "--units-row"),
    "a note": ("site,age,outcome\n" + "A,1,0\nB,2,1\n" * 9 + "x,Zz,1\n", "row 19 is no record by columns age", "18"),
    "two notes": ("site,age,dose,outcome\n" + "A,1,1,0\nB,2,2,1\n" * 9 + "x,Zz,3,1\nx,Zz,Zz,1\n",
                  "row 19 is no record by columns age, dose", "--last-row 18"),
    "a total": ("site,age,outcome\n" + "A,1,0\nB,2,1\n" * 9 + "Sum,27,9\n", "row 19 is no record by columns site", ""),
    "no feature": ("site,outcome\n" + "A,0\nB,1\n" * 9, "no column is left as a feature", ""),
    "short note": ("site,age,outcome\n" + "A,1,0\nB,2,1\n" * 9 + "Zz\n", "row 19, column 'outcome': missing", "18"),
    "a word": ("site,age,outcome\n" + "".join(f"A,{i},{i % 2}\n" for i in I) + "B,9 Zz,1\n" + "B,2,1\n" * 20,
               "row 61, column 'age': '9 aa'", "--missing-word"),
    "two forms": ("site;age;outcome\n" + "A;1,5;0\nB;2.5;1\n" * 9, "row 2, column 'age': '9.9'", "--type"),
    "two columns": ("site;a;b;outcome\n" + "A;1,5;1.5;0\nB;2,5;2.5;1\n" * 9, "column 'b': '9.9'", "columns before"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted", "option"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_named_by_row_column_and_shape_with_an_option(guessed, text, wanted, option):
    with pytest.raises(TableError) as error:
        guessed(text)
    (line,) = [line for line in str(error.value).splitlines() if wanted in line]
    assert option in line
    assert "Zz" not in str(error.value)


def test_rows_that_the_schema_leaves_out_are_looked_at_in_every_reading(tmp_path):
    path, rows = tmp_path / "a.csv", "A,1,0\nB,2,1\n" * 9
    path.write_text("site,age,outcome\n,years,\n" + rows + "Total,Zz,\n")
    wishes = Wishes("outcome", silo="site", form={"units_row": True, "last_row": 19})
    schema = guess_schema(path, wishes).schema
    assert len(read_records(path, schema)[0].y) == 18
    path.write_text("site,age,outcome\n,years,\n" + rows + "Total,27,9\n")
    assert len(read_records(path, schema)[0].y) == 18
    for text, key in ((rows + "Total,Zz,\n", "units_row"), (",years,\n" + rows + "A,3,1\n", "last_row")):
        path.write_text("site,age,outcome\n" + text)
        with pytest.raises(TableError, match=f"reads as a record, but {key}"):
            read_records(path, schema)


@pytest.mark.parametrize("total", ["Grand total", "Total:", "SUM of all", "Sub-total", "Total Care"])
def test_a_total_is_named_where_it_stands_last(guessed, total):
    head, rows, row = "site,age,outcome\n", "A,1.5,7\nB,2.5,8\nSUM-1,3.5,9\n" * 9, f"{total},45.5,99\n"
    wishes = {"task": "regression"}
    with pytest.raises(TableError, match=r"row 28 is no record by columns site: must be .* \(--last-row 27\)"):
        guessed(head + rows + row, wishes=wishes)
    assert len(guessed(head + rows + row, wishes=wishes | {"form": {"last_row": 27}})[1].y) == 27
    # A name, as of a hospital.
    assert len(guessed(head + rows + row, wishes=wishes | {"types": {"site": "category"}})[1].y) == 28
    assert len(guessed(head + rows + row + rows, wishes=wishes)[1].y) == 55
    if total != "Total:":
        assert len(guessed(head + rows + row * 2, wishes=wishes)[1].y) == 29


@pytest.mark.parametrize(
    ("place", "column", "cell", "few", "wanted"),
    [(0, "age", "years", 2, "units"), (-1, "site", "Total", 2, "a total"), (-1, "age", "Zz", 5, "notes")],
)
def test_units_totals_and_notes_are_not_looked_for_in_a_few_rows(guessed, place, column, cell, few, wanted):
    for rows in (few, few + 1):
        numbers = 0.5 + np.arange(rows)
        frame = pd.DataFrame({"site": "A", "dose": numbers, "age": numbers, "outcome": numbers}, dtype=object)
        frame.loc[frame.index[place], column] = cell
        text, wishes = frame.to_csv(index=False), {"task": "regression"}
        if rows == few:
            assert guessed(text, wishes=wishes)[1].y.tolist() == numbers.tolist()
            continue
        with pytest.raises(TableError, match=f"row {range(1, rows + 1)[place]} is no .* must be .*{wanted}"):
            guessed(text, wishes=wishes)


def test_rows_in_two_encodings_are_named_and_latin_1_is_not_advised(guessed, tmp_path):
    rows = ["site,age,outcome", *(f"Zürich,{i},{i % 2}" for i in I)]
    (tmp_path / "b.csv").write_bytes(
        b"\n".join(row.encode("latin-1" if n == 9 else "utf-8") for n, row in enumerate(rows))
    )
    with pytest.raises(TableError, match="row 9: not text in utf-8: other rows are UTF-8") as error:
        guess_schema(tmp_path / "b.csv", Wishes("outcome"))
    assert "latin-1" not in str(error.value)


def test_a_shape_shows_no_digit_and_no_letter_of_any_script():
    for cell, shape in {"½ Ⅷ㉟": "9 99", "हिन्दी-7": "aaaaaa-9", "Zu\u0308rich": "aaaaaaa", "٣²": "99"}.items():
        assert cell_shape(cell) == repr(shape)
    assert cell_shape("x" * 30) == repr("a" * 30)
    assert cell_shape("x" * 31) == repr("a" * 27 + "...")


def test_a_whole_number_that_a_float_does_not_hold_is_refused():
    for column in (pd.Series([str(2**53 + 1)]), pd.Series([2**53 + 1])):
        with pytest.raises(TableError, match=r"row 1, column 'x': '9+'"):
            parse_column(pd.DataFrame({"x": column}), "x", Schema("y", {"x": Column("number")}), "a.csv")


def test_parquet_keeps_its_types_and_an_index_by_its_name(tmp_path):
    path, frame = tmp_path / "a.parquet", pd.DataFrame(COLUMNS | {"code": cycled("01", "1")})
    frame["insured"] = cycled(True, False)
    wanted = ("age", "code=1", "insured=True")
    for index, notes in ((I**2, 1), (pd.Index(I, name="patient"), 0)):
        frame.set_index(index).to_parquet(path)
        guess = guess_schema(path, Wishes("outcome", silo="site", ignore=("patient",) if not notes else ()))
        assert read_records(path, guess.schema)[0].feature_names == wanted
        assert len(guess.notes) == notes
    frame["left"] = np.where(I % 9 == 0, -999, I)
    frame.to_parquet(path)
    guess = guess_schema(path, Wishes("outcome", silo="site", missing="mean", missing_words={"left": ("-999",)}))
    assert np.isnan(read_records(path, guess.schema)[0].x[:, -1]).tolist() == (I % 9 == 0).tolist()
    frame.columns = pd.MultiIndex.from_product([["x"], frame.columns])
    frame.to_parquet(path)
    with pytest.raises(TableError, match="two levels"):
        guess_schema(path, Wishes("outcome"))


def test_a_name_that_stands_twice_in_parquet_is_named(tmp_path):
    """Two columns, or a column and an index; one would take the other's place."""
    path, frame = tmp_path / "a.parquet", pd.DataFrame(COLUMNS)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pyarrow.parquet.write_table(table.append_column("age", table["age"]), path)
    for index in (None, pd.RangeIndex(N, name="age"), pd.Index(I**2, name="age")):
        if index is not None:
            frame.set_index(index).to_parquet(path)
        with pytest.raises(TableError, match=r"a.parquet: column 'age' is named more than once"):
            read_table(path, Form())


def made(country, program, generator):
    """(bytes, wishes, values) of a file in a country's marks as a program writes it."""
    decimal, thousands = COUNTRIES[country]
    cost = np.round(generator.lognormal(9, 2, N), 2)
    cost[0] = 0.25
    text = [f"{value:,.2f}".translate(str.maketrans({",": thousands, ".": decimal})) for value in cost]
    codes = [f"{code:02}" for code in generator.integers(0, 5, N)]
    frame = pd.DataFrame(COLUMNS | {"cost": text, "ward": codes})
    line_end, quoting, encoding, separator, first = PROGRAMS[program]
    separator = separator or (";" if decimal == "," else ",")
    written = frame.to_csv(index=False, sep=separator, quoting=quoting, lineterminator=line_end)
    return ((f"sep={separator}{line_end}" if first else "") + written).encode(encoding), cost, codes


COUNTRIES = {
    "Britain": (".", ","), "Germany": (",", "."), "France": (",", "\u202f"), "Switzerland": (".", "\u2019"),
    "Sweden": (",", "\u00a0"), "Poland": (",", " "), "Mexico": (".", ","), "Estonia": (",", ""),
}  # fmt: skip
PROGRAMS = {
    "a spreadsheet": ("\r\n", 0, "utf-8-sig", "", True),
    "an old spreadsheet": ("\r", 0, "utf-16", "\t", False),
    "a database": ("\n", 1, "utf-8", "", False),
    "a statistics program": ("\r\n", 2, "utf-16-be", "\t", False),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("country", COUNTRIES)
def test_forms_of_countries_and_programs_give_the_numbers(country, program, tmp_path):
    for seed in range(4):
        text, cost, codes = made(country, program, np.random.default_rng(seed))
        path = tmp_path / "a.csv"
        path.write_bytes(b"\xfe\xff" * (program == "a statistics program") + text)
        guess = guess_schema(path, Wishes("outcome", silo="site"))
        data = read_records(path, guess.schema)[0]
        np.testing.assert_array_equal(data.x[:, data.feature_names.index("cost")], cost)
        values = guess.schema.columns["ward"].values
        places = [data.feature_names.index(f"ward={value}") for value in values]
        assert all(value in codes for value in values)
        np.testing.assert_array_equal(data.x[:, places].sum(axis=1), np.isin(codes, values))
        assert schema_from(guess.schema.as_json()) == guess.schema


def test_a_rows_reading_hangs_on_no_other_row(guessed, tmp_path):
    guess, whole = guessed(ward=cycled("01", "1", "0A", "7E1"), cost=[f"{i}.5" for i in I])
    path, generator = tmp_path / "b.csv", np.random.default_rng(0)
    lines = (tmp_path / "a.csv").read_text().splitlines(keepends=True)
    for rows in (generator.permutation(N), generator.choice(N, 7), np.repeat(I, 2), I[:1], I[3:5]):
        path.write_text(lines[0] + "".join(lines[row + 1] for row in rows))
        data = read_records(path, guess.schema)[0]
        np.testing.assert_array_equal(data.x, whole.x[rows])
        np.testing.assert_array_equal(data.y, whole.y[rows])
        silos = [data.silo_names[place] for place in data.silo]
        assert silos == [whole.silo_names[place] for place in whole.silo[rows]]


def test_a_column_of_digits_declared_a_category_comes_back_as_written(tmp_path):
    generator, path = np.random.default_rng(0), tmp_path / "a.csv"
    for digits, length in itertools.product(("01", "0123456789", "0123456789.,Ee-+xA"), (1, 3, 25)):
        words = ["".join(generator.choice(list(digits), length)) for _ in range(9)]
        schema = Schema("y", {"code": Column("category", tuple(sorted_names(words))), "y": Column("number")})
        frame = pd.DataFrame({"code": words, "y": range(9)})
        path.write_text(frame.to_csv(index=False))
        codes = parse_column(read_table(path, Form()), "code", schema, path)
        assert [schema.columns["code"].values[code] for code in codes] == words


# SHA-256 of x, y and silo with their names, as they were before schemas.
BEFORE = {
    "obesity": "7780d572124ad23c24bf13ff80fede88259ccbc40e1a31022f6f05d8bc3adbbd",
    "star": "1949dc7c1163433db99a4dce7fd883c37ced5f4e9c030f91f3247a4df7b53210",
    "tv16": "6bbc972c6aa6b8d3ee427dbfb32f20b9b3e29ef1cebc2a706303ce0f22c35d5d",
}


@pytest.mark.parametrize("name", BEFORE)
def test_registered_data_have_the_arrays_of_before(name, needs_data):
    data, found = DATASETS[name].load(needs_data(name)), hashlib.sha256()
    for values in (data.x, data.y, data.silo):
        found.update(str(values.dtype).encode() + str(values.shape).encode() + values.tobytes())
    found.update(repr((data.feature_names, data.class_names, data.silo_names, data.classes)).encode())
    assert found.hexdigest() == BEFORE[name]
