"""The rows of claims.csv: which verdicts turn with noise or protocol, and all of them in text and Markdown."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from silodp.verdicts.claims.base import AT_CLAIM, CLAIM, DATA_SET, DEFAULT, FORM, PAPER_NOISE, READING, SAME_ROWS
from silodp.verdicts.words import AGAINST, Verdict

# The last two: which statement the row is about, where the printed and the corrected ones differ; and what stands
# behind the claim: experiment, theorem or derivation.
COLUMNS = ["claim", "source", "statement", "statistic", "value", "low", "high", "verdict", "evidence", "form", "kind"]
# Behind them: how many comparisons are ahead, behind, neither; what the row is about (`base.Finding`); its slack.
ABOUT = ["tally", "id", "scope", "reading", "pair", "data_set", "quantifier", "rows", "experiment", "M", "R", "slack"]
_TEXTS = ["source", "statement", "evidence", "form", *ABOUT[:9]]
# Parts up to which each is named; of more, the claim's own rows have them.
FEW = 3


def filled(table: pd.DataFrame) -> pd.DataFrame:
    """A claims.csv as read, with "" for empty texts."""
    return table.astype(dict.fromkeys(_TEXTS, object)).fillna(dict.fromkeys(_TEXTS, ""))


@dataclass(frozen=True)
class Change:
    """How a claim comes out when the noise or the protocol changes and everything else stays.

    `reading` is the calibrated noise or the variant, `headline` the claim's own verdict, `before` the verdict with the
    paper's noise or protocol on the same rows, `after` that under the reading; `why` has the numbers, before → after.
    """

    claim: str
    reading: str
    headline: Verdict
    before: Verdict
    after: Verdict
    why: str

    @property
    def turns(self) -> bool:
        return self.before != self.after


def noise_changes(table: pd.DataFrame) -> list[Change]:
    """The claims of a claims.csv that were decided again at the claimed ε; those that turn stand first."""
    return _changes(table, PAPER_NOISE, AT_CLAIM)


def protocol_changes(table: pd.DataFrame) -> list[Change]:
    """Every claim of a claims.csv with each variant that decides it; those that turn stand first."""
    return _changes(table, SAME_ROWS, "")


def _changes(table: pd.DataFrame, before: str, after: str) -> list[Change]:
    found = []
    for name, claim in filled(table).groupby("id", sort=False):
        wholes = claim[claim["scope"] == READING]
        # Each pair is read off the rows that only one of them can be.
        for reading in wholes.loc[wholes["rows"] == (after or before), "reading"]:
            rest = [choice for choice in reading.split(";") if choice != "noise=calibrated"]
            readings = {after: reading, before: ";".join(rest) if after else reading}
            pair = [claim[(claim["rows"] == rows) & (claim["reading"] == readings[rows])] for rows in (before, after)]
            ends = [part[part["scope"] == READING] for part in pair]
            if not all(map(len, ends)) or claim["scope"].iloc[0] != CLAIM:
                continue
            headline, first, second = (Verdict(rows["verdict"].iloc[0]) for rows in (claim, *ends))
            why = _why(ends[0].iloc[0], ends[1].iloc[0], [part[part["scope"] != READING] for part in pair])
            found.append(Change(str(name), reading or DEFAULT, headline, first, second, why))
    return sorted(found, key=lambda change: not change.turns)


def _why(before: pd.Series, after: pd.Series, parts: Sequence[pd.DataFrame]) -> str:
    """The numbers before → after: of pairs their mean differences, else of parts; of many parts, those that turn."""
    place = ["scope", "experiment", "M", "R", "data_set", "pair"]
    both = parts[1].merge(parts[0], on=place, suffixes=("", "_before"))
    of_pairs = both[both["scope"] == DATA_SET]
    words = [
        f"{row['pair']} on {row['data_set']} {row['value_before']:+.4f} → {row['value']:+.4f} in the mean"
        for row in of_pairs.to_dict("records")
    ]
    if not words:
        turned = both["verdict"] != both["verdict_before"]
        for row in (both[turned] if len(both) > FEW else both).to_dict("records"):
            if math.isfinite(row["value_before"] + row["value"]):
                verdict = f" ({row['verdict']})" if row["verdict"] != row["verdict_before"] else ""
                setting = f"{row['experiment']} M={row['M']} R={row['R']}" if row["R"] else row["experiment"]
                named = ", ".join(filter(None, (setting, row["pair"])))
                words.append(f"{named} {row['value_before']:.3g} → {row['value']:.3g}{verdict}")
    shares = [float(row["value"]) for row in (before, after)]
    if all(map(math.isfinite, shares)):
        words.insert(0, f"{shares[0]:.0%} → {shares[1]:.0%} of the parts support")
    return "; ".join(words)


# Theorems with these verdicts are named in the table, confirmed ones with their slack; claims.csv names the others.
NAMED = (*AGAINST, Verdict.OPEN, Verdict.VACUOUS, Verdict.CONFIRMED)


def claim_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the claims themselves, and of the readings under which they were decided beside."""
    return table[table["scope"].isin([CLAIM, READING, FORM])]


