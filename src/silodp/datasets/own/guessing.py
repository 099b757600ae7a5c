"""What a file's schema may be: guessed once, by `silodp init`, for the owner to mend."""

import codecs
import contextlib
import csv
import io
import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from silodp.datasets.base import Task
from silodp.datasets.own.parsing import (
    MINUS,
    SHORTENED,
    cell_error,
    cell_texts,
    check_names,
    decode,
    is_parquet,
    is_scalar,
    is_typed,
    matches,
    read_bytes,
    read_table,
    total_columns,
)
from silodp.datasets.own.schema import THOUSANDS, Column, Form, Schema, TableError, sorted_names

# Different words of a column up to which they are categories; a column with more is free text.
MOST_CATEGORIES = 50
# Different whole numbers of a target up to which they are classes.
MOST_CLASSES = 20
# Records that a category must have for a column.
LEAST_OF_CATEGORY = 10
# Words that stand for a missing value between numbers.
_STRAY = {
    "?",
    "-",
    "--",
    "\u2013",
    "\u2014",
    ".",
    "n/a",
    "na",
    "<na>",
    "nan",
    "null",
    "\\n",
    "none",
    "unknown",
    "missing",
}
_STRAY |= {"#n/a", "#div/0!", "#value!", "#num!", "#ref!"}
# Most rows of notes and totals below the records.
_NOTES = 5
# Codes that only look like numbers: a zero before digits, 1E1, 1e01 or 1e100 (not 1e1 or 1E+1), too many digits.
_CODE = r"[+-]?0[0-9].*|[+-]?[0-9]+(E|e0|e[0-9]{2})[0-9]+|[+-]?[0-9]{16,}"
# A number with a mark that no form has: 5 %, $5, (5), 5-, 1,00,000.
_MARKED = r"\(?[^\w\s]?\s?\d+(?:[.,'\u2019_\s]\d+)*[.,]?\s?[^\w\s]?"
# A number with its unit: 5 mg, 80.1kg, 120/70 mmHg, 1e3 /ul, 5 x 10^9/L.
_WITH_UNIT = (
    rf"[+{MINUS}-]?\d+(?:[.,'\u2019/]\d+)*(?:[eE][+-]?\d+)?(\s?)"
    r"([x\u00d7*]\s?10\S+|(?:[^\d\s.,:;/-]|(?<=\s)/)\S{0,29})"
)
# A number that a device could not tell: <0.5.
_BEYOND = r"[<>\u2264\u2265]=?\s?[0-9]+([.,][0-9]+)?"
_WORD = "--missing-word {name}=WORD, --type {name}=ignored, --decimal or --thousands must be given"
_LIMIT = (
    "must be a number, as the limit or half of it, or --missing-word {name}=WORD, which loses that the value is small "
    "or large, or --type {name}=category, which loses all numbers"
)
_ONE_FORM = "must be one form, or --type {name}=category be given"
_FORMS = [Form(decimal=point, thousands=mark) for mark in THOUSANDS for point in ".," if mark != point]


@dataclass(frozen=True)
class Wishes:
    """What the owner says of a file; a key of `form` that is absent is guessed, and so is a column's type."""

    target: str
    silo: str | None = None
    person: str | None = None
    missing: str = "refuse"
    task: Task | None = None
    ignore: tuple[str, ...] = ()
    form: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    missing_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Guess:
    """A schema; column → why it is no feature; the file's columns; notes of what else was seen."""

    schema: Schema
    refused: dict[str, str]
    frame: pd.DataFrame
    notes: list[str]


