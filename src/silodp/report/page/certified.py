"""The page's part about equal certified privacy: both noises, what each delivers, and which verdicts turn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from silodp.files import PRIVACY_COLUMNS, read_table, with_reading
from silodp.report.figures.style import label
from silodp.report.figures.words import in_words, setting_words, title_of, variant_words
from silodp.report.numbers import bounded, measured
from silodp.report.page.figures import Page
from silodp.verdicts.claims import COLUMNS
from silodp.verdicts.claims.certified import turns
from silodp.verdicts.comparisons import BY_CALIBRATED, CALIBRATED

TURNS = ["claim", "variant", "at the paper's protocol", "paper's noise, same trials", "at exactly the claimed ε", "why"]
NOISES = [
    "experiment",
    "algorithm",
    "ε at which the paper's noise is larger than its claim needs",
    "noise that would do / the paper's",
    "test error saved",
    "ε at which it is smaller",
    "noise that is needed / the paper's",
    "delivered / claimed ε of the paper's",
    "test error to pay",
]
SETTING = ["experiment", "algorithm", "M", "R"]


def trains_both(table: pd.DataFrame | None) -> bool:
    """Whether a results table has rows under calibrated noise beside the paper's."""
    return table is not None and {"", CALIBRATED} <= set(table["reading"])


def certified_part(page: Page, tables: Mapping[str, pd.DataFrame]) -> dict[str, Any] | None:
    """Forest plots, verdicts decided again, and what both noises deliver; None where no experiment trains both.

    Args:
        page: the run's files.
        tables: experiment → its results table.
    """
    both = [name for name, table in tables.items() if trains_both(table)]
    if not both:
        return None
    path = page.folder / "claims.csv"
    decided = turns(read_table(path, COLUMNS)) if path.is_file() else []
    rows = pd.concat([tables[name] for name in both]).query("private")
    counts = {}
    for word, reading in (("calibrated", CALIBRATED), ("paper", "")):
        own = rows[rows["reading"] == reading]
        counts[word] = (int((own["delivered_epsilon"] > own["epsilon"]).sum()), len(own))
    return {
        "counts": counts,
        "turned": sum(one.turns for one in decided),
        "decided": len(decided),
        "heading": TURNS,
        "turns": [
            {
                "cells": [
                    one.claim,
                    variant_words(one.reading),
                    one.headline.signed,
                    one.paper.signed,
                    ("turns: " if one.turns else "") + one.at_claim.signed,
                    in_words(one.why, page.titles),
                ],
                "classes": "",
            }
            for one in sorted(decided, key=lambda one: not one.turns)
        ],
        "noises_heading": NOISES,
        "noises": noises(page, set(both)),
        "figures": page.certified(),
        "noises_figures": page.noises(),
    }


def noises(page: Page, experiments: set[str]) -> list[dict[str, Any]]:
    """A row for each algorithm and setting: by how much calibrated noise differs, and what that does to the error.

    Rows of privacy.csv at chosen points; differences in test error are means over the ε of a cell, by comparisons.csv.
    """
    files = [page.folder / name for name in ("privacy.csv", "comparisons.csv")]
    if not all(file.is_file() for file in files):
        return []
    table = with_reading(read_table(files[0], PRIVACY_COLUMNS))
    table = table[table["experiment"].isin(experiments)]
    key = [*SETTING, "claimed_epsilon"]
    parts = [table[table["reading"] == reading].drop_duplicates(key) for reading in ("", CALIBRATED)]
    both = parts[0].merge(parts[1], on=key, suffixes=("", "_calibrated"))
    both["ratio"] = both["noise_multiplier_calibrated"] / both["noise_multiplier"]
    both["over"] = both["delivered_epsilon"] / both["claimed_epsilon"]
    compared = read_table(files[1], ["experiment", "first", "M", "R", "epsilon", "difference"])
    compared = compared[compared["first"].str.endswith(BY_CALIBRATED)]
    compared = compared.assign(algorithm=compared["first"].str.removesuffix(BY_CALIBRATED))
    found = []
    for (experiment, algorithm, M, R), rows in both.groupby(SETTING, sort=False):
        own = compared[(compared[SETTING] == [experiment, algorithm, M, R]).all(axis=1)].set_index("epsilon")
        large, small = rows[rows["ratio"] < 1], rows[rows["ratio"] >= 1]
        where = f"{title_of(str(experiment), page.titles)}, {setting_words(M, R)}"
        cells = [where, label(str(algorithm)).removeprefix("ISRL-DP ")]
        cells += [_list(large["claimed_epsilon"]), _span(large["ratio"]), _change(own, large, -1)]
        cells += [_list(small["claimed_epsilon"]), _span(small["ratio"]), _delivered(rows), _change(own, small, 1)]
        found.append({"cells": cells, "classes": ""})
    return found


def _list(values: pd.Series) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values)) or "none"


def _span(values: pd.Series) -> str:
    """The smallest and the largest."""
    ends = list(dict.fromkeys(f"{value:.3g}" for value in (values.min(), values.max()))) if len(values) else []
    return " to ".join(ends) or "–"


def _delivered(rows: pd.DataFrame) -> str:
    over = rows["over"][np.isfinite(rows["over"])]
    return f"{bounded(over.min())} to {bounded(over.max())}" if len(over) else "–"


def _change(compared: pd.DataFrame, rows: pd.DataFrame, sign: int) -> str:
    """Mean change of the test error over the rows' ε, as `sign` counts it; – where it is not compared."""
    values = compared["difference"].reindex(rows["claimed_epsilon"]).dropna()
    return measured(sign * values.mean()) if len(values) else "–"