def verdict_with_slack(row: Mapping) -> str:
    """A verdict and how far its bound lies above the worst value, as "confirmed (slack 20)"."""
    said = row["verdict"] in (Verdict.CONFIRMED, Verdict.NOT_CONTRADICTED) and row["slack"] == row["slack"]
    return f"{row['verdict']} (slack {row['slack']:.2g})" if said else str(row["verdict"])


def number(row: Mapping) -> str:
    """Value and interval to 3 digits; empty without a value."""
    if pd.isna(row["value"]):
        return ""
    interval = "" if pd.isna(row["low"]) or pd.isna(row["high"]) else f" [{row['low']:.3g}, {row['high']:.3g}]"
    return f"{row['value']:.3g}{interval}"


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table of the claims and their corrected forms; theorems (T-…) by verdict, those at fault by name."""
    rows: list[list] = []
    theorems: dict[str, list[str]] = {}
    for row in table[table["scope"].isin([CLAIM, FORM])].to_dict("records"):
        claim, corrected = row["id"], row["scope"] == FORM
        if claim.startswith("T-"):
            named = claim.removeprefix("T-") + " [corrected]" * corrected
            slack = f" ({row['slack']:.2g})" * (row["verdict"] == Verdict.CONFIRMED and row["slack"] == row["slack"])
            theorems.setdefault(row["verdict"], []).append(named + slack)
        else:
            words = "*corrected*" if corrected else row["statement"]
            rows.append([claim, words, f"**{verdict_with_slack(row)}**"])
    for verdict, names in theorems.items():
        words = ", ".join(names) if verdict in NAMED else f"{len(names)} statements"
        rows.append(["T-", words, f"**{verdict}**"])
    return _table(["claim", "what it says", "verdict"], rows)


def turned_table(table: pd.DataFrame) -> str:
    """A Markdown table of the claims that turn when they are decided again at exactly the claimed ε."""
    changes = [change for change in noise_changes(table) if change.turns]
    rows = [[row.claim, row.reading, row.headline, row.before, f"**{row.after}**"] for row in changes]
    return _table(["claim", "variant", "headline", "paper's noise, same trials", "calibrated noise"], rows)


def under_variants(tables: Mapping[str, pd.DataFrame]) -> str:
    """A Markdown table of the claims that turn under a variant; `tables` maps its run file to its claims.csv."""
    changes = [(run, change) for run, table in tables.items() for change in protocol_changes(table) if change.turns]
    rows = [[change.claim, change.reading, run, change.before, f"**{change.after}**"] for run, change in changes]
    return _table(["claim", "variant", "run", "the paper's protocol, same rows", "under the variant"], rows)


def _table(heading: list[str], rows: Iterable[list]) -> str:
    lines = ["| " + " | ".join(heading) + " |", "| " + " | ".join("---" for _ in heading) + " |"]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def text(table: pd.DataFrame) -> str:
    rows = claim_rows(table)
    width = max((len(name) for name in rows["claim"]), default=0)
    lines = [
        f"{row['claim']:<{width}}  {verdict_with_slack(row):<27}  {number(row)}" for row in rows.to_dict("records")
    ]
    verdicts = rows[rows["scope"] == CLAIM]["verdict"]
    counts = {word: (verdicts == word).sum() for word in Verdict}
    return "\n".join([*lines, ", ".join(f"{count} {word}" for word, count in counts.items() if count)])