def guess_schema(path: Path, wishes: Wishes) -> Guess:
    """TableError: a line for each fault of a file that can be read in two ways, or in none."""
    # What is wrong with the file, "", or with a column.
    faults: dict[str, str] = {}
    try:
        form = Form() if is_parquet(path) else _text_form(path, wishes.form)
    except TableError as error:
        # The other faults are looked for in the text as it likely is.
        faults[""] = str(error)
        form = _text_form(path, {**wishes.form, "encoding": "cp1252"})
    form = replace(form, units_row=bool(wishes.form.get("units_row")), last_row=wishes.form.get("last_row"))
    frame = read_table(path, form)
    notes = list(frame.attrs["notes"])
    rows = frame.iloc[int(form.units_row) : form.last_row]
    roles = (wishes.target, wishes.silo, wishes.person)
    named = dict.fromkeys((*filter(None, roles), *wishes.ignore, *wishes.types, *wishes.missing_words))
    if unknown := ", ".join(repr(name) for name in named if name not in frame):
        raise TableError(f"{path}: no column is called {unknown}: must be one of {', '.join(frame)}")
    cells: dict[str, _Cells] = {}
    for name in (str(name) for name in rows if is_scalar(rows[name])):
        with _noted(faults, name):
            cells[name] = _Cells(path, rows[name], wishes)
    _check_rows(path, rows, cells, faults)
    if {"first", "last"} & faults.keys():
        # A row that is no record is a fault of many columns.
        raise TableError("\n".join(faults.values()))
    form = _number_form(path, cells, form, wishes.form, faults)
    columns: dict[str, Column] = {}
    refused: dict[str, str] = {}
    for name in (str(name) for name in frame if name not in faults):
        with _noted(faults, name):
            columns[name], why = _column(path, name, cells.get(name), form, wishes)
            if why and name == wishes.target:
                allowed = f"must be numbers or at most {MOST_CATEGORIES} classes"
                raise TableError(f"{path}: column {name!r}: {why}: {allowed}")
            refused |= {name: why} if why and name not in wishes.ignore else {}
            notes += _notes_of(rows[name], columns[name], cells.get(name), wishes)
    if faults:
        unused = [name for name, one in columns.items() if one.type in ("ignored", "date")]
        used = [one for name, one in cells.items() if name not in unused]
        if wishes.missing == "refuse" and (gaps := [one for one in used if one.counts.sum() < len(rows)]):
            holes = ", ".join(f"{one.name!r} ({len(rows) - one.counts.sum()} of {len(rows)})" for one in gaps)
            faults["missing"] = (
                f"{path}: values are missing in {holes}: must be filled in, or --missing be drop or mean"
            )
        raise TableError("\n".join(faults.values()))
    schema = Schema(wishes.target, columns, form, wishes.silo, wishes.person, wishes.missing)
    return Guess(schema, refused, frame, notes)


@contextlib.contextmanager
def _noted(faults: dict[str, str], name: str) -> Iterator[None]:
    try:
        yield
    except TableError as error:
        faults.setdefault(name, str(error))


def _notes_of(column: pd.Series, about: Column, one: "_Cells | None", wishes: Wishes) -> Iterator[str]:
    """What an owner should know of a column: names that look alike, words that were taken as missing."""
    if one is not None and about.type in ("category", "boolean", "name"):
        yield from _notes_of_names(one)
    for word in about.missing_words if column.name not in wishes.missing_words else ():
        places = np.flatnonzero(cell_texts(column) == word) + 1
        yield (
            f"column {column.name!r}: {len(places)} of {len(column)} values are words such as ? or n/a, taken as "
            f"missing (row {', '.join(map(str, places[:5]))}{', …' if len(places) > 5 else ''})"
        )


def _notes_of_names(one: "_Cells") -> Iterator[str]:
    """What may be one name in two spellings, or two names in one."""
    column, names = one.name, one.counts.index
    alike = r"[\s\u200b-\u200d]|[.,]0+$"
    seen = {re.sub(alike, "", unicodedata.normalize("NFKC", name).casefold()) for name in names}
    if len(seen) < len(names):
        many = len(names) - len(seen)
        yield f"column {column!r}: {many} names differ from others in case, blanks, accents' codes or .0 alone"
    if not one.is_number and names.str.fullmatch(SHORTENED).any():
        yield f"column {column!r}: ids as 9.99E+15, which a spreadsheet has shortened: several may have become one"


