"""The rows of claims.csv, and in text."""

from collections.abc import Mapping

import pandas as pd

from silodp.verdicts.words import CORRECTED, Verdict

# `on_average` and `at_every` are words of claims about trained models, `slack` a bound over the worst value, `note` why
# a claim is open; the last two: which statement the row is about, where the printed and the corrected ones differ, and
# what stands behind the claim: experiment, theorem or derivation.
COLUMNS = ["claim", "source", "statement", "statistic", "value", "low", "high", "verdict", "evidence"]
COLUMNS += ["on_average", "at_every", "slack", "note", "form", "kind"]
_TEXTS = ["source", "statement", "statistic", "evidence", "on_average", "at_every", "note", "form"]


def filled(table: pd.DataFrame) -> pd.DataFrame:
    """A claims.csv as read, with "" for empty texts."""
    return table.astype(dict.fromkeys(_TEXTS, object)).fillna(dict.fromkeys(_TEXTS, ""))


def is_corrected(table: pd.DataFrame) -> pd.Series:
    """Which rows are the corrected form of the claim in the row before."""
    return table["claim"].str.endswith(f": [{CORRECTED}]")


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


def text(table: pd.DataFrame) -> str:
    """A line a row: verdict, number, and why it is open; last, how many claims have each verdict."""
    width = max((len(name) for name in table["claim"]), default=0)
    lines = [
        f"{row['claim']:<{width}}  {verdict_with_slack(row):<27}  {number(row):<28}  {row['note']}".rstrip()
        for row in filled(table).to_dict("records")
    ]
    verdicts = table[~is_corrected(table)]["verdict"]
    counts = {word: (verdicts == word).sum() for word in Verdict}
    return "\n".join([*lines, ", ".join(f"{count} {word}" for word, count in counts.items() if count)])
