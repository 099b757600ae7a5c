"""The page's verdicts: every claim with its number, its note, its corrected form and links to its evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.config.errors import show_value
from silodp.files import read_table
from silodp.report.figures.reader_words import readable_text
from silodp.report.numbers import measured
from silodp.report.page.blocks import Figure, Link
from silodp.report.page.figure_list import Page, anchor
from silodp.report.page.papers import ORDER
from silodp.verdicts.claims.claim_file import Claim, Decided
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.rows import COLUMNS, filled, is_corrected
from silodp.verdicts.words import AGAINST, Verdict


@dataclass
class Row:
    """A verdict with its number and interval, what was computed, its note, and links to its evidence."""

    name: str
    verdict: Verdict
    number: str
    statistic: str
    note: str
    form: str
    evidence: Sequence[Link]


@dataclass
class ShownClaim(Row):
    """A claim with its rule; `unit` says what its number is, `words` are its verdicts on average and at every ε."""

    source: str
    statement: str
    kind: str
    rule: str
    quote: str
    reply: str
    unit: str
    words: str
    corrected: Row | None


# What the number of a statistic is.
_UNITS = {
    "decided": "difference in test error",
    "delivered_epsilon": "true ε over claimed ε",
    "same_iterates": "distance of iterates",
}
_WORDS = {"on_average": "on average", "at_every": "at every ε"}


def read_claims(folder: Path) -> pd.DataFrame | None:
    """A run's claims.csv with "" for empty texts, None where missing."""
    path = folder / "claims.csv"
    return filled(read_table(path, COLUMNS)) if path.is_file() else None


def shown_claims(page: Page, table: pd.DataFrame, figures: Sequence[Figure]) -> list[ShownClaim]:
    """Every claim, experiments first, what speaks against a paper first; evidence links to `figures` on the page."""
    labels = {figure.anchor: figure.label for figure in figures if figure.svg}
    stated = {claim.id: claim for claim in load_claims()}
    shown: list[ShownClaim] = []
    for row, corrected in zip(table.to_dict("records"), is_corrected(table), strict=True):
        one = _row(row, page, labels)
        if corrected:
            shown[-1].corrected = one
            continue
        claim = stated.get(one.name)
        said: dict[str, Any] = {key: getattr(claim, key, "") for key in ("rule", "quote", "reply")}
        said |= {} if one.verdict in AGAINST else {"reply": ""}
        unit = _unit(claim) if claim else ""
        words = "; ".join(f"{place} {row[key]}" for key, place in _WORDS.items() if row[key])
        said |= {key: row[key] for key in ("source", "statement", "kind")}
        shown.append(ShownClaim(**vars(one), **said, unit=unit, words=words, corrected=None))
    return sorted(shown, key=lambda claim: (claim.kind != "experiment", ORDER.index(claim.verdict)))


def _unit(claim: Claim) -> str:
    """What a claim's number is: of a stated improvement a percentage, which is positive where the first is better."""
    if isinstance(claim.statistic, Decided) and any(pair.stated is not None for pair in claim.statistic.pairs):
        return "% smaller test error"
    return _UNITS.get(claim.statistic.name, "")


def _row(row: Mapping[str, Any], page: Page, labels: Mapping[str, str]) -> Row:
    return Row(
        name=row["claim"],
        verdict=Verdict(row["verdict"]),
        number=_number(row["value"], row["low"], row["high"]),
        statistic=readable_text(row["statistic"], page.titles),
        note=readable_text(row["note"], page.titles),
        form=row["form"],
        evidence=[_evidence(name, page, labels) for name in row["evidence"].split("; ") if name],
    )


def _number(value: float, low: float, high: float) -> str:
    text = "" if pd.isna(value) else measured(value)
    if pd.isna(low) and not pd.isna(high):
        return f"{text} (at most {measured(high)})"
    return text if pd.isna(low) else f"{text} [{measured(low)}, {measured(high)}]"


def _evidence(name: str, page: Page, labels: Mapping[str, str]) -> Link:
    """A figure's place on the page, else the file; ValueError for one that is nowhere."""
    if not (page.folder / name).is_file():
        raise ValueError(
            f"{page.folder}/claims.csv: evidence: {show_value(name)}: no such file: must be in that folder"
        )
    place = anchor(Path(name))
    return (labels[place], f"#{place}") if place in labels else (name, page.link(page.folder / name))
