"""A CSV or Parquet file of somebody's own, column by column; what is wrong with it is said in one line.

No message, here or elsewhere, shows a cell: a value of a record must not reach a log.
"""

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

# Different words of a column up to which they are categories; a column with more is free text.
MOST_CATEGORIES = 50
# Different whole numbers of a target up to which they are classes.
MOST_CLASSES = 20
DELIMITERS = ",;\t|"


class TableError(ValueError):
    """A file that cannot be used: one line that names file, place and what is allowed, and shows no cell."""


class Table:
    """A file's columns; of a Parquet file each is read when it is asked for, and no other.

    Args:
        path: ends in .csv, .csv.gz, .tsv, .txt, .parquet or .pq.

    Raises:
        TableError: no such file, or one that is no table.
    """

    def __init__(self, path: Path):
        self.path = path
        if not path.is_file():
            raise TableError(f"{path}: no such file: must be a CSV or Parquet file")
        self._read: Callable[[str], pa.ChunkedArray]
        if path.suffix in (".parquet", ".pq"):
            try:
                file = pyarrow.parquet.ParquetFile(path)
            except (pa.ArrowInvalid, OSError):
                raise TableError(f"{path}: not a Parquet file") from None
            self.names = list(file.schema_arrow.names)
            self.rows: int = file.metadata.num_rows
            self._check_names()
            self._read = lambda name: file.read(columns=[name]).column(name)
        elif {".csv", ".tsv", ".txt"} & set(path.suffixes[-2:]):
            table = _read_csv(path)
            self.names, self.rows = table.column_names, table.num_rows
            self._check_names()
            self._read = table.column
        else:
            raise TableError(f"{path}: must end in .csv, .csv.gz, .tsv, .txt, .parquet or .pq")
        if not self.rows:
            raise TableError(f"{path}: no records below its header")

    def _check_names(self) -> None:
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise TableError(f"{self.path}: column {twice[0]!r} stands there more than once: names must be distinct")
        if broken := [place for place, name in enumerate(self.names, 1) if not name.isprintable()]:
            raise TableError(f"{self.path}: name of column {broken[0]}: must be printable and on one line")
        if "" in self.names:
            raise TableError(f"{self.path}: column {self.names.index('') + 1} has no name in the first line")

    def column(self, name: str) -> pa.ChunkedArray:
        """A column by its name: numbers, words (a plain string array) or dates; NaN counts as missing."""
        if name not in self.names:
            raise TableError(f"{self.path}: no column is called {name!r}: must be one of {', '.join(self.names)}")
        found = self._read(name)
        if pa.types.is_dictionary(found.type):
            found = found.cast(found.type.value_type)
        if _is_word(found.type):
            found = _as_numbers(found.cast(pa.string()))
        if pa.types.is_decimal(found.type):
            found = found.cast(pa.float64())
        if pa.types.is_floating(found.type):
            found = pc.if_else(pc.is_nan(found), pa.scalar(None, found.type), found)
        return found

    def kind(self, name: str) -> str:
        """What a column is as a feature: number, category, text, date, constant, empty or other."""
        column = self.column(name)
        if column.null_count == len(column):
            return "empty"
        if not is_coded(column):
            return "other"
        if is_number(column):
            ends = pc.min_max(column).as_py()  # counting a million numbers takes longer
            return "constant" if ends["min"] == ends["max"] and not column.null_count else "number"
        different = pc.count_distinct(column, mode="only_valid").as_py()
        if different == 1 and not column.null_count:
            return "constant"
        if not _is_word(column.type):
            return "date"
        return "category" if different <= MOST_CATEGORIES else "text"


def is_number(column: pa.ChunkedArray) -> bool:
    """Whether a column holds numbers, or true and false."""
    return pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)


def missing(column: pa.ChunkedArray) -> np.ndarray:
    """Where a column has no value, bool (n,)."""
    return pc.is_null(column).to_numpy(zero_copy_only=False)


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """A column of numbers as float64, NaN where there is none."""
    # Whole numbers beyond 2^53 lose digits; the message of a safe cast would show one.
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def is_coded(column: pa.ChunkedArray) -> bool:
    """Whether a column holds numbers, words or dates, which can name classes, silos and persons."""
    return is_number(column) or _is_word(column.type) or pa.types.is_temporal(column.type)


def coded(column: pa.ChunkedArray, present: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Values as numbers 0..k-1 in their own order, int64 (rows present,), and what they stand for.

    Numbers go by size and words by the alphabet, so that the codes depend on no order of records.
    """
    found = column.filter(pa.array(present)).combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks)
    values = pc.unique(found)
    values = values.take(pc.sort_indices(values))
    codes = pc.index_in(found, value_set=values).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [str(one.as_py()) for one in values]


def _is_word(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Words that are all numbers as numbers; others as they are, without blanks at their ends, empty ones missing."""
    column = pc.utf8_trim_whitespace(column)
    column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    if column.null_count == len(column):
        return column
    for kind in (pa.int64(), pa.float64()):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            pass
    return column


def _read_csv(path: Path) -> pa.Table:
    names, delimiter = _header(path)
    if len(names) < 2:
        raise TableError(f"{path}: one column: must be a table whose first line names its columns, with , ; or tabs")
    bad: list[tuple[int | None, int]] = []

    def skip(row: pyarrow.csv.InvalidRow) -> str:
        bad.append((row.number, row.actual_columns))
        return "skip"

    parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip)

    def read(as_words: bool, threads: bool) -> pa.Table:
        types = dict.fromkeys(names, pa.string()) if as_words else None
        point = "," if delimiter == ";" else "."  # words that are numbers with a point are found all the same
        convert = pyarrow.csv.ConvertOptions(strings_can_be_null=True, column_types=types, decimal_point=point)
        options = pyarrow.csv.ReadOptions(use_threads=threads)
        return pyarrow.csv.read_csv(path, options, parse, convert)

    try:
        try:
            table = read(False, True)
        except pa.ArrowInvalid:
            # Types are guessed from the first block: a later one may hold what does not fit.
            bad.clear()
            table = read(True, True)
        if bad:
            bad.clear()
            read(True, False)  # rows are counted where one thread reads
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise TableError(f"{path}: cannot be read as CSV: must be UTF-8 text with one record a line") from None
    if bad:
        number, found = bad[0]
        where = "a row" if number is None else f"row {number - 1}"
        raise TableError(f"{path}: {where} has {found} values: must have {len(names)}, as the first line")
    return table


def _header(path: Path) -> tuple[list[str], str]:
    """Names of the columns, and what stands between them."""
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            line = stream.readline(1_000_000)
    except (UnicodeDecodeError, OSError):
        raise TableError(f"{path}: cannot be read as CSV: must be UTF-8 text with one record a line") from None
    delimiter = max(DELIMITERS, key=line.count)
    return next(csv.reader([line], delimiter=delimiter), []), delimiter
