"""A file's cells, and their values by a schema, column by column; no message shows a cell."""

import collections
import csv
import gzip
import io
import json
import re
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from silodp.datasets.own.schema import THOUSANDS, Column, Form, Schema, TableError, cell_shape

# A category's code of a missing value, and of a value that the schema does not have.
MISSING, UNKNOWN = -1, -2
# Words of a row that sums up the records.
_TOTALS = ("total", "subtotal", "sum", "mean", "average", "summe", "gesamt", "mittelwert")
# What typesetting has for a hyphen before a number.
MINUS = "\u2212"
# Whole numbers below this are exact in float64.
_EXACT = 2**53
# An id that a program wrote as a number with an exponent: several may have become one.
SHORTENED = r"[+-]?[0-9]([.,][0-9]+)?[eE]\+?[0-9]{2,3}"


def is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def read_bytes(path: Path) -> bytes:
    """The content of a text file, unpacked; TableError where there is none."""
    if not path.is_file():
        raise TableError(f"{path}: no such file: must be a CSV or Parquet file")
    packed = path.suffix.lower() == ".gz"
    if (path.with_suffix("") if packed else path).suffix.lower() not in (".csv", ".tsv", ".txt"):
        raise TableError(f"{path}: must end in .csv, .tsv or .txt, each also with .gz, or in .parquet")
    try:
        return gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    except (OSError, EOFError, ValueError):
        raise TableError(f"{path}: cannot be unpacked: must be a whole {path.suffix} file") from None


def decode(path: Path, data: bytes, encoding: str) -> str:
    """The text, with \\n at the ends of lines; TableError with the first row that is not in this encoding."""
    is_utf8 = encoding.lower() in ("utf-8", "utf8")
    allowed = "the encoding must be given, as in --encoding cp1252 (dataset.form.encoding)"
    try:
        text = data.decode("utf-8-sig" if is_utf8 else encoding)
    except LookupError:
        raise TableError(f"{path}: no encoding is called {encoding!r}: --encoding must be as in latin-1") from None
    except UnicodeError as error:
        row, lines = data[: getattr(error, "start", 0)].count(b"\n"), data.decode("utf-8", "replace").split("\n")
        if is_utf8 and any(not line.isascii() and "\ufffd" not in line for line in lines):
            allowed = "other rows are UTF-8: the file mixes encodings and must be saved again"
        raise TableError(f"{path}: row {row}: not text in {encoding}: {allowed}") from None
    # Bytes 80 to 9f of latin-1 are letters of another encoding, and zeros are halves of UTF-16.
    if ("\0" in text or not text.isascii()) and (control := re.search("[\0\x80-\x9f]", text)):
        row, allowed = text[: control.start()].count("\n"), "must be another, as in --encoding cp1252 or utf-16-le"
        raise TableError(f"{path}: row {row}: control characters, so no text in {encoding}: {allowed}")
    return text.replace("\ufeff", "").replace("\r\n", "\n").replace("\r", "\n")


