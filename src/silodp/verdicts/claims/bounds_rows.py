"""Claims that checks hold against runs: verdicts read from bounds/*.csv, and not computed again."""

import math

import numpy as np
import pandas as pd

from silodp.verdicts.claims.base import ClaimFinding, RunFolder, counted
from silodp.verdicts.claims.claim_file import BoundsVerdicts, Claim, Rows
from silodp.verdicts.claims.expressions import evaluated
from silodp.verdicts.words import FORMS, Verdict, combine_verdicts


def bounds_verdicts(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """The verdict of all chosen rows together, of the statement as printed first and of the corrected one beside it.

    Rows that are about neither form alone stand behind both; where there is one form only, its verdict is the claim's.
    """
    statistic = claim.statistic
    assert isinstance(statistic, BoundsVerdicts)
    groups: dict[str, list[ClaimFinding]] = {"": []}
    for rows in statistic.rows:
        for finding in _chosen(claim, rows, run):
            groups.setdefault(finding.form, []).append(finding)
    if statistic.formulas:
        groups[""].append(evaluated(statistic.formulas))
    forms = [form for form in FORMS if form in groups] or [""]
    return [_joined(form, groups[""] + (groups[form] if form else [])) for form in forms]


def _chosen(claim: Claim, rows: Rows, run: RunFolder) -> list[ClaimFinding]:
    """One finding for each form of the statement that the rows are about."""
    table = run.bounds(rows.check)
    if table is None:
        note = f"needs bounds/{rows.check}.csv (`targets: [bounds]` in the run file)"
        return [ClaimFinding(f"check {rows.check}", Verdict.NOT_TESTABLE, note=note)]
    table = table[(table["theorem"] == rows.theorem) & (table["verdict"] != "")]
    table = table[table["parameter"].str.startswith(rows.parameter)]
    if table.empty:
        note = f"bounds/{rows.check}.csv has no row of {rows.theorem} {rows.parameter}".rstrip()
        return [ClaimFinding(f"check {rows.check}", Verdict.NOT_TESTABLE, note=note)]
    files = run.evidence(name.format(check=rows.check) for name in claim.evidence)
    return [_finding(rows, part, str(form), files) for form, part in table.groupby("form", sort=False)]


def _finding(rows: Rows, table: pd.DataFrame, form: str, files: tuple[str, ...]) -> ClaimFinding:
    verdicts = [Verdict(word) for word in table["verdict"]]
    verdict = combine_verdicts(verdicts)
    # The row that decides: of the verdict's own word, the one with the least room.
    deciding = [place for place, word in enumerate(verdicts) if word == verdict] or range(len(verdicts))
    row = table.iloc[max(deciding, key=lambda place: _use(table.iloc[place]))]
    counts = counted({word: verdicts.count(word) for word in Verdict})
    text = f"check {rows.check}, {len(verdicts)} rows{f' {form}' if form else ''}: {counts}; tightest: "
    text += f"{row['parameter']} {row['value']:g}" + (f", {row['detail']}" if row["detail"] else "")
    if row["rivals"] == row["rivals"] and row["rivals"]:
        text += f" (rivals {', '.join(str(row['rivals']).split())})"
    value, low, high = (float(row[name]) for name in ("measured", "measured_low", "measured_high"))
    if math.isnan(value):
        # A check without runs holds a formula's own number, which stands as both bounds or as the upper one.
        value = float(row["lower"] if row["lower"] == row["upper"] else row["upper"])
    return ClaimFinding(text, verdict, value, low, high, files, form, slack=_slack(table))


def _slack(table: pd.DataFrame) -> float:
    """An upper bound over the worst measured value below it, of the row with the least; NaN without such rows."""
    rows = table[(table["upper"] > 0) & (table["upper"] != table["lower"]) & (table["measured"] > 0)]
    rows = rows[rows["verdict"].isin([Verdict.CONFIRMED, Verdict.NOT_CONTRADICTED])]
    return float((rows["upper"] / rows["measured"]).min())


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


def _joined(form: str, found: list[ClaimFinding]) -> ClaimFinding:
    """All findings of one form as one: the verdict of all, the numbers of the one that decides.

    A slope that is only nearest to the stated one leaves the claim open.
    """
    verdict = combine_verdicts([finding.verdict for finding in found])
    tested = [finding for finding in found if finding.verdict != Verdict.NOT_TESTABLE]
    first = next((finding for finding in found if finding.verdict == verdict), [*tested, *found][0])
    texts = "; ".join(dict.fromkeys(finding.statistic for finding in [first, *found]))
    note = "; ".join(dict.fromkeys(finding.note for finding in found if finding.note))
    if verdict == Verdict.ORDER_AGREES:
        verdict, note = Verdict.OPEN, verdict.value
    evidence = tuple(dict.fromkeys(name for finding in found for name in finding.evidence))
    slack = float(np.fmin.reduce([finding.slack for finding in found]))
    return ClaimFinding(texts, verdict, first.value, first.low, first.high, evidence, form, slack, note)
