"""The page's part about experiments on one's own data: every ε of a run, what is not private, and its models.

Data are one's own that lie in a file, or that name their silos in an experiment of no paper.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.experiments.own_data import preprocessing_guarantee
from silodp.files import PRIVACY_COLUMNS, PRIVACY_EXTRA, read_table
from silodp.report.figures.style import label
from silodp.report.numbers import bounded, exact

HEADING = [
    *("algorithm", "M, R", "ε", "δ at most", "a record", "a person", "with the choice of a point"),
    *("after the first round", "after half the rounds"),
]


def own_part(folder: Path, experiments: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A part for each experiment on one's own data, as the template shows it.

    Args:
        folder: the run's.
        experiments: name → what config.json says of it.
    """
    mine = {name: about for name, about in experiments.items() if _own(about)}
    if not mine:
        return []
    path = folder / "privacy.csv"
    wanted = [*PRIVACY_COLUMNS, *PRIVACY_EXTRA]
    table = read_table(path, wanted) if path.is_file() else pd.DataFrame(columns=wanted)
    found = []
    for name, about in mine.items():
        own = about["dataset"] if isinstance(about["dataset"], Mapping) else {}
        rows = table[(table["experiment"] == name) & (table["reading"].fillna("") == "")]
        found.append(
            {
                "name": name,
                "title": about.get("title") or name,
                "heading": HEADING,
                "rows": [{"cells": _cells(row), "classes": ""} for row in rows.to_dict("records")],
                "person": _person(own, rows),
                "points": "" if rows.empty else exact(rows["selection_points"].max()),
                "preprocessing": preprocessing_guarantee(about.get("preprocess") or {}, own.get("missing", "refuse")),
                "models": sorted(file.name for file in (folder / "models" / name).glob("*.md")),
            }
        )
    return found


def _own(about: Mapping[str, Any]) -> bool:
    natural = (about.get("silos") or {}).get("scheme") == "column" and not about.get("paper")
    return natural or isinstance(about.get("dataset"), Mapping)


def _cells(row: Mapping[Any, Any]) -> list[str]:
    values = ("delivered_epsilon", "epsilon_person", "epsilon_selection", "epsilon_first_round", "epsilon_half_rounds")
    shown = ["not proven" if math.isnan(row[one]) else bounded(row[one]) for one in values]
    return [label(row["algorithm"]), f"{row['M']}, {row['R']}", exact(row["epsilon"]), exact(row["delta"]), *shown]


def _person(own: Mapping[str, Any], rows: pd.DataFrame) -> str:
    if not own.get("person") or rows.empty:
        return "Nobody is named in the data: a person stands for one record in one silo."
    silos, records = int(rows["person_silos"].max()), int(rows["person_records"].max())
    return (
        f"A person has records in {silos} silo{'s' * (silos > 1)} at most, up to {records} in one: all of them are "
        "replaced together, and silos compose."
    )
