"""The report's first part: a verdict for every claim, with the numbers behind it and links to figures and tables."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.config.errors import shown
from silodp.files import read_table
from silodp.report.figures.words import in_words
from silodp.report.numbers import measured
from silodp.report.page.figures import Page, anchor
from silodp.report.page.papers import EXPERIMENT, ORDER, paper_of
from silodp.verdicts.claims import COLUMNS
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.words import Verdict


def claims_part(page: Page, anchors: Iterable[str]) -> dict[str, Any] | None:
    """Claims with their parts, what speaks against a paper first; None where claims.csv is not there.

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
            # Another reading of a claim, and surrogates, are verdicts of their own.
            found[-1]["readings" if part.startswith(("[", "surrogates")) else "parts"].append(shown)
        else:
            about = {
                "name": name,
                "source": row["source"],
                "paper": paper_of(row["source"]),
                "statement": row["statement"],
                "rule": rules.get(name),
                "kind": row["kind"],
            }
            found.append(shown | about | {"readings": [], "parts": []})
    counts = [
        (one.sign, one.value, count) for one in Verdict if (count := sum(claim["verdict"] == one for claim in found))
    ]
    place = {word: rank for rank, word in enumerate(ORDER)}
    kinds = {EXPERIMENT: 0}
    # Experiments first, and in each kind what speaks against the paper; equal ones stay in the order of config/claims.
    found.sort(key=lambda claim: (kinds.get(claim["kind"], 1), place[claim["verdict"]]))
    meanings = [(one.sign, one.value, one.style, one.meaning) for one in Verdict]
    return {
        "claims": found,
        "counts": counts,
        "csv": page.link(path),
        "meanings": meanings,
        "papers": list(dict.fromkeys(claim["paper"] for claim in found if claim["paper"])),
    }


def _rules() -> dict[str, str]:
    """Rule of every claim of this version, by its id."""
    return {claim.id: claim.rule for claim in load_claims()}


def _row(row: dict[Any, Any], part: str, page: Page, anchors: set[str]) -> dict[str, Any]:
    word = str(row["verdict"])
    if word not in list(Verdict):
        raise ValueError(f"{page.folder / 'claims.csv'}: verdict: {shown(word)}: must be one of {', '.join(Verdict)}")
    verdict = Verdict(word)
    files = [] if pd.isna(row["evidence"]) else str(row["evidence"]).split("; ")
    ends = [row["low"], row["high"]]
    interval = "" if pd.isna(ends).all() else " to ".join(map(measured, ends))
    if pd.isna(row["low"]) and not pd.isna(row["high"]):
        interval = f"at most {measured(row['high'])}"
    return {
        "part": in_words(part, page.titles).replace("[", "").replace("]", ""),
        "statistic": in_words(str(row["statistic"]), page.titles),
        "value": "" if pd.isna(row["value"]) else measured(row["value"]),
        "interval": interval,
        "verdict": verdict.value,
        "form": "" if pd.isna(row["form"]) else str(row["form"]),
        "sign": verdict.sign,
        "style": verdict.style,
        "figures": [_evidence(name, page, anchors) for name in files if name.endswith(".svg")],
        "tables": [_evidence(name, page, anchors) for name in files if not name.endswith(".svg")],
    }


def _evidence(name: str, page: Page, anchors: set[str]) -> dict[str, str | None]:
    """A figure's place on the page, else the file; its address is None where it is nowhere."""
    if name.endswith(".svg"):
        place = anchor(Path(name))
        about, heading = page.named_places.get(place, ("", Path(name).stem))
        return {"about": about, "name": heading, "href": f"#{place}" if place in anchors else None}
    return {"about": "", "name": name, "href": page.link(page.folder / name)}
