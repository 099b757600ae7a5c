"""Records of a user's file: numbers, categories as columns of 0 and 1, silos and persons as numbers.

Nothing of a record is written anywhere from here: silos and persons lose their names, and a category that few
records have gets no column, as the column's name would tell of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from silodp.datasets.base import Data, Task
from silodp.datasets.own.tabular import (
    MOST_CATEGORIES,
    MOST_CLASSES,
    TableError,
    coded,
    is_coded,
    is_number,
    kind_of,
    numbers,
    read_frame,
)

# Records that a category must have for a column.
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
    """What a run file says of a data file.

    Attributes:
        silo: the column that names a record's silo; None where silos are cut otherwise.
        person: the column that names the person of a record; None where every person has one record.
        missing: "refuse", "drop" records with a missing value, or "mean": numbers are filled in when they are
            preprocessed, and no column stands for a missing category.
        task: classification or regression; None to infer it from the target.
        categories: categories of a column of words, where they are known beforehand; any other value has no column.
        classes: likewise of the target; any other value is refused.
        encoding: of a text file; None for UTF-8.
    """

    path: Path
    target: str
    silo: str | None = None
    person: str | None = None
    ignore: tuple[str, ...] = ()
    missing: str = "refuse"
    task: Task | None = None
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    classes: tuple[str, ...] | None = None
    encoding: str | None = None

    @property
    def named(self) -> list[str]:
        return [name for name in (self.target, self.silo, self.person) if name is not None]

    def features(self, frame: pd.DataFrame) -> list[str]:
        return [name for name in frame.columns if name not in {*self.named, *self.ignore}]


def read_own(file: OwnFile, frame: pd.DataFrame | None = None) -> tuple[Data, tuple[str, ...], int]:
    """The records of a file, names of its features that are numbers, and how many records were dropped.

    Features are float32 (n, k): numbers as they are, NaN where `missing` is "mean" and a value is missing; of a
    category with two values one column, of others a column for each. `Data.silo` and `Data.person` are numbers 0, 1, …

    `frame` has the columns, where they have been read. TableError: one line about the first fault, without a cell.
    """
    frame = read_frame(file.path, file.encoding) if frame is None else frame
    for name in (*file.named, *file.ignore):
        if name not in frame:
            raise TableError(f"{file.path}: no column is called {name!r}: must be one of {', '.join(frame)}")
    for name in file.named:
        if file.named.count(name) > 1:
            raise TableError(f"{file.path}: column {name!r}: target, silo and person must be different columns")
        if not is_coded(frame[name]):
            raise TableError(f"{file.path}: column {name!r}: {WHY_NOT['other']}: must hold one or the other")
    kinds = {name: "category" if name in file.categories else kind_of(frame[name]) for name in file.features(frame)}
    if unknown := sorted(set(file.categories) - set(kinds)):
        raise TableError(f"{file.path}: categories: {unknown[0]!r}: must be a column that is a feature")
    if not kinds:
        raise TableError(f"{file.path}: no column is left as a feature")
    for name, kind in kinds.items():
        if kind in WHY_NOT:
            allowed = f"must be listed under ignore, or be numbers or at most {MOST_CATEGORIES} categories"
            raise TableError(f"{file.path}: column {name!r}: {WHY_NOT[kind]}: {allowed}")
    present = _present(frame, file, list(kinds))
    used = frame[present]
    y, class_names = _target(used[file.target], file)
    features = {}
    for name, kind in kinds.items():
        for label, values in _number(used[name], file) if kind == "number" else _categories(used[name], file):
            if label in features:
                raise TableError(f"{file.path}: two features would be called {label!r}: a column must be renamed")
            features[label] = values
    data = Data(
        x=np.column_stack(list(features.values())),
        y=y,
        classes=len(class_names) or None,
        feature_names=tuple(features),
        class_names=class_names,
        silo=_coded(used, file.silo)[0],
        silo_names=tuple(_coded(used, file.silo)[1]),
        person=_coded(used, file.person)[0],
    )
    return data, tuple(name for name, kind in kinds.items() if kind == "number"), int((~present).sum())


def read_file_of(files: dict[str, Path], target: str, silo: str) -> Data:
    """The records of a data set that is one file, with columns as a user's file has."""
    (path,) = files.values()
    return read_own(OwnFile(path, target=target, silo=silo))[0]


