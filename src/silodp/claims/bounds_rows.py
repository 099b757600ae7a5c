"""Claims that checks hold against runs: verdicts read from bounds/*.csv, and not computed again."""

import math

import numpy as np
import pandas as pd

from silodp.claims.base import (
    CONFIRMED,
    INCONCLUSIVE,
    NOT_TESTABLE,
    REFUTED,
    Finding,
    RunFolder,
    counted,
    merged,
    together,
)
from silodp.claims.expressions import expression
from silodp.claims.models import BoundsVerdicts, Claim, Rows

PRINTED = " (printed)"
AS_PRINTED = "[printed]"
SAID = {CONFIRMED: "for it", REFUTED: "against it", INCONCLUSIVE: "open"}


def bounds_verdicts(claim: Claim, run: RunFolder) -> list[Finding]:
    """Confirmed where every chosen row of the checks speaks for the claim, refuted where one speaks against it.

    Rows of a printed form that is known to differ from what holds (docs/errata.md) make a row of their own.
    """
    statistic = claim.statistic
    assert isinstance(statistic, BoundsVerdicts)
    groups: dict[str, list[Finding]] = {"": []}
    for rows in statistic.rows:
        for part, one in _chosen(claim, statistic, rows, run):
            groups.setdefault(part, []).append(one)
    if statistic.expression:
        groups[""].append(expression(statistic.expression, ""))
    return [_joined(part, found) for part, found in groups.items() if found]


def _chosen(claim: Claim, statistic: BoundsVerdicts, rows: Rows, run: RunFolder) -> list[tuple[str, Finding]]:
    """One finding for the rows, and one for the printed form's where there are any."""
    table = run.bounds(rows.check)
    part = f"[{rows.reading}]" if rows.reading else ""
    if table is None:
        text = (
            f"check {rows.check}: needs bounds/{rows.check}.csv (make bounds, or `targets: [bounds]` in the run file)"
        )
        return [(part, Finding("", text, NOT_TESTABLE))]
    found = []
    for theorem, name in ((rows.theorem, part), (rows.theorem + PRINTED, AS_PRINTED)):
        own = table[(table["theorem"] == theorem) & (table["verdict"] != "")]
        own = own[own["parameter"].str.startswith(rows.parameter)]
        if rows.last and len(own):
            own = own[own["value"] == own["value"].max()]
        if len(own):
            files = run.evidence(claim, {"check": rows.check})
            found.append((name, _finding(rows, own, statistic, name == AS_PRINTED, files)))
        elif theorem == rows.theorem:
            text = f"check {rows.check}: has no row of {rows.theorem} {rows.parameter}".rstrip()
            found.append((part, Finding("", text, NOT_TESTABLE)))
    return found


def _finding(
    rows: Rows, table: pd.DataFrame, statistic: BoundsVerdicts, printed: bool, files: tuple[str, ...]
) -> Finding:
    verdicts = [_read(row, statistic, printed) for row in table.to_dict("records")]
    counts = {SAID[one]: verdicts.count(one) for one in (CONFIRMED, REFUTED, INCONCLUSIVE)}
    worst = max(
        range(len(verdicts)),
        key=lambda place: ((REFUTED, INCONCLUSIVE, CONFIRMED)[::-1].index(verdicts[place]), _use(table.iloc[place])),
    )
    row = table.iloc[worst]
    named = f"{row['parameter']} {row['value']:g}"
    text = f"check {rows.check}, {len(verdicts)} rows: {counted(counts)}; tightest: {named}, {row['verdict']}"
    value, low, high = (float(row[name]) for name in ("measured", "measured_low", "measured_high"))
    if math.isnan(value):
        # A check without runs holds a formula's own number, which stands as both bounds or as the upper one.
        value = float(row["lower"] if row["lower"] == row["upper"] else row["upper"])
    return Finding("", text, together(verdicts), value, low, high, files)


def _read(row: dict, statistic: BoundsVerdicts, printed: bool) -> str:
    """The check's word as one of the verdicts."""
    said = str(row["verdict"])
    if printed:
        return CONFIRMED if said.startswith("holds") else REFUTED if said.startswith("fails") else INCONCLUSIVE
    if said.startswith("constant at most") and statistic.constant < 1:
        # A lower bound with a hidden constant: a run below it bounds the constant, and fails at the least one allowed.
        least = statistic.constant * row["lower"]
        return CONFIRMED if row["measured_low"] >= least else REFUTED if row["measured_high"] < least else INCONCLUSIVE
    if any(said.startswith(word) for word in statistic.contradicts):
        return REFUTED
    return CONFIRMED if any(said.startswith(word) for word in statistic.supports) else INCONCLUSIVE


def _use(row: pd.Series) -> float:
    """How much of the room up to its nearer bound a measured interval uses up, to find the tightest row."""
    low, high, lower, upper = (float(row[name]) for name in ("measured_low", "measured_high", "lower", "upper"))
    if not np.isfinite([low, high]).all():
        return -math.inf
    if np.isfinite([lower, upper]).all() and lower < upper:
        return max(high - upper, lower - low) / (upper - lower)
    uses = [high / upper - 1] if upper > 0 else []
    uses += [1 - low / lower] if lower > 0 else []
    return max(uses, default=-math.inf)


def _joined(part: str, found: list[Finding]) -> Finding:
    """All findings of one part as one: the verdict of all, the numbers of the one that decides."""
    verdict = together([one.verdict for one in found])
    tested = [one for one in found if one.verdict != NOT_TESTABLE]
    order = [one for one in found if one.verdict == verdict] or tested or found
    texts = "; ".join(dict.fromkeys(one.statistic for one in [order[0], *found]))
    first = order[0]
    return Finding(part, texts, verdict, first.value, first.low, first.high, merged(found))
