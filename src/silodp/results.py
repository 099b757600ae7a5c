"""Files of a run: written whole or not at all, and the columns that every table keeps."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

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


@contextmanager
def write_atomically(path: Path | str) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it is synced and renamed to `path`, on failure removed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
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