def _text_form(path: Path, said: Mapping[str, Any]) -> Form:
    """Encoding by the marks at a file's start, separator by the first lines, quoted parts aside."""
    data = read_bytes(path)
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = str(said.get("encoding") or ("utf-16" if wide else "utf-8"))
    head = decode(path, data, encoding)[:100_000]
    named = re.match("sep=(.)\n", head, re.IGNORECASE)
    separator = said.get("separator") or (named and named[1]) or max(",;\t|", key=lambda mark: _agreement(head, mark))
    return Form(separator=str(separator), encoding=encoding)


def _agreement(head: str, separator: str) -> tuple[float, int]:
    """The share of the first lines with as many cells as the header, and how many; none where it is one cell."""
    lines = csv.reader(io.StringIO(head), delimiter=separator, skipinitialspace=True)
    rows = list(itertools.islice(lines, 50))
    width = len(rows[0]) if rows else 0
    return (sum(len(row) in (width, width + 1) for row in rows) / len(rows), width) if width > 1 else (0.0, 0)


class _Cells:
    """A column's different cells without missing words, and the forms that read all of them as numbers.

    `is_text`: whether the cells say what the column is: text that is no name and whose type is not given otherwise.
    """

    def __init__(self, path: Path, column: pd.Series, wishes: Wishes):
        self.path, self.column, self.name = path, column, str(column.name)
        self.wanted = wishes.types.get(self.name)
        self.missing_words = tuple(wishes.missing_words.get(self.name, ()))
        counts = cell_texts(column).value_counts()
        self.counts = counts[~counts.index.isin(["", *self.missing_words])]
        named = {wishes.silo, wishes.person, *wishes.ignore}
        self.is_text = self.name not in named and _is_text(column) and self.wanted in (None, "number")
        self.is_number = is_typed(column) and not pd.api.types.is_bool_dtype(column)
        self.words = self.cells = pd.Series(self.counts.index, dtype=str)
        self.forms, self.has_whole, self.doubtful_mark = _FORMS, False, ""
        if self.is_text:
            self._read_forms()

    def _read_forms(self) -> None:
        stray = self.cells.str.casefold().isin(_STRAY)
        self.cells, strays = self.cells[~stray], self.cells[stray]
        plain = self.cells.str.replace(MINUS, "-")
        read: np.ndarray = np.array([matches(plain, form.literal) for form in _FORMS])
        self.words = self.cells[~read.any(axis=0)]
        has_codes = self.wanted is None and matches(plain, _CODE).any()
        self.is_number = len(self.cells) > 0 and self.words.empty and not has_codes
        if not self.is_number:
            return
        self.missing_words, self.counts = (*self.missing_words, *sorted(strays)), self.counts[~stray.to_numpy()]
        left = np.logical_and.accumulate(read, axis=1).any(axis=0)
        if not left.all():
            raise self.error(self.cells[~left][:1], "a number in another form than those above", _ONE_FORM)
        self.forms = [form for form, every in zip(_FORMS, np.all(read, axis=1), strict=True) if every]
        self.has_whole = bool(matches(plain, "[+-]?[0-9]+").any())
        # The mark that can be read as one of decimals and as one of thousands.
        both = {form.decimal for form in self.forms} & {form.thousands for form in self.forms}
        self.doubtful_mark = next((mark for mark in both if self.cells.str.contains(mark, regex=False).any()), "")

    def error(self, cells: pd.Series, wrong: str, allowed: str) -> TableError:
        allowed = allowed.format(name=self.name)
        return cell_error(self.path, self.column, cell_texts(self.column).isin(cells).to_numpy(), wrong, allowed)


def _is_text(column: pd.Series) -> bool:
    return not is_typed(column) and pd.api.types.infer_dtype(column.astype(object), skipna=True) == "string"


