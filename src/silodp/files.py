"""Files of a run: written whole or not at all, and the columns that every table keeps."""

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

# Columns that name a run, and a point of its grid but for its ε.
_RUN = ["experiment", "algorithm", "reading", "M", "R"]
_POINT = ["stepsize", "clip", "phase_length"]

TABLE_COLUMNS = ["experiment", "algorithm", "reading", "private", "M", "R", "N", "n", "K", "delta", "epsilon"]
TABLE_COLUMNS += ["delivered_epsilon", "selection", "evaluation", *_POINT, "trials", "diverged", "train_loss_mean"]
TABLE_COLUMNS += ["test_error_mean", "test_error_p05", "test_error_p95", "seconds", "proven"]

# Written behind them: where the chosen point lies at an end of its grid, and the lower end of the true ε.
TABLE_EXTRA = ["edge", "delivered_lower"]

# Behind an algorithm's name: its form without noise.
NON_PRIVATE = ":non_private"

# One row a trial of the default report.
REPORTED_COLUMNS = [*_RUN, "epsilon", "trial", *_POINT, "train_loss", "test_error", "diverged"]

PRIVACY_COLUMNS = [*_RUN, "epsilon", "claimed_epsilon", "delivered_epsilon", "delta", "accountant", "adjacency"]
PRIVACY_COLUMNS += ["sampling", "noise_multiplier", "holds"]

# Written behind them: what some neighbouring silos reach; the ε of a person; the ε of a chosen run; the ε so far after
# the first round and after half of them. Empty where nothing is claimed or proven. Then the bits that a silo sends in
# the whole run, where its sums go through the shuffle protocol P_vec, and whether the claim is kept, violated or not
# certified.
PRIVACY_EXTRA = ["delivered_lower", "person_silos", "person_records", "epsilon_person", "selection_points"]
PRIVACY_EXTRA += ["epsilon_selection", "epsilon_first_round", "epsilon_half_rounds", "shuffled_bits", "claim"]

# ε so far at the end of some rounds, of each private algorithm at the middle ε of an experiment's first setting.
BY_ROUND_COLUMNS = ["experiment", "algorithm", "M", "R", "phase_length", "claimed_epsilon", "delta", "round", "epsilon"]

AUDIT_COLUMNS = ["experiment", "algorithm", "setting", "phase_length", "claimed_epsilon", "delta", "delivered_epsilon"]
AUDIT_COLUMNS += ["audited_lower", "confidence", "runs", "holds"]

# Written behind them: the bound by the whole profile, how much noise it leaves possible, whether the plan's own profile
# stands, and the mechanism test's finding with its p-value.
AS_PLANNED = "as planned"
AUDIT_EXTRA = ["audited_profile", "noise_below", "profile_holds", "mechanism", "mechanism_p"]

# From "form" on: which statement the row is about, the largest value that can be reached, a slope of the theorem's own
# formula, the exponents it is told from, what algorithms that do nothing come to, and what else there is to say.
BOUNDS_COLUMNS = ["check", "theorem", "parameter", "value", "lower", "measured", "measured_low", "measured_high"]
BOUNDS_COLUMNS += ["upper", "verdict", "form", "reach", "formula", "rivals", "null", "detail"]

# Called before a file gets its name; an error leaves the file unwritten.
before_rename: list[Callable[[], None]] = []


@contextmanager
def write_atomically(path: Path | str) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it is synced and renamed to `path`, on failure removed.

    What a killed process of this machine left behind for the same `path` is removed too.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Machine and process are in the name, so that two writers of one file, on one machine or two, never share it.
    machine = f"{zlib.crc32(platform.node().encode()):08x}"
    for left in path.parent.glob(f".{glob.escape(path.name)}.{machine}.*"):
        # Only names as below: a copy that somebody made of one is left alone.
        number = left.name.removesuffix(path.suffix).rsplit(".", 1)[-1]
        if number.isascii() and number.isdigit() and not psutil.pid_exists(int(number)):
            left.unlink(missing_ok=True)
    temporary = path.parent / f".{path.name}.{machine}.{os.getpid()}{path.suffix}"
    temporary.touch()
    try:
        yield temporary
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        for check in before_rename:
            check()
        os.replace(temporary, path)
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
    """A JSON object; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: a JSON {type(found).__name__}, allowed: an object")
    return found


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