def read_table(path: Path, form: Form, least: int = 2) -> pd.DataFrame:
    """The columns of a file as text without blanks at its ends, "" where a cell is empty; of Parquet with its types.

    `attrs["notes"]`: what was left out. The index counts rows from 0. TableError: no such file, or no table.
    """
    if is_parquet(path):
        frame = _read_parquet(path, least)
    else:
        text = decode(path, read_bytes(path), form.encoding)
        text = text.partition("\n")[2] if text[:4].lower() == "sep=" else text
        lines = csv.reader(io.StringIO(text), delimiter=form.separator, skipinitialspace=True)
        try:
            first = [next(lines, []), next(lines, [])]
            # Separators at the lines' ends, or names of rows as R has them.
            one_more, numbered = len(first[1]) == len(first[0]) + 1, first[1][-1:] != [""]
            if one_more:
                text = form.separator + text if numbered else text.replace("\n", form.separator + "\n", 1)
            keys = {"dtype": str, "na_filter": False, "skipinitialspace": True}
            frame = pd.read_csv(io.StringIO(text), sep=form.separator, header=None, **keys)
            if len(frame) < text.rstrip("\n").count("\n") + 1:
                # A quote without its partner swallows rows: what follows it is no separator.
                strict = csv.reader(io.StringIO(text), delimiter=form.separator, skipinitialspace=True, strict=True)
                collections.deque(strict, maxlen=0)
        except pd.errors.EmptyDataError:
            raise TableError(f"{path}: cannot be read as CSV: must be text with one record a line") from None
        except (pd.errors.ParserError, csv.Error) as error:
            allowed = "line 1 must name every column, each row have as many cells, and each quote a partner"
            raise TableError(f"{path}: cannot be read as CSV: {' '.join(str(error).split())}: {allowed}") from None
        frame = frame.fillna("").apply(lambda column: column.str.strip())
        frame.columns = pd.Index(unicodedata.normalize("NFC", name) for name in frame.iloc[0])
        frame = frame.iloc[1:].reset_index(drop=True)
        if one_more and not _explains_cell(text, frame, form, numbered):
            wrong = "line 1 has a name less than the rows, for names of rows or a cell with a separator, as 1,5"
            allowed = "line 1 must name every column, each row have as many cells (names of rows a name, 1,5 quotes)"
            raise TableError(f"{path}: cannot be read as CSV: {wrong}: {allowed}")
        for row in np.flatnonzero(frame.iloc[:, 0] == frame.columns[0]):
            if (frame.iloc[row] == frame.columns).all():
                raise TableError(f"{path}: row {row + 1}: the header stands here again: must be removed")
        frame.attrs["notes"] = []
        if frame.columns[-1] == "" and (frame.iloc[:, -1] == "").all():
            frame = frame.iloc[:, :-1]
            frame.attrs["notes"] = ["a last column without name and values is left out (separators at the lines' ends)"]
        if frame.shape[1] > 1 and frame.columns[0] == "":
            notes = [*frame.attrs["notes"], "a first column without a name is left out, as an index of rows"]
            frame = frame.iloc[:, 1:]
            frame.attrs["notes"] = notes
        _check_names(path, frame.columns.tolist(), least)
    if frame.empty:
        raise TableError(f"{path}: no records below its header")
    return frame


def _explains_cell(text: str, frame: pd.DataFrame, form: Form, numbered: bool) -> bool:
    """Whether the cell that rows have and line 1 has not is a row's name or nothing, and no half of another cell."""
    if form.separator != ",":
        return not (numbered and frame.iloc[:, 0].duplicated().any())
    # A decimal comma gives a row a cell more, too; R counts rows in quotes.
    if numbered:
        return re.findall('^"([0-9]+)",', text, re.MULTILINE) == [str(row) for row in range(1, len(frame) + 1)]
    return not all(re.search("[0-9],[0-9]", line) for line in text.splitlines()[1:])


def _read_parquet(path: Path, least: int) -> pd.DataFrame:
    if not path.is_file():
        raise TableError(f"{path}: no such file: must be a CSV or Parquet file")
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise TableError(f"{path}: not a Parquet file") from None
    about = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    if len(about.get("column_indexes", ())) > 1:
        raise TableError(f"{path}: names of columns have two levels: must have one")
    unnamed = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
    # An index that counts is no column of the file, but may have a name.
    counted = [one for one in about.get("index_columns", ()) if isinstance(one, dict) and one.get("name")]
    table, fields = table.drop_columns(unnamed), []
    # pandas hides the name of an index where a column has it too.
    hidden = [one for one in about.get("columns", ()) if one.get("field_name") in unnamed and one.get("name")]
    _check_names(path, [*table.column_names, *(index["name"] for index in counted + hidden)], least)
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        kind = pa.float32() if kind == pa.float16() else pa.float64() if pa.types.is_decimal(kind) else kind
        fields.append(field.with_type(kind))
    table = table.cast(pa.schema(fields)) if table.schema.types != [field.type for field in fields] else table
    frame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    frame.columns = pd.Index(unicodedata.normalize("NFC", name) for name in frame.columns)
    for index in counted:
        frame[index["name"]] = np.arange(index["start"], index["stop"], index["step"])
    frame.attrs["notes"] = ["an index without a name is left out"] if unnamed else []
    return frame


