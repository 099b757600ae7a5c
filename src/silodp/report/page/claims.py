"""The page's verdicts: every claim with its numbers and evidence, and the claims that turn with noise or protocol."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.config.errors import show_value
from silodp.files import read_table
from silodp.report.figures.words import readable_text, variant_words
from silodp.report.numbers import measured
from silodp.report.page.blocks import Figure, Link, Section, Table, Text
from silodp.report.page.figures import Page, anchor
from silodp.report.page.papers import ORDER
from silodp.verdicts.claims.base import SURROGATES
from silodp.verdicts.claims.claim_file import Claim
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.rows import (
    AT_CLAIM,
    COLUMNS,
    DEFAULT,
    PAPER_NOISE,
    SAME_ROWS,
    TALLY,
    Change,
    protocol_changes,
    with_columns,
)
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
    """A claim with its rule, the verdicts beside its own and its parts; `variants` are those of one line.

    `measures` says what `number` is; `effects` are numbers with their units, one for each pair of algorithms.
    """

    name: str
    source: str
    statement: str
    kind: str
    rule: str
    quote: str
    reply: str
    measures: str
    effects: Sequence[tuple[str, str]]
    tally: str
    variants: Sequence[Row]
    readings: Sequence[Row]
    parts: Table


# What the effect of a statistic is measured in.
_UNITS = {
    "paired_difference": "test error",
    "relative_improvement": "% of the test error",
    "price_of_privacy": "test error",
    "delivered_epsilon": "true ε over claimed ε",
    "same_iterates": "distance of iterates",
}
# What a claim's number is; of a part of it, see `_UNITS`.
_MEASURES = {"paired_difference": "of comparisons support it", "delivered_epsilon": "is true over claimed ε"}
_PAIR = re.compile(r"\w+, (\w[\w:]* − \w[\w:]*)")


def read_claims(folder: Path) -> pd.DataFrame | None:
    """A run's claims.csv with the columns of `with_columns`, None where missing; ValueError for an unknown verdict."""
    path = folder / "claims.csv"
    if not path.is_file():
        return None
    table = read_table(path, COLUMNS).fillna({"evidence": "", "form": "", "source": "", "statement": "", TALLY: ""})
    for word in table["verdict"]:
        if word not in list(Verdict):
            raise ValueError(f"{path}: verdict: {show_value(word)}: must be one of {', '.join(Verdict)}")
    return with_columns(table)


def shown_claims(page: Page, table: pd.DataFrame, figures: Sequence[Figure]) -> list[ShownClaim]:
    """Every claim, experiments first, what speaks against a paper first; evidence links to `figures` on the page."""
    labels = {figure.anchor: figure.label for figure in figures if figure.svg}
    stated = {claim.id: claim for claim in load_claims()}
    claims: list[ShownClaim] = []
    for name, rows in table.groupby("name", sort=False):
        records = rows.to_dict("records")
        (head, _), *others = ((_row(row, page, labels), row) for row in records)
        beside = [(part, row["rows"]) for part, row in others if row["part"] in ("", SURROGATES)]
        parts = [part for part, row in others if row["part"] not in ("", SURROGATES)]
        cells = [[part.part, part.verdict, part.number, part.statistic] for part in parts]
        claim = stated.get(str(name))
        said = {key: records[0][key] for key in ("name", "source", "statement", "kind")}
        said |= {key: getattr(claim, key, "") for key in ("rule", "quote", "reply")}
        shown = ShownClaim(
            **vars(head),
            **said,
            measures=_MEASURES.get(claim.statistic.name, "") if claim else "",
            effects=_effects(records, claim, page),
            tally=str(records[0].get(TALLY) or ""),
            variants=[part for part, label in beside if label in ("", AT_CLAIM)],
            readings=[part for part, _ in beside],
            parts=Table(f"{name}: its parts", ["part", "verdict", "number", "how"], cells),
        )
        claims.append(shown)
    return sorted(claims, key=lambda claim: (claim.kind != "experiment", ORDER.index(claim.verdict)))


