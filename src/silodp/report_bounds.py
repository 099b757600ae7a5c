"""The report's part on bounds: the rows of every check that speak a verdict, and the checks' figures."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.checks import CHECKS
from silodp.results import BOUNDS_COLUMNS

HEADING = ["theorem", "parameter", "value", "lower", "measured", "interval", "upper", "verdict"]


def bounds(
    folder: Path, read: Callable[[Path, list[str]], pd.DataFrame], measured: Callable[[Any], str],
    exact: Callable[[Any], str], link: Callable[[Path], str | None],
) -> list[dict[str, Any]]:  # fmt: skip
    """What the template shows of each check in `folder` (results/<run>/bounds); empty without that folder.

    Args:
        read: reads a CSV file that has the given columns.
        measured, exact: format a measured number, and one that was set.
        link: address of a file from the page.
    """
    found = []
    for name, title in CHECKS.items():
        path = folder / f"{name}.csv"
        if not path.is_file():
            continue
        table = read(path, BOUNDS_COLUMNS)
        # Points of a sweep have no verdict of their own: they are in the figure and the CSV file.
        spoken = table[table["verdict"].notna() & (table["verdict"] != "")]
        rows = [_row(row, measured, exact) for row in spoken.to_dict("records")]
        picture = path.with_suffix(".png")
        figure = {
            "name": f"bounds-{name}",
            "caption": title,
            "picture": base64.b64encode(picture.read_bytes()).decode() if picture.is_file() else None,
            "pdf": link(path.with_suffix(".pdf")),
        }
        # Without their numbers: `gap 10` and `gap 27` are one kind of verdict.
        kinds = spoken["verdict"].str.extract(r"^([^:0-9]+)")[0].str.strip().value_counts()
        found.append({
            "title": title,
            "counts": ", ".join(f"{count} {kind}" for kind, count in kinds.items()),
            "figure": figure if picture.is_file() else None, "csv": link(path), "heading": HEADING, "rows": rows,
        })  # fmt: skip
    return found


def _row(row: dict[Any, Any], measured: Callable[[Any], str], exact: Callable[[Any], str]) -> dict[str, Any]:
    interval = "–"
    if not pd.isna(row["measured_low"]):
        interval = f"{measured(row['measured_low'])} – {measured(row['measured_high'])}"
    cells = [str(row["theorem"]), str(row["parameter"]), exact(row["value"]), exact(row["lower"]),
             measured(row["measured"]), interval, exact(row["upper"]), str(row["verdict"])]  # fmt: skip
    return {"cells": cells, "classes": ""}
