"""The report's first part: a verdict for every claim, with the numbers behind it and links to figures and tables."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.claims import COLUMNS
from silodp.claims.base import VERDICTS
from silodp.report_figures import Page, anchor
from silodp.report_numbers import measured, read_table

# A verdict's sign and class: never told by colour alone.
SIGNS = {"confirmed": "✓", "refuted": "✗", "inconclusive": "~", "not testable here": "–"}


def claims_part(page: Page, anchors: Iterable[str]) -> dict[str, Any] | None:
    """Claims with their parts, and how many have each verdict; None where claims.csv is not there.

    Args:
        page: the run's files.
        anchors: figures that are on the page.
    """
    path = page.folder / "claims.csv"
    if not path.is_file():
        return None
    table = read_table(path, COLUMNS)
    known, rules = set(anchors), _rules()
    found: list[dict[str, Any]] = []
    for row in table.to_dict("records"):
        name, _, part = str(row["claim"]).partition(": ")
        shown = _row(row, part, page, known)
        if part and found and found[-1]["name"] == name:
            # Another reading of a claim, and counterparts in small, are verdicts of their own.
            found[-1]["readings" if part.startswith(("[", "counterparts")) else "parts"].append(shown)
        else:
            about = {"name": name, "source": row["source"], "statement": row["statement"], "rule": rules.get(name)}
            found.append(shown | about | {"readings": [], "parts": []})
    counts = [(SIGNS[one], one, sum(claim["verdict"] == one for claim in found)) for one in VERDICTS]
    return {"claims": found, "counts": counts, "csv": page.link(path)}


def _rules() -> dict[str, str]:
    """Rule of every claim of this version, by its id."""
    from silodp.claims.loading import load_claims

    return {claim.id: claim.rule for claim in load_claims()}


def _row(row: dict[Any, Any], part: str, page: Page, anchors: set[str]) -> dict[str, Any]:
    verdict = str(row["verdict"])
    if verdict not in VERDICTS:
        raise ValueError(f"{page.folder / 'claims.csv'}: verdict: {verdict!r}: must be one of {', '.join(VERDICTS)}")
    files = [] if pd.isna(row["evidence"]) else str(row["evidence"]).split("; ")
    ends = [row["low"], row["high"]]
    interval = "" if pd.isna(ends).all() else " to ".join(map(measured, ends))
    if pd.isna(row["low"]) and not pd.isna(row["high"]):
        interval = f"at most {measured(row['high'])}"
    return {
        "part": part,
        "statistic": row["statistic"],
        "value": "" if pd.isna(row["value"]) else measured(row["value"]),
        "interval": interval,
        "verdict": verdict,
        "sign": SIGNS[verdict],
        "style": verdict.split()[0],
        "figures": [_evidence(name, page, anchors) for name in files if name.endswith(".png")],
        "tables": [_evidence(name, page, anchors) for name in files if not name.endswith(".png")],
    }


def _evidence(name: str, page: Page, anchors: set[str]) -> dict[str, str | None]:
    """A figure's place on the page, else the file; its address is None where it is nowhere."""
    if name.endswith(".png"):
        place = anchor(Path(name))
        return {"name": Path(name).stem, "href": f"#{place}" if place in anchors else None}
    return {"name": name, "href": page.link(page.folder / name)}