def _effects(records: Sequence[Mapping[str, Any]], claim: Claim | None, page: Page) -> list[tuple[str, str]]:
    """The numbers that a claim's line shows, with units: for each pair the data set that decides most clearly.

    Where a setting alone speaks against the claim it follows.
    """
    head, name = records[0], claim.statistic.name if claim else ""
    unit = _UNITS.get(name, "")
    if name not in ("paired_difference", "relative_improvement", "price_of_privacy"):
        return [(_number(head["value"], head["low"], head["high"]), unit)]
    protocols = ("", claim.protocol) if claim else ("",)
    rows = [row for row in records[1:] if not row["rows"] and row["reading"] in protocols and row["part"]]
    rows = [row for row in rows if pd.notna(row["low"])]
    of_data_sets = [row for row in rows if _PAIR.fullmatch(row["part"])] or rows
    against: list[Mapping[str, Any]] = []
    if name == "paired_difference" and head["verdict"] in (Verdict.REFUTED, Verdict.DEPENDS):
        against = [row for row in rows if row["low"] > 0]
    shown = []
    for pair in dict.fromkeys(row["part"].rpartition(", ")[2] for row in of_data_sets):
        some = [row for row in of_data_sets if row["part"].endswith(pair)]
        shown.append(_clearest([row for row in some if row in against] or some))
    if against and not any(row in against for row in shown):
        shown.append(_clearest(against))
    return [
        (_number(row["value"], row["low"], row["high"]), f"{unit}, {_part_title(row['part'], page)}") for row in shown
    ]


def _clearest(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return max(rows, key=lambda row: abs(row["value"]) / max(row["high"] - row["low"], 1e-12))


def _part_title(part: str, page: Page) -> str:
    """The data set or setting of a part of a claim, and its pair."""
    place, _, what = part.rpartition(", ")
    named = next((title for key, title in page.titles.items() if place and key.startswith(place.split()[0])), "")
    where = " ".join(filter(None, (named.partition(",")[0], place.partition(" ")[2])))
    return ": ".join(filter(None, (where, readable_text(what))))


def _row(row: Mapping[str, Any], page: Page, labels: Mapping[str, str]) -> Row:
    reading = "default protocol" if row["reading"] == DEFAULT else readable_text(variant_words(row["reading"]))
    beside = {"": reading, AT_CLAIM: reading, PAPER_NOISE: "same settings, paper’s noise"}
    beside[SAME_ROWS] = f"same settings as “{reading}”, paper’s protocol"
    parts = [readable_text(row["part"], page.titles).replace(SURROGATES, "scaled-down surrogates"), beside[row["rows"]]]
    files = [name for name in row["evidence"].split("; ") if name]
    return Row(
        part=", ".join(filter(None, parts)),
        verdict=Verdict(row["verdict"]),
        number=_number(row["value"], row["low"], row["high"]),
        statistic=readable_text(str(row["statistic"]), page.titles),
        form=row["form"],
        evidence=[_evidence(name, page, labels) for name in files],
    )


def _number(value: float, low: float, high: float) -> str:
    text = "" if pd.isna(value) else measured(value)
    if pd.isna(low) and not pd.isna(high):
        return f"{text} (at most {measured(high)})"
    return text if pd.isna(low) else f"{text} [{measured(low)}, {measured(high)}]"


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
    rows = changed(page, changes, "same settings, paper’s protocol", "under the variant")
    return [Section("variants", "Choices of protocol", [Text(text), rows], folded=True)] if changes else []


def changed(page: Page, changes: Sequence[Change], before: str, after: str) -> Table:
    """Claims decided twice, with the numbers behind both verdicts."""
    rows = []
    for change in changes:
        variant = "the default" if change.reading == "default" else variant_words(change.reading)
        why, verdicts = readable_text(change.why, page.titles), [change.headline, change.before, change.after]
        rows.append([change.claim, variant, *verdicts, "turns" if change.turns else "stays", why])
    heading = ["claim", "variant", "the claim itself", before, after, "all else equal", "why"]
    return Table(f"Verdicts decided again; why: {before} → {after}", heading, rows)