def _present(frame: pd.DataFrame, file: OwnFile, names: Sequence[str]) -> pd.Series:
    """Records that are used, bool (rows,)."""
    gaps = frame[file.named if file.missing == "mean" else [*file.named, *names]].isna()
    if file.missing != "drop" and gaps.any(axis=None):
        name = gaps.columns[gaps.any()][0]
        row, count = int(np.flatnonzero(gaps[name])[0]) + 1, f"{int(gaps[name].sum())} of {len(frame)}"
        more = "" if name in file.named else " or mean (init: --missing)"
        allowed = f"must be filled in, or `missing` be drop{more}"
        raise TableError(f"{file.path}: row {row}, column {name!r}: missing, as in {count}: {allowed}")
    present = ~gaps.any(axis=1)
    if not present.any():
        raise TableError(f"{file.path}: every record has a missing value: must be filled in, or `missing` be mean")
    return present


def _target(column: pd.Series, file: OwnFile) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels 0..k-1 and the names of classes, or targets of a regression and no names."""
    where = f"{file.path}: column {file.target!r}"
    if (file.task or inferred_task(column)) == "regression":
        if not is_number(column):
            raise TableError(f"{where}: not numbers: must be numbers for a regression")
        y = numbers(column)
        if not np.isfinite(y).all():
            raise TableError(f"{where}: an infinite value: must be finite")
        if y.min() == y.max():
            raise TableError(f"{where}: the same value in every record: must differ")
        return y, ()
    if file.classes is not None:
        known = pd.Index(file.classes).get_indexer(column.astype(str))
        if (known < 0).any():
            raise TableError(f"{where}: row {int(np.argmax(known < 0)) + 1}: must be one of the declared classes")
        return known.astype(np.int64), file.classes
    codes, names = coded(column)
    if len(names) < 2:
        raise TableError(f"{where}: the same value in every record: must have at least two classes")
    if len(names) > MOST_CATEGORIES:
        raise TableError(f"{where}: {len(names)} different values: must be at most {MOST_CATEGORIES} classes")
    if np.bincount(codes).min() < 2:
        raise TableError(f"{where}: a class of one record: must have at least two, one to train and one to test")
    return codes, tuple(names)


def inferred_task(column: pd.Series) -> Task:
    """Words, truth values and few different whole numbers are classes, other numbers a regression's target."""
    if not is_number(column):
        return "classification"
    whole = bool((np.floor(numbers(column)) == numbers(column)).all())
    return "classification" if whole and column.nunique() <= MOST_CLASSES else "regression"


def _number(column: pd.Series, file: OwnFile) -> list[tuple[str, np.ndarray]]:
    values = numbers(column).astype(np.float32)
    if np.isinf(values).any():
        row = int(column.index[np.isinf(values)][0]) + 1
        raise TableError(f"{file.path}: row {row}, column {column.name!r}: infinite or too large: must be finite")
    return [(str(column.name), values)]


def _categories(column: pd.Series, file: OwnFile) -> list[tuple[str, np.ndarray]]:
    """A feature of 0 and 1 for each category; for two categories one feature, the second's."""
    codes, _ = coded(column)
    kept, all_of_them = categories_of(column, file)
    shown = kept[1:] if all_of_them and len(kept) == 2 else kept
    words = column.astype(str)
    return [(f"{column.name}={name}", ((words == name) & (codes >= 0)).to_numpy(np.float32)) for name in shown]


def categories_of(column: pd.Series, file: OwnFile) -> tuple[list[str], bool]:
    """A column's declared categories, or those that are frequent enough, and whether there are no others."""
    if column.name in file.categories:
        return list(file.categories[str(column.name)]), True
    codes, names = coded(column)
    often = [name for place, name in enumerate(names) if (codes == place).sum() >= LEAST_OF_CATEGORY]
    return often, len(often) == len(names)


def _coded(frame: pd.DataFrame, name: str | None) -> tuple[np.ndarray, list[str]]:
    return (np.zeros(0, dtype=np.int64), []) if name is None else coded(frame[name])
