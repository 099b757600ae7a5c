"""Records of a file of one's own: numbers, categories as columns of 0 and 1, silos and persons as numbers.

Nothing of a record is written anywhere from here: silos and persons lose their names, and a category that few
records have gets no column of its own, whose name would tell of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from silodp.datasets.base import Data, Task
from silodp.datasets.tabular import (
    MOST_CATEGORIES,
    MOST_CLASSES,
    Table,
    TableError,
    coded,
    is_coded,
    is_number,
    missing,
    numbers,
)

# Records that a category must have for a column of its own.
LEAST_OF_CATEGORY = 10

WHY_NOT = {
    "text": f"text with more than {MOST_CATEGORIES} different values",
    "date": "dates or times",
    "constant": "the same value in every record",
    "empty": "no values",
    "other": "neither numbers nor words",
}


@dataclass(frozen=True)
class OwnFile:
    """What is said of a file.

    Attributes:
        path: CSV or Parquet.
        target: the column that is predicted.
        silo: the column that says whose record it is; None where silos are cut otherwise.
        person: the column that says whom a record is about; None where everybody has one.
        ignore: columns that are not used.
        missing: "refuse", "drop" records with a missing value, or "mean": numbers are filled in when they are
            preprocessed, a missing category is a category that no column stands for.
        task: classification or regression; None to infer it from the target.
    """

    path: Path
    target: str
    silo: str | None = None
    person: str | None = None
    ignore: tuple[str, ...] = ()
    missing: str = "refuse"
    task: Task | None = None

    def features(self, table: Table) -> list[str]:
        """Columns that are features."""
        other = {self.target, self.silo, self.person, *self.ignore}
        return [name for name in table.names if name not in other]


def read_own(file: OwnFile) -> tuple[Data, tuple[str, ...], int]:
    """The records of a file, names of its features that are numbers, and how many records were dropped.

    Features are float32 (n, k): numbers as they are, NaN where `missing` is "mean" and there is none; of a category
    with two values one column, of others a column for each. `Data.silo` and `Data.person` are numbers 0, 1, …

    Raises:
        TableError: one line about the first thing that is wrong; no cell is shown.
    """
    table = Table(file.path)
    for name in (file.target, file.silo, file.person, *file.ignore):
        if name is not None and name not in table.names:
            raise TableError(f"{file.path}: no column is called {name!r}: must be one of {', '.join(table.names)}")
    said = [name for name in (file.target, file.silo, file.person) if name is not None]
    for name in said:
        if said.count(name) > 1:
            raise TableError(f"{file.path}: column {name!r}: target, silo and person must be different columns")
        if not is_coded(table.column(name)):
            raise TableError(f"{file.path}: column {name!r}: {WHY_NOT['other']}: must hold one or the other")
    names = file.features(table)
    if not names:
        raise TableError(f"{file.path}: no column is left as a feature")
    kinds = {name: table.kind(name) for name in names}
    for name, kind in kinds.items():
        if kind in WHY_NOT:
            allowed = f"must be listed under ignore, or be numbers or at most {MOST_CATEGORIES} categories"
            raise TableError(f"{file.path}: column {name!r}: {WHY_NOT[kind]}: {allowed}")
    present = _present(table, file, names)
    y, classes, class_names = _target(table, file, present)
    columns, sources = [], []
    for name in names:
        for category, column in _columns(table, name, kinds[name], present):
            columns.append(column)
            sources.append((name, category))
    labels = [f"{name}={category}" if category else name for name, category in sources]
    if twice := sorted({one for one in labels if labels.count(one) > 1}):
        raise TableError(f"{file.path}: two features would be called {twice[0]!r}: a column must have another name")
    x = np.empty((int(present.sum()), len(columns)), dtype=np.float32)
    for place in range(len(columns)):
        x[:, place] = columns[place]
        columns[place] = x[:0, 0]  # one column less in memory
    data = Data(
        x=x,
        y=y,
        classes=classes,
        feature_names=tuple(labels),
        class_names=class_names,
        silo=_codes(table, file.silo, present),
        person=_codes(table, file.person, present),
        sources=tuple(sources),
    )
    return data, tuple(name for name in names if kinds[name] == "number"), int((~present).sum())


def _present(table: Table, file: OwnFile, names: Sequence[str]) -> np.ndarray:
    """Records that are used, bool (rows,)."""
    needed = [name for name in (file.target, file.silo, file.person) if name is not None]
    present = np.ones(table.rows, dtype=bool)
    for name in [*needed, *names]:
        gone = missing(table.column(name))
        if not gone.any() or (file.missing == "mean" and name not in needed):
            continue
        if file.missing != "drop":
            row = int(np.flatnonzero(gone)[0]) + 1
            more = "" if file.missing == "mean" else " or mean (init: --missing)"
            allowed = f"must be filled in, or `missing` be drop{more}"
            raise TableError(
                f"{file.path}: row {row}, column {name!r}: missing, as in {int(gone.sum())} of {table.rows}: {allowed}"
            )
        present &= ~gone
    if not present.any():
        raise TableError(f"{file.path}: every record has a missing value: must be filled in, or `missing` be mean")
    return present


def _target(table: Table, file: OwnFile, present: np.ndarray) -> tuple[np.ndarray, int | None, tuple[str, ...]]:
    column = table.column(file.target)
    where = f"{file.path}: column {file.target!r}"
    if task_of(table, file) == "regression":
        if not is_number(column):
            raise TableError(f"{where}: not numbers: must be for a regression")
        y = numbers(column)[present]
        if not np.isfinite(y).all():
            raise TableError(f"{where}: an infinite value: must be finite")
        if y.min() == y.max():
            raise TableError(f"{where}: the same value in every record: must differ")
        return y, None, ()
    codes, found = coded(column, present)
    if len(found) < 2:
        raise TableError(f"{where}: the same value in every record: must have at least two classes")
    if len(found) > MOST_CATEGORIES:
        raise TableError(f"{where}: {len(found)} different values: must be at most {MOST_CATEGORIES} classes")
    if np.bincount(codes).min() < 2:
        raise TableError(f"{where}: a class of one record: must have at least two, one to train and one to test")
    return codes, len(found), tuple(found)


def task_of(table: Table, file: OwnFile) -> Task:
    """What is said, or: words, truth values and few whole numbers are classes, other numbers a target."""
    if file.task is not None:
        return file.task
    column = table.column(file.target)
    if not is_number(column):
        return "classification"
    values = numbers(column)
    different = pc.count_distinct(column, mode="only_valid").as_py()
    whole = bool((np.floor(values) == values)[~np.isnan(values)].all())
    return "classification" if whole and different <= MOST_CLASSES else "regression"


def _columns(table: Table, name: str, kind: str, present: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """What a column gives: categories, of a number "", and their features."""
    column = table.column(name)
    if kind == "number":
        values = numbers(column)[present].astype(np.float32)
        if np.isinf(values).any():
            row = int(np.flatnonzero(present)[np.flatnonzero(np.isinf(values))[0]]) + 1
            raise TableError(f"{table.path}: row {row}, column {name!r}: infinite or too large: must be finite")
        return [("", values)]
    known = present & ~missing(column)
    codes = np.full(len(present), -1)
    codes[known], found = coded(column, known)
    codes = codes[present]
    often = [place for place in range(len(found)) if (codes == place).sum() >= LEAST_OF_CATEGORY]
    # Of two, one column says all.
    kept = often[1:] if len(often) == len(found) == 2 else often
    return [(found[place], (codes == place).astype(np.float32)) for place in kept]


def _codes(table: Table, name: str | None, present: np.ndarray) -> np.ndarray:
    if name is None:
        return np.zeros(0, dtype=np.int64)
    return coded(table.column(name), present)[0]
