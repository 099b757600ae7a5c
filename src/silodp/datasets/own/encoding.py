"""Records of a file by its schema: numbers, columns of 0 and 1 for categories, silos and persons as numbers.

Nothing of a record is written anywhere from here: persons lose their names, and a category that few records have
is not in the schema that `silodp init` proposes, as a column's name would tell of them.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from silodp.datasets.base import Data
from silodp.datasets.own.parsing import MISSING, UNKNOWN, cell_error, parse_column, read_table, records_of
from silodp.datasets.own.schema import Schema, TableError, sorted_names


def read_records(
    path: Path,
    schema: Schema,
    frame: pd.DataFrame | None = None,
    known: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> tuple[Data, int]:
    """The records of a file, and how many were dropped for a missing value.

    Features are float64 (n, k) in the order of `schema.feature_values`: numbers as they are, NaN where `missing` is
    "mean" and a value is missing. A category that the schema does not have is 0 in all its columns.
    `Data.silo` and `Data.person` are numbers 0, 1, …

    `frame` has the columns, and `known` the values of some, where they have been read. TableError: a line for each
    column that cannot be read or has gaps, or one about another fault, without a cell.
    """
    frame = records_of(path, read_table(path, schema.form) if frame is None else frame, schema)
    _check_columns(path, frame, schema)
    names = feature_names(path, schema)
    names_used = (*schema.roles, *schema.features)
    parsed: dict[str, np.ndarray] = {}
    faults: list[str] = []
    for name in names_used:
        try:
            parsed[name] = known[name] if name in known else parse_column(frame, name, schema, path)
        except TableError as error:
            faults.append(str(error))
    needed = [name for name in parsed if schema.missing != "mean" or name in schema.roles]
    gaps = {name: is_missing(parsed[name]) for name in needed}
    if schema.missing != "drop":
        faults += [_gap(path, frame[name], gap, name in schema.roles) for name, gap in gaps.items() if gap.any()]
    if faults:
        raise TableError("\n".join(faults))
    for name in (schema.target, *schema.features):
        unknown = parsed[name] == UNKNOWN
        if unknown.any() and (name == schema.target or schema.columns[name].type == "boolean"):
            allowed = f"must be one of the {len(schema.columns[name].values)} in dataset.columns"
            raise cell_error(path, frame[name], unknown, "no value of the schema", allowed)
    present = ~np.any([*gaps.values()], axis=0)
    if not present.any():
        raise TableError(f"{path}: every record has a missing value: must be filled in, or `missing` be mean")
    parsed = {name: values[present] for name, values in parsed.items()}
    y = parsed[schema.target]
    if not schema.classes and y.min() == y.max():
        raise TableError(f"{path}: column {schema.target!r}: the same value in every record: must differ")
    x = encode_features(parsed, schema)
    silo, silo_names = _numbered(parsed.get(schema.silo or ""))
    data = Data(
        x=x,
        y=y,
        classes=len(schema.classes) or None,
        feature_names=names,
        class_names=schema.classes,
        silo=silo,
        silo_names=silo_names,
        person=_numbered(parsed.get(schema.person or ""))[0],
    )
    return data, int((~present).sum())


def read_registered(files: dict[str, Path], schema: Schema, frame: pd.DataFrame | None = None) -> Data:
    """The records of a data set that is one file, with columns as a user's file has, in float32."""
    (path,) = files.values()
    data = read_records(path, schema, frame)[0]
    return replace(data, x=data.x.astype(np.float32))


def feature_names(path: Path, schema: Schema) -> tuple[str, ...]:
    names = tuple(name if value is None else f"{name}={value}" for name, value in schema.feature_values)
    if twice := [name for name in names if names.count(name) > 1]:
        raise TableError(f"{path}: two features would be called {twice[0]!r}: a column must be renamed")
    if not names:
        raise TableError(f"{path}: no column is left as a feature")
    return names


def encode_features(parsed: Mapping[str, np.ndarray], schema: Schema) -> np.ndarray:
    """Features float64 (n, k) of parsed columns, in training as in prediction."""
    columns = [
        parsed[name] if value is None else parsed[name] == schema.columns[name].values.index(value)
        for name, value in schema.feature_values
    ]
    return np.column_stack([np.asarray(values, dtype=np.float64) for values in columns])


def is_missing(values: np.ndarray) -> np.ndarray:
    """Where a parsed column has no value, bool (n,)."""
    if values.dtype == object:
        return values == ""
    return np.isnan(values) if values.dtype.kind == "f" else values == MISSING


def _check_columns(path: Path, frame: pd.DataFrame, schema: Schema) -> None:
    for name in (*schema.roles, *schema.features):
        if schema.roles.count(name) > 1:
            raise TableError(f"{path}: column {name!r}: target, silo and person must be different columns")
        if name not in frame:
            raise TableError(f"{path}: no column is called {name!r}: must be one of {', '.join(frame)}")
    for name in frame:
        if name not in schema.columns:
            raise TableError(f"{path}: column {name!r}: not in dataset.columns: must be there, as `ignored` if unused")


def _gap(path: Path, column: pd.Series, missing: np.ndarray, role: bool) -> str:
    """What is wrong with a column where values are missing, bool (n,)."""
    first = int(np.argmax(missing))
    row, count = column.index[first] + 1, f"{int(missing.sum())} of {len(column)}"
    allowed = f"must be filled in, or `missing` be drop{'' if role else ' or mean (init: --missing)'}"
    notes = f"; notes below the data: --last-row {row - 1}" if missing[first:].all() else ""
    return f"{path}: row {row}, column {column.name!r}: missing, as in {count}: {allowed}{notes}"


def _numbered(names: np.ndarray | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Names as places in their order, int64 (n,), and the order."""
    if names is None:
        return np.zeros(0, dtype=np.int64), ()
    order = sorted_names(names)
    return pd.Index(order, dtype=object).get_indexer(names).astype(np.int64), tuple(order)
