"""The claims as text and as a Markdown table: one line a claim, its parts left to claims.csv."""

from collections.abc import Iterable, Mapping

import pandas as pd

from silodp.verdicts.claims.base import SURROGATES
from silodp.verdicts.claims.rows import noise_changes, protocol_changes
from silodp.verdicts.words import Verdict

# Theorems with these verdicts are named in the table; claims.csv names the others.
NAMED = (Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.VACUOUS)


def whole(table: pd.DataFrame) -> pd.DataFrame:
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


def turned(table: pd.DataFrame) -> str:
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
    """One line a claim, and how many have each verdict."""
    rows = whole(table)
    width = max((len(name) for name in rows["claim"]), default=0)
    lines = [f"{row['claim']:<{width}}  {row['verdict']:<21}  {number(row)}" for row in rows.to_dict("records")]
    verdicts = rows[~rows["claim"].str.contains(": ")]["verdict"]
    counts = {word: (verdicts == word).sum() for word in Verdict}
    return "\n".join([*lines, ", ".join(f"{count} {word}" for word, count in counts.items() if count)])
