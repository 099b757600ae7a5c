"""What a file's schema may be: guessed once, by `silodp init`, for the owner to mend."""

import codecs
import csv
import io
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from silodp.datasets.base import Task
from silodp.datasets.own.parsing import (
    TOTALS,
    cell_error,
    decode,
    is_parquet,
    is_scalar,
    is_typed,
    read_bytes,
    read_table,
    words,
)
from silodp.datasets.own.schema import THOUSANDS, Column, Form, Schema, TableError, sorted_names

# Different words of a column up to which they are categories; a column with more is free text.
MOST_CATEGORIES = 50
# Different whole numbers of a target up to which they are classes.
MOST_CLASSES = 20
# Records that a category must have for a column.
LEAST_OF_CATEGORY = 10
# Words that stand for a missing value between numbers.
_STRAY = {"?", "-", "--", ".", "n/a", "na", "#n/a", "nan", "null", "none", "unknown", "missing"}
# Most rows of notes and totals below the records.
_NOTES = 5
# Codes that only look like numbers: a zero before digits, 1E1, more digits than a float holds.
_CODE = r"[+-]?0[0-9].*|[+-]?[0-9]+[eE][0-9]+|[+-]?[0-9]+[eE][+-][0-9]+|[+-]?[0-9]{16,}"
_PROGRAM = r"[+-]?[0-9]+[eE][+-][0-9]{2,3}"
_FORMS = [Form(decimal=point, thousands=mark) for mark in THOUSANDS for point in ".," if mark != point]
WHY_NOT = {
    "text": f"text with more than {MOST_CATEGORIES} different values",
    "date": "dates or times",
    "constant": "the same value in every record",
    "empty": "no values",
    "rare": f"no category with {LEAST_OF_CATEGORY} records",
    "other": "neither numbers nor words",
}


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
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Guess:
    """A schema; column → why it is no feature; the file's columns; notes of what else was seen."""

    schema: Schema
    refused: dict[str, str]
    frame: pd.DataFrame
    notes: list[str]


def guess_schema(path: Path, wishes: Wishes) -> Guess:
    """TableError: one line about a file that can be read in two ways, or in none."""
    form = Form() if is_parquet(path) else _text_form(path, wishes.form)
    form = replace(form, units_row=bool(wishes.form.get("units_row")), last_row=wishes.form.get("last_row"))
    frame = read_table(path, form)
    notes = list(frame.attrs["notes"])
    rows = frame.iloc[int(form.units_row) : form.last_row]
    for name in (*filter(None, (wishes.target, wishes.silo, wishes.person)), *wishes.ignore, *wishes.types):
        if name not in frame:
            raise TableError(f"{path}: no column is called {name!r}: must be one of {', '.join(frame)}")
    counts = {name: words(rows[name]).value_counts() for name in rows if is_scalar(rows[name])}
    texts = {
        name: _Text(path, rows[name], counts[name].index, wishes) for name in counts if _is_guessed(name, rows, wishes)
    }
    _check_rows(path, rows, texts)
    form = _number_form(path, texts, form, wishes.form)
    columns, refused = {}, {}
    for name in map(str, frame):
        columns[name], why = _column(path, name, rows, counts.get(name), texts.get(name), form, wishes)
        if why and name == wishes.target:
            raise TableError(f"{path}: column {name!r}: {why}: must be numbers or at most {MOST_CATEGORIES} classes")
        if why and name not in wishes.ignore:
            refused[name] = why
        for word in columns[name].missing_words if name not in wishes.missing_words else ():
            places = np.flatnonzero(words(rows[name]) == word) + 1
            notes.append(
                f"column {name!r}: {len(places)} of {len(rows)} values are words such as ? or n/a, taken as "
                f"missing (row {', '.join(map(str, places[:5]))}{', …' if len(places) > 5 else ''})"
            )
    schema = Schema(wishes.target, columns, form, wishes.silo, wishes.person, wishes.missing)
    return Guess(schema, refused, frame, notes)


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


def _is_guessed(name: str, rows: pd.DataFrame, wishes: Wishes) -> bool:
    """Whether a column's cells say what it is: text that is no name and whose type is not given otherwise."""
    named = name in (wishes.silo, wishes.person) or name in wishes.ignore or name in wishes.values
    return (
        not named and not is_typed(rows[name]) and _is_text(rows[name]) and wishes.types.get(name, "number") == "number"
    )


def _is_text(column: pd.Series) -> bool:
    return pd.api.types.infer_dtype(column.astype(object), skipna=True) == "string"


