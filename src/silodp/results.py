"""Files of a run: written whole or not at all, and the columns that every table keeps."""

import glob
import os
import platform
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import psutil

TABLE_COLUMNS = [
    "experiment",
    "algorithm",
    "reading",
    "private",
    "M",
    "R",
    "N",
    "n",
    "K",
    "delta",
    "epsilon",
    "delivered_epsilon",
    "selection",
    "evaluation",
    "stepsize",
    "clip",
    "phase_length",
    "trials",
    "diverged",
    "train_loss_mean",
    "test_error_mean",
    "test_error_p05",
    "test_error_p95",
    "seconds",
    "proven",
]

# Behind an algorithm's name: its form without noise.
NON_PRIVATE = ":non_private"

# One row a trial of the default report.
REPORTED_COLUMNS = [
    "experiment",
    "algorithm",
    "reading",
    "M",
    "R",
    "epsilon",
    "trial",
    "stepsize",
    "clip",
    "phase_length",
    "train_loss",
    "test_error",
    "diverged",
]

PRIVACY_COLUMNS = [
    "experiment",
    "algorithm",
    "reading",
    "M",
    "R",
    "epsilon",
    "claimed_epsilon",
    "delivered_epsilon",
    "delta",
    "accountant",
    "adjacency",
    "sampling",
    "noise_multiplier",
    "holds",
]

# Written behind them: what some neighbouring silos reach; empty where nothing is claimed or proven from below.
PRIVACY_EXTRA = ["delivered_lower"]

AUDIT_COLUMNS = [
    "experiment",
    "algorithm",
    "setting",
    "phase_length",
    "claimed_epsilon",
    "delta",
    "delivered_epsilon",
    "audited_lower",
    "confidence",
    "runs",
    "holds",
]

BOUNDS_COLUMNS = [
    "check",
    "theorem",
    "parameter",
    "value",
    "lower",
    "measured",
    "measured_low",
    "measured_high",
    "upper",
    "verdict",
]


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
        if not psutil.pid_exists(int(left.name.removesuffix(path.suffix).rsplit(".", 1)[-1])):
            left.unlink(missing_ok=True)
    temporary = path.parent / f".{path.name}.{machine}.{os.getpid()}{path.suffix}"
    temporary.touch()
    try:
        yield temporary
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_csv(frame: pd.DataFrame, path: Path | str) -> None:
    """Write `frame` as CSV with floats that read back exactly."""
    with write_atomically(path) as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n")


def write_parquet(frame: pd.DataFrame, path: Path | str) -> None:
    """Write `frame` as parquet."""
    with write_atomically(path) as temporary:
        frame.to_parquet(temporary, index=False)


def write_text(text: str, path: Path | str) -> None:
    """Write `text` as UTF-8."""
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
