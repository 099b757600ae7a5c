"""The page's part about points that were chosen by a race: what races save and lose where whole grids are known."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from silodp.report.figures.words import title_of


def races_part(described: Mapping[str, Mapping], titles: Mapping[str, str]) -> dict[str, Any] | None:
    """The measured table of benchmarks/race.py (docs/tuning.md), for a run that tunes by race; else None.

    Args:
        described: experiment → its part of config.json.
        titles: experiment → title.
    """
    raced = [name for name, about in described.items() if (about or {}).get("tuning") == "race"]
    if not raced:
        return None
    with open(Path(__file__).parent / "races.csv", encoding="utf-8", newline="") as stream:
        heading, *rows = csv.reader(stream)
    *cells, whole = rows
    return {
        "experiments": [title_of(name, titles) for name in raced],
        "heading": heading,
        "rows": [{"cells": [title_of(one[0]), *one[1:]], "classes": ""} for one in cells]
        + [{"cells": whole, "classes": ""}],
        "whole": dict(zip(heading, whole, strict=True)),
    }
