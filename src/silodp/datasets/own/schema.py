"""What the columns of a file are: `silodp init` decides once, the run file shows it, and every reading follows it."""

import dataclasses
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# Marks for thousands by their names in a run file.
THOUSANDS = {"": "", ",": ",", ".": ".", "blank": " \u00a0\u202f", "apostrophe": "'\u2019"}
TYPES = ("number", "category", "boolean", "date", "name", "ignored")


class TableError(ValueError):
    """A file that cannot be used: one line that names file, place and what is allowed, and shows no cell."""


@dataclass(frozen=True)
class Form:
    """How a text file is written.

    Attributes:
        thousands: a name in `THOUSANDS`.
        units_row: whether row 1 holds units, and no record.
        last_row: the last row that is a record, where totals or notes follow; None where none do.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    units_row: bool = False
    last_row: int | None = None

    @property
    def literal(self) -> str:
        """A regular expression of numbers in this form."""
        mark, point = THOUSANDS[self.thousands], re.escape(self.decimal)
        grouped = rf"|[1-9][0-9]{{0,2}}(?:[{re.escape(mark)}][0-9]{{3}})+(?:{point}[0-9]*)?" if mark else ""
        return rf"[+-]?(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+{grouped})(?:[eE][+-]?[0-9]+)?"


@dataclass(frozen=True)
class Column:
    """One column: its type, the values of a category or class or the two words of a boolean, and missing words."""

    type: str
    values: tuple[str, ...] = ()
    missing_words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schema:
    """A file's form, its columns by name, their roles, and what becomes of a missing value.

    The target's column is a category (its values are the classes) or a number; those of silos and persons are names.
    `missing`: "refuse", "drop" the record, or "mean" (numbers are filled in when they are preprocessed).
    """

    target: str
    columns: Mapping[str, Column]
    form: Form = Form()
    silo: str | None = None
    person: str | None = None
    missing: str = "refuse"

    @property
    def roles(self) -> list[str]:
        return [name for name in (self.target, self.silo, self.person) if name is not None]

    @property
    def classes(self) -> tuple[str, ...]:
        return self.columns[self.target].values

    @property
    def features(self) -> dict[str, Column]:
        used = ("number", "category", "boolean")
        return {name: one for name, one in self.columns.items() if one.type in used and name not in self.roles}

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(name for name, column in self.features.items() if column.type == "number")

    @property
    def feature_values(self) -> list[tuple[str, str | None]]:
        """(column, value) of every feature in order: None for a number, of a boolean its second word."""
        found: list[tuple[str, str | None]] = []
        for name, column in self.features.items():
            values = column.values[1:] if column.type == "boolean" else column.values
            found += [(name, None)] if column.type == "number" else [(name, value) for value in values]
        return found

    def as_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(dataclasses.asdict(self)))


def schema_from(stored: Mapping[str, Any]) -> Schema:
    """The schema that `Schema.as_json` stored."""
    columns = {name: column_from(**column) for name, column in stored["columns"].items()}
    return Schema(**{**stored, "form": Form(**stored["form"]), "columns": columns})


def column_from(type: str, values: Iterable[str] = (), missing_words: Iterable[str] = ()) -> Column:
    return Column(type, tuple(values), tuple(missing_words))


def sorted_names(names: Iterable[str]) -> list[str]:
    """Names that are all whole numbers by value and then as text, others by code point."""
    distinct = sorted(set(names))
    whole = all(re.fullmatch("[+-]?[0-9]+", name) for name in distinct)
    return sorted(distinct, key=lambda name: (Decimal(name), name)) if whole else distinct


def cell_shape(cell: str) -> str:
    """What a message shows in place of a cell: digits as 9, letters and their marks as a."""
    kinds = {"N": "9", "L": "a", "M": "a"}
    shape = "".join(kinds.get(unicodedata.category(letter)[0], letter) for letter in cell)
    return repr(shape if len(shape) <= 30 else shape[:27] + "...")