def _check_names(path: Path, names: list[str], least: int) -> None:
    if len(names) < least:
        allowed = "must be a table whose first line names its columns, with , ; | or tabs (--separator)"
        raise TableError(f"{path}: one column: {allowed}")
    for place, name in enumerate(names, 1):
        if not name or not name.isprintable():
            raise TableError(f"{path}: name of column {place}: must be given, printable and on one line")
        if names.count(name) > 1:
            raise TableError(f"{path}: column {name!r} is named more than once: names must be distinct")


def is_typed(column: pd.Series) -> bool:
    """Whether a column has numbers or truth values by its type, and no text."""
    return pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)


def is_scalar(column: pd.Series) -> bool:
    """Whether cells are numbers, words or times, and not lists or bytes."""
    kind = getattr(column.dtype, "pyarrow_dtype", None)
    return kind is None or not (pa.types.is_nested(kind) or pa.types.is_binary(kind))


def cell_texts(column: pd.Series) -> pd.Series:
    """Cells as text, "" where one is missing, and zero without a sign."""
    # Cells of a text file are stripped, and there.
    is_read = column.dtype == "str" and not column.hasnans
    texts = column if is_read else column.astype(str).where(column.notna(), "").astype(str).str.strip()
    zeros = matches(texts, f"[+{MINUS}-]0(?:[.,]0*)?")
    return texts.mask(zeros, texts.str[1:]) if zeros.any() else texts


def matches(cells: pd.Series, pattern: str) -> np.ndarray:
    """Whether each cell is as the pattern says as a whole, bool (n,); for few cells faster than a call of pandas."""
    whole = re.compile(pattern).fullmatch
    return np.array([whole(cell) is not None for cell in cells.tolist()], dtype=bool)