class _Text:
    """A column of text: its different cells without missing words, and the forms that read all of them as numbers."""

    def __init__(self, path: Path, column: pd.Series, different: pd.Index, wishes: Wishes):
        name = str(column.name)
        self.column, said, self.is_forced = column, wishes.missing_words.get(name, ()), name in wishes.types
        cells = pd.Series(different, dtype=str)
        cells = cells[(cells != "") & ~cells.isin(said)]
        stray = cells.str.casefold().isin(_STRAY)
        self.cells = cells = cells[~stray]
        read: np.ndarray = np.array([cells.str.fullmatch(form.literal).to_numpy(bool) for form in _FORMS])
        self.words = cells[~read.any(axis=0)]
        codes = cells.str.fullmatch(_CODE)
        if cells.str.contains("[.,]").any():
            codes &= ~cells.str.fullmatch(_PROGRAM)
        self.is_number = len(cells) > 0 and self.words.empty and (self.is_forced or not codes.any())
        self.missing_words = (*said, *sorted(set(different[different.str.casefold().isin(_STRAY)]) - set(said)))
        self.missing_words = self.missing_words if self.is_number else said
        left = np.logical_and.accumulate(read, axis=1)
        if self.is_number and not left[:, -1].any():
            place = int(np.argmax(words(column) == cells.iloc[int(np.argmin(left.any(axis=0)))]))
            allowed = f"must be one form, or --type {name}=category be given"
            raise cell_error(path, column, place, "a number in another form than those above", allowed)
        self.forms = [form for form, every in zip(_FORMS, np.all(read, axis=1), strict=True) if every]
        self.has_whole = bool(cells.str.fullmatch("[+-]?[0-9]+").any())
        # The mark that can be read as one of decimals and as one of thousands.
        both = {form.decimal for form in self.forms} & {form.thousands for form in self.forms}
        marks = [mark for mark in both if cells.str.contains(mark, regex=False).any()]
        self.doubtful_mark = marks[0] if marks and self.is_number else ""


def _check_rows(path: Path, rows: pd.DataFrame, texts: Mapping[str, _Text]) -> None:
    """TableError for a row of units, a total or notes between records, and for a word among many numbers."""
    first, last = [], {}
    for name, text in texts.items():
        numerals = len(text.cells) - len(text.words)
        if text.words.empty or not numerals:
            continue
        places = np.flatnonzero(words(text.column).isin(text.words))
        if places.tolist() == [0] and len(rows) > 2:
            first.append(name)
        elif len(places) <= _NOTES < len(rows) and places[0] == len(rows) - len(places):
            last[name] = int(rows.index[places[0]])
        elif text.is_forced or numerals > max(len(text.words), MOST_CATEGORIES - len(text.words)):
            allowed = f"--missing-word {name}=WORD, --type {name}=ignored, --decimal or --thousands must be given"
            raise cell_error(path, text.column, int(places[0]), "a word in a column of numbers", allowed)
    for name in rows if not is_parquet(path) else ():
        if rows[name].iloc[-1].casefold() in TOTALS and len(rows) > 2:
            last[str(name)] = int(rows.index[-1])
    otherwise = "or --missing-word or --type COLUMN=category be given"
    if first:
        where = f"row {rows.index[0] + 1} is no number in columns {', '.join(first)}"
        raise TableError(f"{path}: {where}: must be units (--units-row), {otherwise}")
    if last:
        row = min(last.values())
        where = f"row {row + 1} is no record by columns {', '.join(last)}"
        raise TableError(f"{path}: {where}: must be notes or a total (--last-row {row}), {otherwise}")


def _number_form(path: Path, texts: Mapping[str, _Text], form: Form, said: Mapping[str, Any]) -> Form:
    """The decimal and thousands marks that read every column of numbers; the simplest where several do."""
    given = {key: said[key] for key in ("decimal", "thousands") if key in said}
    forms = [one for one in _FORMS if all(getattr(one, key) == value for key, value in given.items())]
    if not forms:
        raise TableError(f"{path}: --decimal and --thousands: must be two different marks")
    numbers = {name: text for name, text in texts.items() if text.is_number}
    sure = {text.forms[0].decimal for text in numbers.values() if len({one.decimal for one in text.forms}) == 1}
    for name, text in numbers.items():
        # A point is a decimal where nothing speaks against it, a comma where another column's is.
        mark, natural = text.doubtful_mark, {".": "," not in sure, ",": "," in sure}
        if mark and not given and (text.has_whole or not natural[mark]):
            place = int(np.argmax(words(text.column).str.contains(mark, regex=False)))
            other = "." if mark == "," else ","
            allowed = f"thousands (--thousands {mark} --decimal {other}) or decimals (--decimal {mark}): must be said"
            raise cell_error(path, text.column, place, "can be read in two ways", allowed)
        kept = [one for one in forms if one in text.forms]
        if not kept:
            cells = words(text.column)
            unread = ~(cells.isin(["", *text.missing_words]) | cells.str.fullmatch(forms[0].literal))
            wrong = "no number in the form of the columns before it, or of the options"
            allowed = f"must be one form, or --type {name}=category be given"
            raise cell_error(path, text.column, int(np.argmax(unread)), wrong, allowed)
        forms = kept
    return replace(form, decimal=forms[0].decimal, thousands=forms[0].thousands)


