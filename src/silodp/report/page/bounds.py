"""The report's part on bounds: the rows of every check that speak a verdict, and the checks' figures."""

from typing import Any

import pandas as pd

from silodp.files import BOUNDS_COLUMNS, read_table
from silodp.report.figures.bounds import name_of
from silodp.report.figures.words import in_signs
from silodp.report.numbers import exact, measured
from silodp.report.page.figures import Page
from silodp.verdicts.checks import CHECKS

HEADING = ["theorem", "parameter", "value", "lower", "measured", "interval", "upper", "form", "verdict", "why"]


def bounds(page: Page) -> list[dict[str, Any]]:
    """What the template shows of each check in the run's bounds/; empty without that folder."""
    found = []
    for name, title in CHECKS.items():
        path = page.folder / "bounds" / f"{name}.csv"
        if not path.is_file():
            continue
        table = read_table(path, BOUNDS_COLUMNS)
        # Points of a sweep have no verdict of their own: they are in the figure and the CSV file.
        spoken = table[table["verdict"].notna() & (table["verdict"] != "")]
        rows = [_row(row) for row in spoken.to_dict("records")]
        counts = ", ".join(f"{count} {kind}" for kind, count in spoken["verdict"].value_counts().items())
        parts = {"name": name, "title": title, "counts": counts, "figure": page.bounds(name, title)}
        found.append(parts | {"csv": page.link(path), "heading": HEADING, "rows": rows})
    return found


def _row(row: dict[Any, Any]) -> dict[str, Any]:
    interval = "–"
    if not pd.isna(row["measured_low"]):
        interval = f"{measured(row['measured_low'])} – {measured(row['measured_high'])}"
    words = ["" if pd.isna(row[name]) else str(row[name]) for name in ("form", "verdict", "detail")]
    named = name_of(pd.Series(row | {"form": ""}))
    cells = [named, in_signs(str(row["parameter"])), exact(row["value"]), exact(row["lower"]),
             measured(row["measured"]), interval, exact(row["upper"]), *words]  # fmt: skip
    return {"cells": cells, "classes": ""}
