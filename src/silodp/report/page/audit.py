"""The audit's table on the report page."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from silodp.files import AS_PLANNED, AUDIT_COLUMNS, read_table
from silodp.report.figures.style import label
from silodp.report.figures.words import setting_words, title_of
from silodp.report.numbers import bounded, exact, reached

AUDIT_HEADINGS = {
    "experiment": "experiment",
    "algorithm": "algorithm",
    "setting": "setting",
    "phase_length": "q",
    "claimed_epsilon": "claimed ε",
    "audited_lower": "audited: ε at least",
    "delivered_epsilon": "delivered: ε at most",
    "delta": "δ",
    "confidence": "confidence",
    "runs": "runs",
    "holds": "holds",
    "audited_profile": "by profile: ε at least",
    "mechanism": "mechanism",
}


def audit_part(path: Path, titles: Mapping[str, str]) -> dict[str, Any] | None:
    """Heading, body and shared settings of the audit; None where there is no file."""
    if not path.is_file():
        return None
    table = read_table(path, AUDIT_COLUMNS)
    # Tables of earlier versions end with `holds`.
    columns, settings = [name for name in AUDIT_HEADINGS if name in table], []
    for name in ("confidence", "runs"):
        if table[name].nunique() == 1:
            columns.remove(name)
            settings.append(f"{AUDIT_HEADINGS[name]} {exact(table[name].iloc[0])}")
    rows = [
        {
            "cells": [_audit_cell(name, row[name], titles) for name in columns],
            "classes": "" if _stands(row) else "exceeds",
        }
        for row in table.to_dict("records")
    ]
    return {"settings": settings, "heading": [AUDIT_HEADINGS[name] for name in columns], "rows": rows}


def _stands(row: dict[str, Any]) -> bool:
    """Whether no test speaks against what is delivered."""
    return row["holds"] and row.get("profile_holds", True) and row.get("mechanism", AS_PLANNED) == AS_PLANNED


def _audit_cell(name: str, value: Any, titles: Mapping[str, str]) -> str:
    if name == "holds":
        return "yes" if value else "▲ no"
    if name == "experiment":
        return title_of(value, titles)
    if name == "setting" and (found := re.fullmatch(r"M(\d+)_R(\d+)", str(value))):
        return setting_words(*found.groups())
    if name == "algorithm":
        return label(value)
    if name == "delivered_epsilon":
        return bounded(value)
    if name == "mechanism" and value != AS_PLANNED:
        return f"▲ {value}"
    if name in ("audited_lower", "audited_profile"):
        return reached(value)
    return value if isinstance(value, str) else exact(value)