def records_of(path: Path, frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The rows that are records by the schema; TableError where a row that it leaves out reads as a record."""
    form, last = schema.form, len(frame) if schema.form.last_row is None else schema.form.last_row
    if last > len(frame):
        raise TableError(f"{path}: last_row: {last}: must be at most its {len(frame)} rows (--last-row)")
    numbers = [name for name, column in schema.columns.items() if column.type == "number" and name in frame]
    for key, row in [("units_row", 0)] * form.units_row + [("last_row", last)] * (last < len(frame)):
        cells = frame.iloc[row][numbers].astype(str)
        if numbers and not total_columns(frame, row) and cells.str.fullmatch(form.literal).all():
            raise TableError(f"{path}: row {row + 1} reads as a record, but {key} leaves it out: must be corrected")
    return frame.iloc[int(form.units_row) : last]


def total_columns(frame: pd.DataFrame, place: int) -> list[str]:
    """Columns in which a row calls itself a total: by a word alone, or beside others in its first cell with letters.

    A cell that other rows have too is a name, as of a hospital Total Care.
    """
    row, words = frame.iloc[place].astype(str), "|".join(_TOTALS)
    cells = row.str.casefold().str.rstrip(" :")
    first = cells.str.contains(r"[^\W\d_]").idxmax()
    beside = re.search(rf"^({words})[\s:]|[\s-]({words})$", cells[first]) and (frame[first] == row[first]).sum() == 1
    return [name for name in frame if cells[name] in _TOTALS or (beside and name == first)]


def parse_numbers(column: pd.Series, about: Column, form: Form, path: Path) -> np.ndarray:
    """A column of numbers as float64 (n,), NaN where a value is missing."""
    if is_typed(column):
        values = column.to_numpy(np.float64, na_value=np.nan)
        marks = pd.to_numeric(pd.Series(about.missing_words, dtype=str), errors="coerce")
        values = np.where(np.isin(values, marks), np.nan, values)
        large = np.full(len(column), pd.api.types.is_integer_dtype(column)) & (np.abs(values) >= _EXACT)
    else:
        cells = cell_texts(column)
        present = ((cells != "") & ~cells.isin(about.missing_words)).to_numpy()
        cells = pd.Series([cell.replace(MINUS, "-") for cell in cells.tolist()], dtype=object)
        wrong = present & ~matches(cells, form.literal)
        if wrong.any():
            answer = "must be a number, or --missing-word, --type, --decimal or --thousands be given"
            raise cell_error(path, column, wrong, "no number in the schema's form", answer)
        if form.thousands:
            cells = cells.str.replace(f"[{re.escape(THOUSANDS[form.thousands])}]", "", regex=True)
        values = np.full(len(cells), np.nan)
        values[present] = [float(cell.replace(form.decimal, ".")) for cell in cells[present]]
        large = np.abs(values) >= _EXACT
        large = large & matches(cells, "[+-]?[0-9]+") if large.any() else large
        small = np.abs(values) < np.finfo(np.float64).tiny
        if small.any() and (small := small & matches(cells, "[^eE]*[1-9].*")).any():
            answer = "must be 0 or larger, as in another unit, or --type be given"
            raise cell_error(path, column, small, "a number too small for float64", answer)
    if large.any():
        answer = f"must be below 2^53, or --type {column.name}=category"
        raise cell_error(path, column, large, "a whole number that float64 does not hold", answer)
    with np.errstate(over="ignore"):
        infinite = np.isinf(values.astype(np.float32))
    if infinite.any():
        answer = "must be smaller, or --missing-word or --type be given"
        raise cell_error(path, column, infinite, "a number too large for float32", answer)
    return values


def parse_values(column: pd.Series, about: Column) -> np.ndarray:
    """A column of categories, words or classes as places among its values, int64 (n,); `MISSING`, `UNKNOWN`."""
    cells = cell_texts(column)
    codes = pd.Index(about.values, dtype=object).get_indexer(cells.astype(object)).astype(np.int64)
    missing = ((cells == "") | cells.isin(about.missing_words)).to_numpy(bool)
    return np.where(missing, MISSING, np.where(codes < 0, UNKNOWN, codes))


def parse_names(column: pd.Series, about: Column) -> np.ndarray:
    """Names as written, objects (n,), "" where one is missing."""
    cells = cell_texts(column)
    return cells.mask(cells.isin(about.missing_words), "").to_numpy(object)


def parse_column(frame: pd.DataFrame, name: str, schema: Schema, path: Path) -> np.ndarray:
    about = schema.columns[name]
    if about.type == "number":
        return parse_numbers(frame[name], about, schema.form, path)
    check_names(path, frame[name], is_name=about.type == "name")
    return parse_names(frame[name], about) if about.type == "name" else parse_values(frame[name], about)


def check_names(path: Path, column: pd.Series, is_name: bool) -> None:
    """TableError where several ids or codes may have become one number."""
    if pd.api.types.is_float_dtype(column):
        values = column.to_numpy(np.float64, na_value=np.nan)
        narrow = str(column.dtype) in ("float32", "float[pyarrow]")
        wrong = np.abs(values) >= (2**24 if narrow else _EXACT)
    elif is_name and not is_typed(column):
        wrong = cell_texts(column).str.fullmatch(SHORTENED).to_numpy(bool)
    else:
        return
    if wrong.any():
        answer = "must be text or a whole number in the file"
        raise cell_error(path, column, wrong, "an id that a float has rounded: several may have become one", answer)


def cell_error(path: Path, column: pd.Series, wrong_cells: np.ndarray, wrong: str, allowed: str) -> TableError:
    """One line with row, column and shape of the first of the wrong cells, bool (n,)."""
    place = int(np.argmax(wrong_cells))
    shape = cell_shape(str(column.iloc[place]))
    return TableError(f"{path}: row {column.index[place] + 1}, column {column.name!r}: {shape}: {wrong}: {allowed}")
