"""Files of a run: written whole or not at all, read or refused in one line."""

import glob
import json
import os
import platform
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pyarrow as pa

from silodp.config.yaml_file import without_format

# Behind an algorithm's name: its form without noise.
NON_PRIVATE = ":non_private"


# Called before a file gets its name; an error leaves the file unwritten.
before_rename: list[Callable[[], None]] = []
# Called with a file that has its name.
after_rename: list[Callable[[Path], None]] = []


@contextmanager
def write_atomically(path: Path | str) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it is synced and renamed to `path`, on failure removed.

    What a killed process of this machine left behind for the same `path` is removed too.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileNotFoundError, NotADirectoryError, FileExistsError) as error:
        raise ValueError(f"{path}: {error.strerror}: must be where a file can be made") from None
    # Machine and process are in the name, so that two writers of one file, on one machine or two, never share it.
    machine = f"{zlib.crc32(platform.node().encode()):08x}"
    for left in path.parent.glob(f".{glob.escape(path.name)}.{machine}.*"):
        # Only names as below: a copy that somebody made of one is left alone.
        number = left.name.removesuffix(path.suffix).rpartition(".")[2]
        if number.isascii() and number.isdigit() and not psutil.pid_exists(int(number)):
            left.unlink(missing_ok=True)
    temporary = path.parent / f".{path.name}.{machine}.{os.getpid()}{path.suffix}"
    try:
        try:
            temporary.touch()
            yield temporary
        except OSError as error:
            # A full disk names no file, or the temporary one, as a folder does that may not be written.
            error.filename = str(path) if error.filename in (None, str(temporary)) else error.filename
            raise
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        for check in before_rename:
            check()
        os.replace(temporary, path)
        for note in after_rename:
            note(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_csv(frame: pd.DataFrame, path: Path | str) -> None:
    """Write `frame` as CSV with floats that read back exactly."""
    with write_atomically(path) as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n")


def write_parquet(frame: pd.DataFrame, path: Path | str) -> None:
    """Write `frame` as parquet, with checksums in it that `read_parquet` holds it against."""
    with write_atomically(path) as temporary:
        frame.to_parquet(temporary, index=False, write_page_checksum=True)


def write_text(text: str, path: Path | str) -> None:
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def with_reading(table: pd.DataFrame) -> pd.DataFrame:
    """The table with empty readings as "": a CSV file gives them back as NaN."""
    return table.assign(reading=table["reading"].fillna("").astype(str))


def figure_name(experiment: str, M: int, R: int, reading: str = "", kind: str = "error_vs_epsilon") -> str:
    """File name, without suffix, of a figure: `<experiment>_M<M>_R<R>[_<reading>][_<kind>]`.

    Characters of the reading that are awkward in a file name become "-". The kind error_vs_epsilon is not named.
    """
    named = "" if kind == "error_vs_epsilon" else kind
    parts = [experiment, f"M{M}", f"R{R}", re.sub(r"[^A-Za-z0-9_.=+-]+", "-", reading), named]
    return "_".join(filter(None, parts))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object without its `format`; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: a JSON {type(found).__name__}, allowed: an object")
    return without_format(found, path)


def read_table(path: Path, columns: list[str]) -> pd.DataFrame:
    """A CSV file that has `columns`, those of truth values as such."""
    table = read_csv(path, columns, float_precision="round_trip")  # the comparison of ε must not hang on parsing
    for name in ("private", "holds", "converged"):
        if name in columns and len(table) and table[name].dtype != bool:
            raise ValueError(f"{path}: column {name} holds {str(table[name].iloc[0])[:80]!r}, allowed: True, False")
    return table


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader do into ValueError: one line that says how to make it again."""
    again = "must be as silodp wrote it: remove it, and `silodp rebuild` with the run file makes it again"
    try:
        yield
    except (FileNotFoundError, DamagedError):
        raise
    except _DAMAGE as error:
        why = (" ".join(str(error).split()) or type(error).__name__)[:200]
        raise DamagedError(f"{path}: file: damaged ({why}): {again}") from error


class DamagedError(ValueError):
    """A file of a run that cannot be read; its text is one line."""


# What damaged files make their readers raise; ValueError is among pyarrow's.
_DAMAGE = (ValueError, KeyError, TypeError, IndexError, NotImplementedError, OverflowError, MemoryError, OSError)
_DAMAGE += (pa.ArrowException, zipfile.BadZipFile, zlib.error, struct.error, EOFError)  # type: ignore[assignment]


def read_parquet(path: Path | str, columns: Sequence[str] = (), **options: Any) -> pd.DataFrame:
    """A parquet file that has `columns`; ValueError in one line for a damaged one."""
    with reading(path):
        frame = pd.read_parquet(path, page_checksum_verification=True, **options)
        _require(frame, columns)
    return frame


def read_csv(path: Path | str, columns: Sequence[str] = (), **options: Any) -> pd.DataFrame:
    """A CSV file that has `columns`; ValueError in one line for a damaged one."""
    with reading(path):
        frame = pd.read_csv(path, **options)
        _require(frame, columns)
    return frame


def _require(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    if missing := [name for name in columns if name not in frame.columns]:
        raise ValueError(f"lacks the columns {', '.join(missing)}")


def experiments_of(folder: Path) -> set[str] | None:
    """The experiments that a run's config.json names; None where it names none, and everything is taken.

    A table or figure of another experiment was left by an earlier run file and is nobody's result.
    """
    return set(read_json(folder / "config.json").get("experiments") or {}) or None