def _check_rows(path: Path, rows: pd.DataFrame, columns: Mapping[str, _Cells], faults: dict[str, str]) -> None:
    """Note as faults a row of units, a total or notes between records, and for a word among many numbers."""
    totals = [] if is_parquet(path) or len(rows) <= 2 else total_columns(rows, -1)
    first, last = [], {name: int(rows.index[-1]) for name in totals if columns[name].wanted != "category"}
    for name, one in columns.items():
        numerals = len(one.cells) - len(one.words)
        if one.is_text and numerals and not one.words.empty:
            places = np.flatnonzero(cell_texts(one.column).isin(one.words))
            if places.tolist() == [0] and len(rows) > 2:
                first.append(name)
            elif len(places) <= _NOTES < len(rows) and places[0] == len(rows) - len(places):
                last[name] = int(rows.index[places[0]])
            elif one.wanted or numerals > max(len(one.words), MOST_CATEGORIES - len(one.words)):
                beyond = one.words.str.fullmatch(_BEYOND).all()
                faults[name] = str(one.error(one.words, "a word in a column of numbers", _LIMIT if beyond else _WORD))
    otherwise = "or --missing-word or --type COLUMN=category be given"
    if first:
        where = f"row {rows.index[0] + 1} is no number in columns {', '.join(first)}"
        faults["first"] = f"{path}: {where}: must be units (--units-row), {otherwise}"
    if last:
        row = min(last.values())
        where = f"row {row + 1} is no record by columns {', '.join(last)}"
        faults["last"] = f"{path}: {where}: must be notes or a total (--last-row {row}), {otherwise}"


def _number_form(
    path: Path, columns: Mapping[str, _Cells], form: Form, said: Mapping[str, Any], faults: dict[str, str]
) -> Form:
    """The decimal and thousands marks that read every column of numbers; the simplest where several do.

    A column that they do not read is a fault.
    """
    given = {key: said[key] for key in ("decimal", "thousands") if key in said}
    forms = [one for one in _FORMS if all(getattr(one, key) == value for key, value in given.items())]
    if not forms:
        raise TableError(f"{path}: --decimal and --thousands: must be two different marks")
    numbers = [one for one in columns.values() if one.is_number and one.is_text]
    sure = {one.forms[0].decimal for one in numbers if len({form.decimal for form in one.forms}) == 1}
    for one in numbers:
        # A point is a decimal where nothing speaks against it, a comma where another column's is.
        mark, natural = one.doubtful_mark, {".": "," not in sure, ",": "," in sure}
        if mark and not given and (one.has_whole or not natural[mark]):
            other = "." if mark == "," else ","
            allowed = f"thousands (--thousands {mark} --decimal {other}) or decimals (--decimal {mark}): must be said"
            cells = one.cells[one.cells.str.contains(mark, regex=False)]
            faults[one.name] = str(one.error(cells, "can be read in two ways", allowed))
        elif not (kept := [form for form in forms if form in one.forms]):
            wrong = "no number in the form of the columns before it, or of the options"
            faults[one.name] = str(one.error(one.cells[~one.cells.str.fullmatch(forms[0].literal)], wrong, _ONE_FORM))
        else:
            forms = kept
    return replace(form, decimal=forms[0].decimal, thousands=forms[0].thousands)


