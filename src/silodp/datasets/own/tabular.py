"""A user's CSV or Parquet file as a pandas frame, and what each of its columns is.

No message, here or elsewhere, shows a cell: a value of a record must not reach a log.
"""

import contextlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

# Different words of a column up to which they are categories; a column with more is free text.
MOST_CATEGORIES = 50
# Different whole numbers of a target up to which they are classes.
MOST_CLASSES = 20
# Share of words in a column of numbers up to which they are damaged numbers.
_DAMAGED = 0.01
_DELIMITERS = ",;\t|"
# Words that stand for a missing value between numbers.
_STRAY = {"?", "-", "--", ".", "n/a", "na", "#n/a", "nan", "null", "none", "unknown", "missing"}
_PACKED = (".gz", ".bz2", ".zst")


class TableError(ValueError):
    """A file that cannot be used: one line that names file, place and what is allowed, and shows no cell."""


def read_frame(path: Path, encoding: str | None = None) -> pd.DataFrame:
    """The columns of a file: nullable numbers, words without blanks at their ends, or dates; an empty word is missing.

    So is a word such as ? or n/a in a column that else holds numbers; `attrs["stray"]` has the rows by column.

    `path`: ends in .csv, .tsv, .txt, also packed (.gz, .bz2, .zst), .parquet or .pq. `encoding` of text: default UTF-8.
    TableError: no such file, or the file is no table.
    """
    if not path.is_file():
        raise TableError(f"{path}: no such file: must be a CSV or Parquet file")
    parquet = path.suffix in (".parquet", ".pq")
    plain = path.with_suffix("") if path.suffix in _PACKED else path
    if not parquet and plain.suffix not in (".csv", ".tsv", ".txt"):
        raise TableError(f"{path}: must end in .csv, .tsv, .txt, each also with .gz, .bz2 or .zst, or .parquet or .pq")
    try:
        names, frame = _read_parquet(path) if parquet else _read_csv(path, encoding or "utf-8-sig")
    except pd.errors.ParserError as error:
        raise TableError(f"{path}: cannot be read as CSV: {' '.join(str(error).split())}") from None
    except (UnicodeError, LookupError):
        said = f"not text in {encoding}" if encoding else "not UTF-8 text"
        allowed = "the encoding must be given, as in --encoding latin-1 (dataset.encoding)"
        raise TableError(f"{path}: cannot be read as CSV: {said}: {allowed}") from None
    except NotImplementedError:
        raise TableError(f"{path}: a column has a type that cannot be read: must be numbers, words or dates") from None
    except (ValueError, OSError, EOFError):
        text = "cannot be read as CSV: must be UTF-8 text with one record a line"
        raise TableError(f"{path}: {'not a Parquet file' if parquet else text}") from None
    _check_names(path, names)
    if len(frame.columns) != len(names) or not isinstance(frame.index, pd.RangeIndex):
        raise TableError(f"{path}: records have more values than the {len(names)} names of the first line")
    if frame.empty:
        raise TableError(f"{path}: no records below its header")
    typed = frame.apply(_typed)
    for name in filter(lambda name: is_word(typed[name]) and kind_of(typed[name]) == "text", typed):
        damaged = np.flatnonzero(pd.to_numeric(typed[name], errors="coerce").isna() & typed[name].notna())
        if len(damaged) <= _DAMAGED * len(typed):
            raise TableError(f"{path}: column {name!r}: record {damaged[0] + 1} is no number, as nearly all others are")
    missing = {name: np.flatnonzero(typed[name].isna() & ~_empty(frame[name])) + 1 for name in typed}
    typed.attrs["stray"] = {name: rows.tolist() for name, rows in missing.items() if len(rows)}
    return typed


def _empty(column: pd.Series) -> pd.Series:
    return column.isna() | (column.str.strip() == "").fillna(True) if is_word(column) else column.isna()


