"""The page's verdicts: every claim with its numbers and evidence, and the claims that turn with noise or protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.config.errors import shown
from silodp.files import read_table
from silodp.report.figures.words import in_words, variant_words
from silodp.report.numbers import measured
from silodp.report.page.blocks import Figure, Link, Section, Table, Text
from silodp.report.page.figures import Page, anchor
from silodp.report.page.papers import ORDER
from silodp.verdicts.claims.base import SURROGATES
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.rows import COLUMNS, Change, protocol_changes, with_columns
from silodp.verdicts.words import Verdict


@dataclass
class Row:
    """One verdict: its `part` of the claim in words, its number with its interval, and links to its evidence."""

    part: str
    verdict: Verdict
    number: str
    statistic: str
    form: str
    evidence: Sequence[Link]


@dataclass
class ShownClaim(Row):
    """A claim with its rule, the verdicts beside its own and its parts."""

    name: str
    source: str
    statement: str
    kind: str
    rule: str
    quote: str
    reply: str
    readings: Sequence[Row]
    parts: Table


def read_claims(folder: Path) -> pd.DataFrame | None:
    """A run's claims.csv with the columns of `with_columns`, None where missing; ValueError for an unknown verdict."""
    path = folder / "claims.csv"
    if not path.is_file():
        return None
    table = read_table(path, COLUMNS).fillna({"evidence": "", "form": "", "source": "", "statement": ""})
    for word in table["verdict"]:
        if word not in list(Verdict):
            raise ValueError(f"{path}: verdict: {shown(word)}: must be one of {', '.join(Verdict)}")
    return with_columns(table)


def shown_claims(page: Page, table: pd.DataFrame, figures: Sequence[Figure]) -> list[ShownClaim]:
    """Every claim, experiments first, what speaks against a paper first; evidence links to `figures` on the page."""
    labels = {figure.anchor: figure.label for figure in figures if figure.svg}
    stated = {claim.id: claim for claim in load_claims()}
    claims: list[ShownClaim] = []
    for name, rows in table.groupby("name", sort=False):
        records = rows.to_dict("records")
        head, *others = (_row(row, page, labels) for row in records)
        whole = [row["part"] in ("", SURROGATES) for row in records[1:]]
        parts = [part for part, beside in zip(others, whole, strict=True) if not beside]
        cells = [[part.part, part.verdict, part.number, part.statistic] for part in parts]
        said = {key: records[0][key] for key in ("name", "source", "statement", "kind")}
        said |= {key: getattr(stated.get(str(name)), key, "") for key in ("rule", "quote", "reply")}
        claim = ShownClaim(
            **vars(head),
            **said,
            readings=[part for part, beside in zip(others, whole, strict=True) if beside],
            parts=Table(f"{name}: its parts", ["part", "verdict", "number", "how"], cells),
        )
        claims.append(claim)
    return sorted(claims, key=lambda claim: (claim.kind != "experiment", ORDER.index(claim.verdict)))


def _row(row: Mapping[str, Any], page: Page, labels: Mapping[str, str]) -> Row:
    part = in_words(row["claim"].partition(": ")[2], page.titles).replace("[", "").replace("]", "")
    files = [name for name in row["evidence"].split("; ") if name]
    return Row(
        part=part.replace(SURROGATES, "scaled-down surrogates"),
        verdict=Verdict(row["verdict"]),
        number=_number(row["value"], row["low"], row["high"]),
        statistic=in_words(str(row["statistic"]), page.titles),
        form=row["form"],
        evidence=[_evidence(name, page, labels) for name in files],
    )


def _number(value: float, low: float, high: float) -> str:
    text = "" if pd.isna(value) else measured(value)
    if pd.isna(low) and not pd.isna(high):
        return f"{text} (at most {measured(high)})"
    return text if pd.isna(low) else f"{text} ({measured(low)} to {measured(high)})"


def _evidence(name: str, page: Page, labels: Mapping[str, str]) -> Link:
    """A figure's place on the page, else the file; its address is None where it is nowhere."""
    if not name.endswith(".svg"):
        return name, page.link(page.folder / name)
    place = anchor(Path(name))
    return labels.get(place, Path(name).stem), f"#{place}" if place in labels else None


def protocols(page: Page, table: pd.DataFrame) -> list[Section]:
    """Claims that a variant of the protocol decides as well; no section where the run trains no variant."""
    changes = protocol_changes(table)
    text = (
        "What a fair reader could have chosen otherwise, on the same experiments, settings, ε and trials: "
        f"{sum(change.turns for change in changes)} of {len(changes)} verdicts turn with the choice alone."
    )
    rows = changed(page, changes, "the paper's protocol, same rows", "under the variant")
    return [Section("variants", "Choices of protocol", [Text(text), rows])] if changes else []


def changed(page: Page, changes: Sequence[Change], before: str, after: str) -> Table:
    """Claims decided twice, with the numbers behind both verdicts."""
    rows = []
    for change in changes:
        variant = "the default" if change.reading == "default" else variant_words(change.reading)
        why, verdicts = in_words(change.why, page.titles), [change.headline, change.before, change.after]
        rows.append([change.claim, variant, *verdicts, "turns" if change.turns else "stays", why])
    heading = ["claim", "variant", "the claim itself", before, after, "all else equal", "why"]
    return Table(f"Verdicts decided again; why: {before} → {after}", heading, rows)
