"""The page's verdicts: every claim with its numbers and evidence, and the claims that turn with noise or protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.config.errors import show_value
from silodp.files import read_table
from silodp.report.figures.words import readable_text, setting_words, variant_words
from silodp.report.numbers import measured
from silodp.report.page.blocks import Figure, Link, Section, Table, Text
from silodp.report.page.figures import Page, anchor
from silodp.report.page.papers import ORDER
from silodp.verdicts.claims.base import (
    AT_CLAIM,
    BASELINE,
    CLAIM,
    DATA_SET,
    DEFAULT,
    FORM,
    PAPER_NOISE,
    READING,
    SAME_ROWS,
    SURROGATES,
)
from silodp.verdicts.claims.claim_file import Claim
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.rows import ABOUT, COLUMNS, Change, filled, protocol_changes
from silodp.verdicts.words import AGAINST, Verdict


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
    decided: Sequence[tuple[str, str]]
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
# Columns of the decided verdicts, of procedures with their tuning; a run without decided tables has none.
_DECIDED = {"on_average": "on average", "at_every": "at every ε"}
# Scopes of rows that stand beside the claim's own; all others are parts of it.
_BESIDE = (READING, FORM)


def read_claims(folder: Path) -> pd.DataFrame | None:
    """A run's claims.csv with "" for empty texts, None where missing; ValueError for an unknown verdict."""
    path = folder / "claims.csv"
    if not path.is_file():
        return None
    table = filled(read_table(path, [*COLUMNS, *ABOUT]))
    for word in table["verdict"]:
        if word not in list(Verdict):
            raise ValueError(f"{path}: verdict: {show_value(word)}: must be one of {', '.join(Verdict)}")
    return table.fillna(dict.fromkeys(_DECIDED, ""))


def shown_claims(page: Page, table: pd.DataFrame, figures: Sequence[Figure]) -> list[ShownClaim]:
    """Every claim, experiments first, what speaks against a paper first; evidence links to `figures` on the page."""
    labels = {figure.anchor: figure.label for figure in figures if figure.svg}
    stated = {claim.id: claim for claim in load_claims()}
    claims: list[ShownClaim] = []
    for name, rows in table.groupby("id", sort=False):
        records = rows.to_dict("records")
        (head, _), *others = ((_row(row, page, labels), row) for row in records)
        beside = [(part, row["rows"]) for part, row in others if row["scope"] in _BESIDE]
        parts = [part for part, row in others if row["scope"] not in _BESIDE]
        cells = [[part.part, part.verdict, part.number, part.statistic] for part in parts]
        claim = stated.get(str(name))
        said = {key: records[0][key] for key in ("source", "statement", "kind", "tally")} | {"name": name}
        said |= {key: getattr(claim, key, "") for key in ("rule", "quote", "reply")}
        if head.verdict not in (*AGAINST, Verdict.DEPENDS):
            said["reply"] = ""
        shown = ShownClaim(
            **vars(head),
            **said,
            measures=_MEASURES.get(claim.statistic.name, "") if claim else "",
            effects=_effects(records, claim, page),
            decided=[(words, readable_text(records[0][key])) for key, words in _DECIDED.items() if records[0].get(key)],
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
    rows = [row for row in records[1:] if not row["rows"] and row["reading"] in protocols]
    rows = [row for row in rows if pd.notna(row["low"]) and row["scope"] not in _BESIDE]
    of_data_sets = [row for row in rows if row["scope"] in (DATA_SET, BASELINE)] or rows
    against: list[Mapping[str, Any]] = []
    if name == "paired_difference" and head["verdict"] in (*AGAINST, Verdict.DEPENDS):
        against = [row for row in rows if row["low"] > 0]
    shown = []
    for pair in dict.fromkeys(row["pair"] for row in of_data_sets):
        some = [row for row in of_data_sets if row["pair"] == pair]
        shown.append(_clearest([row for row in some if row in against] or some))
    if against and not any(row in against for row in shown):
        shown.append(_clearest(against))
    return [(_number(row["value"], row["low"], row["high"]), f"{unit}, {_subject(row, page)}") for row in shown]


def _clearest(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return max(rows, key=lambda row: abs(row["value"]) / max(row["high"] - row["low"], 1e-12))


def _subject(row: Mapping[str, Any], page: Page) -> str:
    """The data set or setting of a part of a claim, and its pair, algorithm or formula; empty for the claim itself."""
    place = readable_text(row["experiment"] or row["data_set"], page.titles)
    if row["R"]:
        place = f"{place}, {setting_words(int(row['M']), int(row['R']))}"
    return ": ".join(filter(None, (place, readable_text(row["pair"]))))


def _row(row: Mapping[str, Any], page: Page, labels: Mapping[str, str]) -> Row:
    reading = readable_text(variant_words(row["reading"]))
    of_rows = reading or "default protocol"
    beside = {"": of_rows if row["scope"] == READING else reading, PAPER_NOISE: "same settings, paper’s noise"}
    beside |= {AT_CLAIM: of_rows, SAME_ROWS: f"same settings as “{of_rows}”, paper’s protocol"}
    beside[SURROGATES] = ", ".join(filter(None, ("scaled-down surrogates", reading)))
    label = row["form"] if row["scope"] == FORM else beside.get(row["rows"], readable_text(row["rows"]))
    parts = ["" if row["scope"] == CLAIM else _subject(row, page), "" if row["scope"] == CLAIM else label]
    numbers = (row["value"], row["low"], row["high"])
    files = [name for name in row["evidence"].split("; ") if name]
    return Row(
        part=", ".join(filter(None, parts)),
        verdict=Verdict(row["verdict"]),
        number=_share(row) if row["scope"] in (CLAIM, READING) and row["quantifier"] else _number(*numbers),
        statistic=readable_text(str(row["statistic"]), page.titles),
        form=row["form"],
        evidence=[_evidence(name, page, labels) for name in files],
    )


def _share(row: Mapping[str, Any]) -> str:
    return "" if pd.isna(row["value"]) else f"{row['value']:.0%}"


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
        variant = "the default" if change.reading == DEFAULT else variant_words(change.reading)
        why, verdicts = readable_text(change.why, page.titles), [change.headline, change.before, change.after]
        rows.append([change.claim, variant, *verdicts, "turns" if change.turns else "stays", why])
    heading = ["claim", "variant", "the claim itself", before, after, "all else equal", "why"]
    return Table(f"Verdicts decided again; why: {before} → {after}", heading, rows)
