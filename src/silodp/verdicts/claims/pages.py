"""The claims as text and as a Markdown table: one line a claim, its parts left to claims.csv."""

from collections.abc import Iterable, Mapping

import pandas as pd

from silodp.verdicts.claims.certified import turns
from silodp.verdicts.claims.variants import changes
from silodp.verdicts.words import Verdict


def whole(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the claims themselves, and of the readings under which they were decided beside."""
    part = table["claim"].str.partition(": ")[2]
    return table[(part == "") | part.str.startswith("[") | part.str.startswith("surrogates")]


def number(row: dict) -> str:
    """Value and interval to 3 digits; empty without a value."""
    if pd.isna(row["value"]):
        return ""
    interval = "" if pd.isna(row["low"]) or pd.isna(row["high"]) else f" [{row['low']:.3g}, {row['high']:.3g}]"
    return f"{row['value']:.3g}{interval}"


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table of claims, readings and surrogates."""
    rows = []
    for row in whole(table).to_dict("records"):
        claim, _, part = row["claim"].partition(": ")
        said = row["statement"] if not part else f"*{part}*"
        source = row["source"] if not part else ""
        rows.append([claim, said, source, f"**{row['verdict']}**", number(row), row["statistic"]])
    return _table(["claim", "what it says", "source", "verdict", "number", "how it was decided"], rows)


def turned(table: pd.DataFrame) -> str:
    """A Markdown table of the claims that were decided again at exactly the claimed ε, those that turn first."""
    rows = [
        [one.claim, one.reading, one.headline, one.paper, f"**{one.at_claim}**" if one.turns else one.at_claim, one.why]
        for one in sorted(turns(table), key=lambda one: not one.turns)
    ]
    paper, exact = ["at the paper's protocol", "paper's noise, same trials"], "at exactly the claimed ε"
    return _table(["claim", "variant", *paper, exact, "why"], rows)


def under_variants(tables: Mapping[str, pd.DataFrame]) -> str:
    """A Markdown table of the claims under each variant of the protocol, those that turn first.

    Args:
        tables: run file that trains the variants → claims.csv of its run.
    """
    found = [(run, one) for run, table in tables.items() for one in changes(table)]
    rows = [
        [one.claim, one.reading, run, one.protocol, f"**{one.variant}**" if one.turns else one.variant, one.why]
        for run, one in sorted(found, key=lambda pair: not pair[1].turns)
    ]
    return _table(["claim", "variant", "run", "the paper's protocol, same rows", "under the variant", "why"], rows)


def _table(heading: list[str], rows: Iterable[list]) -> str:
    lines = ["| " + " | ".join(heading) + " |", "| " + " | ".join("---" for _ in heading) + " |"]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def text(table: pd.DataFrame) -> str:
    """One line a claim, and how many have each verdict."""
    rows = whole(table)
    width = max((len(name) for name in rows["claim"]), default=0)
    lines = [f"{row['claim']:<{width}}  {row['verdict']:<21}  {number(row)}" for row in rows.to_dict("records")]
    own = rows[~rows["claim"].str.contains(": ")]["verdict"]
    return "\n".join([*lines, ", ".join(f"{(own == one).sum()} {one}" for one in Verdict if (own == one).any())])
