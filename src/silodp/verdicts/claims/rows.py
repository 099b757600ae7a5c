"""The rows of claims.csv read back: what a row is about, and which verdicts turn, in text and Markdown."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from silodp.verdicts.claims.base import SURROGATES
from silodp.verdicts.words import Verdict

# The last two: which statement the row is about, where the printed and the corrected ones differ; and what stands
# behind the claim: experiment, theorem or derivation.
COLUMNS = ["claim", "source", "statement", "statistic", "value", "low", "high", "verdict", "evidence", "form", "kind"]
# How many comparisons of a claim are ahead, behind, neither; tables of earlier versions lack it.
TALLY = "tally"
# Which rows a verdict beside the claim's own is about.
AT_CLAIM = "at exactly the claimed ε:"
PAPER_NOISE = "the same rows with the paper's noise:"
SAME_ROWS = "the paper's protocol on the rows of"
DEFAULT = "default"
# Parts up to which each is named; of more, the claim's own rows have them.
FEW = 3
_LABEL = re.compile(
    rf"(?P<before>.*?)(?:, | |^)\[(?P<rows>{AT_CLAIM}|{PAPER_NOISE}|{SAME_ROWS}|)(?P<reading>.*?)\](?:, (?P<after>.*))?"
)
# The size by which two noises or protocols are told apart: a pair's mean difference on a data set.
_MEAN = re.compile(r"(\w+ − [\w:]+(?: on \w+)?) ([+-]\d+\.\d+) \[")


def row_label(rows: str, reading: str) -> str:
    """The label of verdicts beside a claim's own, as in `[at exactly the claimed ε: noise=calibrated]`."""
    return f"[{rows} {reading or DEFAULT}]"


def with_columns(table: pd.DataFrame) -> pd.DataFrame:
    """A claims.csv with more columns: `name` of the claim, `part` without its label, `reading`, and `rows`.

    `rows` is `AT_CLAIM`, `PAPER_NOISE`, `SAME_ROWS`, or empty for the claim's own.
    """
    names, parts = (table["claim"].astype(str).str.partition(": ")[place] for place in (0, 2))
    columns = []
    for part in parts:
        if match := _LABEL.fullmatch(part):
            columns.append((match["before"] or match["after"] or "", match["rows"], match["reading"].strip()))
        else:
            columns.append((part, "", ""))
    part, rows, reading = zip(*columns, strict=True) if columns else ((), (), ())
    return table.assign(name=names, part=part, rows=rows, reading=reading)


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
    for name, claim in with_columns(table).groupby("name", sort=False):
        whole = claim[claim["part"] == ""]
        # Each pair is read off the rows that only one of them can be.
        for _, row in whole[whole["rows"] == (after or before)].iterrows():
            rest = [choice for choice in row["reading"].split(";") if choice != "noise=calibrated"]
            readings = {after: row["reading"], before: ";".join(rest) or DEFAULT}
            if not after:
                readings[before] = row["reading"]
            pair = [claim[(claim["rows"] == rows) & (claim["reading"] == readings[rows])] for rows in (before, after)]
            ends = [part[part["part"] == ""] for part in pair]
            if not all(map(len, ends)) or claim["claim"].iloc[0] != name:
                continue
            headline, first, second = (Verdict(rows["verdict"].iloc[0]) for rows in (claim, *ends))
            why = _why(ends[0].iloc[0], ends[1].iloc[0], [part[part["part"] != ""] for part in pair])
            found.append(Change(str(name), row["reading"], headline, first, second, why))
    return sorted(found, key=lambda change: not change.turns)


def _why(before: pd.Series, after: pd.Series, parts: Sequence[pd.DataFrame]) -> str:
    """The numbers before → after: of pairs their mean differences, else of parts; of many parts, those that turn."""
    means = [dict(_MEAN.findall(str(row["statistic"]))) for row in (before, after)]
    words = [f"{pair} {means[0][pair]} → {mean} in the mean" for pair, mean in means[1].items() if pair in means[0]]
    if not words:
        both = parts[1].merge(parts[0], on="part", suffixes=("", "_before"))
        turned = both["verdict"] != both["verdict_before"]
        for row in (both[turned] if len(both) > FEW else both).to_dict("records"):
            if math.isfinite(row["value_before"] + row["value"]):
                verdict = f" ({row['verdict']})" if row["verdict"] != row["verdict_before"] else ""
                words.append(f"{row['part']} {row['value_before']:.3g} → {row['value']:.3g}{verdict}")
    shares = [float(row["value"]) for row in (before, after)]
    if all(map(math.isfinite, shares)):
        words.insert(0, f"{shares[0]:.0%} → {shares[1]:.0%} of the parts support")
    return "; ".join(words)


# Theorems with these verdicts are named in the table; claims.csv names the others.
NAMED = (Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.VACUOUS)


def claim_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the claims themselves, and of the readings under which they were decided beside."""
    part = table["claim"].str.partition(": ")[2]
    return table[(part == "") | part.str.startswith(("[", SURROGATES))]


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
    for row in table.to_dict("records"):
        claim, _, part = row["claim"].partition(": ")
        if part in ("", "[corrected]") and claim.startswith("T-"):
            theorems.setdefault(row["verdict"], []).append(claim.removeprefix("T-") + f" {part}" * bool(part))
        elif part in ("", "[corrected]"):
            words = "*corrected*" if part else row["statement"]
            rows.append([claim, words, f"**{row['verdict']}**"])
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
    lines = [f"{row['claim']:<{width}}  {row['verdict']:<21}  {number(row)}" for row in rows.to_dict("records")]
    verdicts = rows[~rows["claim"].str.contains(": ")]["verdict"]
    counts = {word: (verdicts == word).sum() for word in Verdict}
    return "\n".join([*lines, ", ".join(f"{count} {word}" for word, count in counts.items() if count)])