def _column(path: Path, name: str, one: _Cells | None, form: Form, wishes: Wishes) -> tuple[Column, str]:
    """A column, and why it is no feature."""
    wanted, role = wishes.types.get(name), name in (wishes.target, wishes.silo, wishes.person)
    if one is None and role:
        raise TableError(f"{path}: column {name!r}: neither numbers nor words: must hold one or the other")
    if (name in wishes.ignore or wanted in ("ignored", "date")) and not role:
        return Column("date" if wanted == "date" else "ignored"), ""
    if one is None:
        return Column("ignored"), "neither numbers nor words"
    counts, missing, guessed = one.counts, one.missing_words, wanted is None
    if name in (wishes.silo, wishes.person):
        check_names(path, one.column, is_name=True)
        return Column("name", (), missing), ""
    if name == wishes.target:
        if guessed and not wishes.task:
            _check_words(one)
        return _target(one, form, wishes), ""
    if counts.empty:
        return Column("ignored"), "no values"
    if len(counts) == 1 and counts.sum() == len(one.column) and guessed:
        return Column("ignored"), "the same value in every record"
    if guessed and _is_date(one):
        return Column("date"), "dates or times"
    if (one.is_number and guessed) or wanted == "number":
        return Column("number", (), missing), ""
    check_names(path, one.column, is_name=False)
    if guessed:
        _check_words(one)
    if guessed and len(counts) > MOST_CATEGORIES:
        return Column("ignored"), f"text with more than {MOST_CATEGORIES} different values"
    often = sorted_names(counts.index[counts >= LEAST_OF_CATEGORY])
    if wanted == "boolean" and len(counts) != 2:
        raise TableError(f"{path}: column {name!r}: {len(counts)} different words: a boolean must have two (--type)")
    if wanted == "boolean" or (len(often) == len(counts) == 2 and guessed):
        return Column("boolean", tuple(sorted_names(counts.index)), missing), ""
    if not often:
        return Column("ignored"), f"no category with {LEAST_OF_CATEGORY} records"
    return Column("category", tuple(often), missing), ""


def _check_words(one: _Cells) -> None:
    """TableError where a column's words are numbers with more: limits, units and other marks."""
    if not one.is_text or one.words.empty:
        return
    units = one.words.str.extract(f"^{_WITH_UNIT}$")
    # A blank before it, or the same behind every cell: codes as 0A beside 01 are none.
    same = units[1].nunique() == 1 and len(one.words) == len(one.cells)
    has_units = units[0].ne("").all() or same
    marked = one.cells.str.fullmatch(_MARKED).all()
    if one.words.str.fullmatch(_BEYOND).all():
        raise one.error(one.words, "a limit in place of a number", _LIMIT)
    if marked or (units[1].notna().all() and has_units):
        allowed = "must be numbers with marks of decimals and thousands alone, or --type {name}=category be given"
        raise one.error(one.words, f"a number with {'another mark' if marked else 'its unit'}", allowed)


def _is_date(one: _Cells) -> bool:
    """Numbers are dates where all are as 20241231; years and other codes are none."""
    cells = one.counts.index
    if one.is_number:
        return bool(cells.str.fullmatch("(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])").all())
    if not is_typed(one.column) and not _is_text(one.column):
        return True
    day_and_month = r"[0-9]{1,2}([./-])([0-9]{1,2}|[a-z]{3})\1([0-9]{2}){1,2}( .*)?|[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?"
    if cells.str.fullmatch(day_and_month, case=False).all():
        return True
    try:
        pd.to_datetime(pd.Series(cells.astype(object)), format="ISO8601")
    except (ValueError, TypeError):
        return False
    return not cells.str.fullmatch("[+-]?[0-9.]+").all()


def _target(one: _Cells, form: Form, wishes: Wishes) -> Column:
    """Words, truth values and few different whole numbers are classes, other numbers a regression's target."""
    where, cells = f"{one.path}: column {one.name!r}", list(map(str, one.counts.index))
    written = rf"[+{MINUS}-]?[0-9]+([{re.escape(form.decimal)}.]0*)?([eE]\+?[0-9]+)?"
    whole = all(re.fullmatch(written, cell) for cell in cells)
    asked = wishes.task == "regression" or one.wanted == "number"
    guessed = one.is_number and not (wishes.task or one.wanted)
    if asked and not one.is_number and one.wanted != "number":
        raise TableError(f"{where}: not numbers: must be numbers for a regression")
    if asked or (guessed and not (whole and len(cells) <= MOST_CLASSES)):
        return Column("number", (), one.missing_words)
    if len(cells) < 2:
        raise TableError(f"{where}: the same value in every record: must have at least two classes")
    if len(cells) > MOST_CATEGORIES:
        raise TableError(f"{where}: {len(cells)} different values: must be at most {MOST_CATEGORIES} classes")
    if one.counts.min() < 2:
        raise TableError(f"{where}: a class of one record: must have at least two, one to train and one to test")
    return Column("category", tuple(sorted_names(cells)), one.missing_words)
