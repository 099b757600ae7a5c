"""Merge the experiments' tables of privacy, by_round and audit."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from silodp.experiments.columns import PRIVACY_COLUMNS, PRIVACY_EXTRA
from silodp.files import read_csv, write_csv


def merge(folder: Path, experiments: Sequence[str]) -> None:
    """Merge the tables that experiments have in `folder`/privacy, by_round and audit into a table of the run each.

    privacy.csv has one row for each private algorithm, setting and epsilon.
    """
    paths = {kind: [folder / kind / f"{name}.csv" for name in experiments] for kind in ("privacy", "by_round", "audit")}
    for kind in ("by_round", "audit"):
        rows = pd.concat([read_csv(path, dtype=str, keep_default_na=False) for path in paths[kind]])
        write_csv(rows, folder / f"{kind}.csv")
    columns = (*PRIVACY_COLUMNS, *PRIVACY_EXTRA, "reported")
    rows = pd.concat([read_csv(path, columns, keep_default_na=False) for path in paths["privacy"]], ignore_index=True)
    rows = rows[rows["reported"].astype(str) == "True"]
    write_csv(rows[[*PRIVACY_COLUMNS, *PRIVACY_EXTRA]], folder / "privacy.csv")
