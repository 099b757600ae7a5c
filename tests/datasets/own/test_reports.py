"""Inputs as public reports of other programs have them, three or more a kind: read rightly, or named."""

import datetime
from decimal import Decimal

import pandas as pd
import pytest

from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.guessing import Wishes, guess_schema
from silodp.datasets.own.schema import TableError

PLACES, MARK = range(60), "a number with another mark"


def column(*cells, separator=","):
    """A file whose column x repeats these cells."""
    rows = [(f"H{n % 3}", str(20 + n % 30), cells[n % len(cells)], str(n % 2)) for n in PLACES]
    return "".join(separator.join(row) + "\n" for row in [("site", "age", "x", "outcome"), *rows])


NUMBERS = column(*map(str, PLACES))
# Text → what is said of column x: type and values, features of two records, a note, or an error.
REPORTS = {
    "dates, day and month": [column("03/04/2024", "13/04/2024"), column("31-12-2023", "03-04-2024"), "dates or times"],
    "dates told": [column("20241231", "20240101"), column("01-Mar-2024", "2-Apr-24"), column("7:30", "23:59"), "date"],
    "a year among dates": [column("2021", "2021-03-04"), "date"],
    "decimal comma": [column("1,5", "2.500,5", "3,5", separator=";"), column('"1,5"', '"2500,5"'), "[1.5, 2500.5]"],
    "decimal comma without quotes": [column("1,5"), column("1,5;"), "each row have as many cells"],
    "thousands": [column('"1,200"', "950"), column("1.200", "950", separator=";"), "can be read in two ways"],
    "thousands of other marks": [column('"1,00,000"', "500"), column("1_200", "5"), column('"1,2,3"', "5"), MARK],
    "marks of amounts": [column("5%", "10 %"), column("$5.50", "7"), column("5 €", "6 €"), column("(5)", "7"), MARK],
    "minus": [column("\u22125", "7"), column("-5", "7"), "[-5.0, 7.0]"],
    "minus behind": [column("5.50-", "7"), column("5-", "7"), MARK],
    "missing": [column("5", r"\N"), column("5", "<NA>"), column("5", "#DIV/0!"), column("5", "—"), "taken as missing"],
    "no number": [NUMBERS.replace(",9,", f",{word},") for word in ("inf", "1.#INF", "<5")] + ["a word in a column"],
    "words": [column("NA", "EU"), column("NULL", "EU"), column("None", "EU"), "boolean ('EU', 'N"],
    "booleans": [column("True", "TRUE", "False"), column("Y", "N", "n"), "differ from others in case"],
    "names alike": [column("Zürich", "Zu\u0308rich"), column("a b", "a\u00a0b"), column("a", "a\u200b"), "1 names di"],
    "ids with .0": [column("A1", "A1.0"), column("1", "1.0", "A"), column("7,0", "7", "x", separator=";"), "1 names"],
    "ids with zeros": [column("0010", "0100"), column('="0010"', '="0100"'), column("'0010", "'a"), "boolean"],
    "ids in digits": [column("73928e03", "4e872096"), column("1234567890123456", "1234567890123457"), "boolean"],
    "ids shortened": [column("9.01E+15", "a"), column("6.93E+12", "a"), column("1E+20", "a"), "have become one"],
    "first lines": ["Title\n" + NUMBERS, "# made\n\n" + NUMBERS, "Made, 2024\n" + NUMBERS, "line 1 must name"],
    "header again": [NUMBERS + NUMBERS, column("a", "b") + column("a"), "row 61: the header stands here again"],
    "empty rows": ["\n" + NUMBERS, NUMBERS.replace("\n", "\n\n"), NUMBERS + "\n\n", "[0.0, 1.0]"],
    "quotes": [column(*"bb", '"a', *"bbb", '"a'), column(*"bbb", '"a'), "CSV"],
    "backslashes": [column('"a \\"b\\", c"'), "line 1 must name every column"],
    "byte order marks": ["\ufeff\ufeff" + NUMBERS, "\ufeff" + NUMBERS.replace("x", '"x"'), "[0.0, 1.0]"],
    "UTF-16 and 32": [NUMBERS.encode("utf-16-le"), NUMBERS.encode("utf-32"), column("5\0").encode(), "control char"],
    "one byte a letter": [column("ü", "€").encode(code) for code in ("cp1252", "cp1250", "mac-roman")] + ["--encoding"],
    "separators": [column("5", "6", separator="::"), column("5", separator="^"), column("5", separator=" "), "--sep"],
}  # fmt: skip


def said_of_x(path):
    """Type, values, why it is no feature, and first two rows of column x, with notes; or the error."""
    try:
        guess = guess_schema(path, Wishes("outcome", silo="site", missing="mean"))
        about, first_rows = guess.schema.columns["x"], read_records(path, guess.schema)[0].x[:2, 1:2].ravel().tolist()
    except TableError as error:
        return str(error)
    return f"{about.type} {about.values} {guess.refused.get('x')} {first_rows} {guess.notes}"


@pytest.mark.parametrize(
    ("text", "wanted"), [(text, case[-1]) for case in REPORTS.values() for text in case[:-1]],
    ids=[f"{kind} {place}" for kind, case in REPORTS.items() for place in range(len(case) - 1)],
)  # fmt: skip
def test_what_others_read_wrongly_is_read_or_named(text, wanted, tmp_path):
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert wanted in said_of_x(tmp_path / "a.csv")


def test_bytes_of_windows_are_no_latin_1(tmp_path):
    (tmp_path / "a.csv").write_bytes(column("€", "b").encode("cp1252"))
    with pytest.raises(TableError, match="row 1: control characters, so no text in latin-1: must be another"):
        guess_schema(tmp_path / "a.csv", Wishes("outcome", form={"encoding": "latin-1"}))
    guess = guess_schema(tmp_path / "a.csv", Wishes("outcome", form={"encoding": "cp1252"}))
    assert guess.schema.columns["x"].values == ("b", "€")


TYPED = {
    "decimals": ([Decimal("1.25"), Decimal("2.5")], "number () None [1.25, 2.5]"),
    "a dictionary of numbers": (pd.Categorical([10, 2]), "number () None [10.0, 2.0]"),
    "a dictionary of words": (pd.Categorical(["b", "a"]), "boolean ('a', 'b') None [1.0, 0.0]"),
    "truth with gaps": (pd.array([None, True], dtype="boolean"), "category ('True',) None [0.0, 1.0]"),
    "times in a zone": (pd.date_range("2020", periods=2, tz="Europe/Berlin"), "date () dates or times []"),
    "times of a day": ([datetime.time(7, 30), datetime.time(8)], "date () dates or times []"),
    "dates in digits": ([20241231, 20240101], "date () dates or times []"),
    "text of numbers": (["1,5", "2,5"], "number () None [1.5, 2.5]"),
    "whole numbers of 18 digits": ([10**17, 10**17 + 1], "a whole number that float64 does not hold"),
}


@pytest.mark.parametrize(("cells", "wanted"), TYPED.values(), ids=TYPED)
def test_types_of_parquet_are_kept(cells, wanted, tmp_path):
    frame = pd.DataFrame({"site": "H", "age": PLACES, "x": pd.Series(cells).repeat(30).values, "outcome": [0, 1] * 30})
    frame.take([*range(29, 60), *range(29)]).to_parquet(tmp_path / "a.parquet", index=False)
    assert wanted in said_of_x(tmp_path / "a.parquet")
