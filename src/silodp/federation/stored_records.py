"""The preprocessed records of every trial, kept beside its silos, so that training jobs need not make them again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from silodp.files import reading, write_atomically

FILE = "records.npz"
# Numbers of a trial up to which its features are kept (16 MB); wide records and images are made again in each job.
STORED = 2**21


@dataclass(frozen=True)
class Records:
    """The records in use in one trial, by ascending number: `x` float64 (n, k) or images; a target has no `classes`."""

    x: np.ndarray
    y: np.ndarray
    classes: int | None

    @property
    def small(self) -> bool:
        return self.x.ndim == 2 and self.x.size <= STORED


def write_records(folder: Path | str, trials: Sequence[Records | None], made_for: str = "") -> None:
    """Write `records.npz` with the records of all trials but those given as None, and what they are made for."""
    arrays: dict[str, Any] = {"made_for": np.array(made_for)}
    for trial, records in enumerate(trials):
        if records is not None:
            arrays |= {f"x{trial}": records.x, f"y{trial}": records.y, f"classes{trial}": records.classes or 0}
    with write_atomically(Path(folder) / FILE) as temporary, temporary.open("wb") as handle:
        np.savez(handle, **arrays)


def read_records(folder: Path | str, trial: int) -> Records | None:
    """One trial's records; None where they were not kept."""
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    # Opened here, as NumPy leaves a damaged file open.
    with reading(path), open(path, "rb") as handle, np.load(handle) as file:
        if f"x{trial}" not in file:
            return None
        return Records(file[f"x{trial}"], file[f"y{trial}"], int(file[f"classes{trial}"]) or None)