def _read_parquet(path: Path) -> tuple[list[str], pd.DataFrame]:
    """Names and columns; numbers of 16 bits, for which pandas has no type, become numbers of 32."""
    schema = pyarrow.parquet.read_schema(path)
    halves = [field.name for field in schema if field.type == pa.float16()]
    others = [name for name in schema.names if name not in halves]
    frame = pd.read_parquet(path, columns=others if halves else None, dtype_backend="numpy_nullable")
    for name in halves:
        values = pyarrow.parquet.read_table(path, columns=[name])[name].cast(pa.float32())
        frame[name] = values.to_pandas().astype("Float32")
    return schema.names, frame[schema.names] if halves else frame


def _read_csv(path: Path, encoding: str) -> tuple[list[str], pd.DataFrame]:
    """Names of the columns as the first line has them, and the records."""

    def stream() -> pa.NativeFile:
        return pa.input_stream(str(path), compression="detect")

    with stream() as opened:
        line = opened.read(1_000_000).split(b"\n")[0].decode(encoding)
    delimiter = max(_DELIMITERS, key=line.count)
    form = {"sep": delimiter, "encoding": encoding, "skipinitialspace": True}
    names = pd.read_csv(stream(), **form, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
    # Types are those of whole columns, and floats are exact.
    form |= {"low_memory": False, "float_precision": "round_trip", "decimal": "," if delimiter == ";" else "."}
    return names, pd.read_csv(stream(), **form, dtype_backend="numpy_nullable")


def _check_names(path: Path, names: list[str]) -> None:
    if len(names) < 2:
        raise TableError(f"{path}: one column: must be a table whose first line names its columns, with , ; or tabs")
    for place, name in enumerate(names, 1):
        if not name or not name.isprintable():
            raise TableError(f"{path}: name of column {place}: must be given, printable and on one line")
        if names.count(name) > 1:
            raise TableError(f"{path}: column {name!r} is named more than once: names must be distinct")


def _typed(column: pd.Series) -> pd.Series:
    """A column of words that are all numbers, or all dates, as numbers or dates; others as they are, without blanks."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype).convert_dtypes()
    if pd.api.types.infer_dtype(column, skipna=True) == "decimal":
        return column.astype("Float64")
    if not is_word(column):
        return column
    column = column.str.strip().replace("", pd.NA)
    for kind in ("Int64", "Float64", None):
        with contextlib.suppress(ValueError, TypeError):
            return column.astype(kind) if kind else pd.to_datetime(column, format="ISO8601")
    known = column.mask(column.str.casefold().isin(_STRAY))
    if known.isna().all():
        return column
    with contextlib.suppress(ValueError, TypeError):
        return known.astype("Float64")
    return column


def kind_of(column: pd.Series) -> str:
    """What a column is as a feature: number, category, text, date, constant, empty or other."""
    if column.isna().all():
        return "empty"
    if not is_coded(column):
        return "other"
    different = column.nunique()
    if different == 1 and not column.isna().any():
        return "constant"
    if is_number(column):
        return "number"
    if not is_word(column):
        return "date"
    return "category" if different <= MOST_CATEGORIES else "text"


def is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def is_word(column: pd.Series) -> bool:
    return pd.api.types.infer_dtype(column, skipna=True) == "string"


def is_coded(column: pd.Series) -> bool:
    """Whether a column holds numbers, words or dates, which can name classes, silos and persons."""
    kinds = {"string", "date", "datetime", "datetime64", "time"}
    return is_number(column) or pd.api.types.infer_dtype(column, skipna=True) in kinds


def numbers(column: pd.Series) -> np.ndarray:
    """A column of numbers as float64, NaN where a value is missing."""
    return column.to_numpy(np.float64, na_value=np.nan)


def coded(column: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Values as numbers 0..k-1, int64 (n,), −1 where one is missing, and what the numbers stand for.

    Numbers go by size and words by the alphabet, so that the codes depend on no order of records.
    """
    codes, values = pd.factorize(column, sort=True)
    return codes.astype(np.int64), [str(value) for value in values]