def _column(
    path: Path, name: str, rows: pd.DataFrame, counts: pd.Series | None, text: _Text | None, form: Form, wishes: Wishes
) -> tuple[Column, str]:
    """A column, and why it is no feature."""
    missing, wanted = tuple(wishes.missing_words.get(name, ())), wishes.types.get(name)
    if counts is None:
        if name in wishes.ignore or wanted == "ignored":
            return Column("ignored"), ""
        if name in (wishes.target, wishes.silo, wishes.person):
            raise TableError(f"{path}: column {name!r}: {WHY_NOT['other']}: must hold one or the other")
        return Column("ignored"), WHY_NOT["other"]
    counts = counts.drop(["", *missing], errors="ignore")
    if name in (wishes.silo, wishes.person):
        return Column("name", (), missing), ""
    number = (is_typed(rows[name]) and not pd.api.types.is_bool_dtype(rows[name])) or bool(text and text.is_number)
    missing = text.missing_words if text and text.is_number else missing
    if name == wishes.target:
        return _target(path, name, rows, counts.drop(list(missing), errors="ignore"), number, form, missing, wishes), ""
    if name in wishes.ignore or wanted in ("ignored", "date"):
        return Column(wanted or "ignored"), ""
    if name in wishes.values:
        # Two declared values have the second's column, also where records have a third.
        values, only = wishes.values[name], set(counts.index) <= set(wishes.values[name])
        if len(values) == 2:
            return (Column("boolean", values, missing) if only else Column("category", values[1:], missing)), ""
        return Column("category", values, missing), ""
    if counts.empty:
        return Column("ignored"), WHY_NOT["empty"]
    if len(counts) == 1 and counts.sum() == len(rows) and wanted is None:
        return Column("ignored"), WHY_NOT["constant"]
    if (number and wanted is None) or wanted == "number":
        return Column("number", (), missing), ""
    if wanted is None and _is_date(rows[name], counts.index):
        return Column("date"), WHY_NOT["date"]
    if len(counts) > MOST_CATEGORIES and wanted is None:
        return Column("ignored"), WHY_NOT["text"]
    often = sorted_names(counts.index[counts >= LEAST_OF_CATEGORY])
    if wanted == "boolean" and len(counts) != 2:
        raise TableError(f"{path}: column {name!r}: {len(counts)} different words: a boolean must have two (--type)")
    if wanted == "boolean" or (len(often) == len(counts) == 2 and wanted is None):
        return Column("boolean", tuple(sorted_names(counts.index)), missing), ""
    return (Column("category", tuple(often), missing), "") if often else (Column("ignored"), WHY_NOT["rare"])


def _is_date(column: pd.Series, cells: pd.Index) -> bool:
    if not is_typed(column) and not _is_text(column):
        return True
    if all(re.fullmatch(r"[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}.*", cell) for cell in cells):
        return True
    try:
        pd.to_datetime(pd.Series(cells.astype(object)), format="ISO8601")
    except (ValueError, TypeError):
        return False
    # Years and other plain whole numbers are codes.
    return not all(re.fullmatch("[+-]?[0-9.]+", cell) for cell in cells)


def _target(
    path: Path,
    name: str,
    rows: pd.DataFrame,
    counts: pd.Series,
    number: bool,
    form: Form,
    missing: tuple[str, ...],
    wishes: Wishes,
) -> Column:
    """Words, truth values and few different whole numbers are classes, other numbers a regression's target."""
    where, wanted = f"{path}: column {name!r}", wishes.types.get(name)
    cells = [str(cell) for cell in counts.index]
    whole = number and all(re.fullmatch(rf"[+-]?[0-9]+([{re.escape(form.decimal)}.]0*)?", cell) for cell in cells)
    regression = (
        wishes.task == "regression"
        or wanted == "number"
        or (
            wishes.task is None
            and wanted is None
            and name not in wishes.values
            and number
            and not (whole and len(cells) <= MOST_CLASSES)
        )
    )
    if regression:
        if not number and wanted != "number":
            raise TableError(f"{where}: not numbers: must be numbers for a regression")
        return Column("number", (), missing)
    if name in wishes.values:
        return Column("category", wishes.values[name], missing)
    if len(cells) < 2:
        raise TableError(f"{where}: the same value in every record: must have at least two classes")
    if len(cells) > MOST_CATEGORIES:
        raise TableError(f"{where}: {len(cells)} different values: must be at most {MOST_CATEGORIES} classes")
    if counts.min() < 2:
        raise TableError(f"{where}: a class of one record: must have at least two, one to train and one to test")
    return Column("category", tuple(sorted_names(cells)), missing)
