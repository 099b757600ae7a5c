"""What the proven bounds on the true ε say of a claim, in one of three words."""

import math
from enum import StrEnum
from typing import Self

import pandas as pd


class Standing(StrEnum):
    """How a claimed ε stands: its text, and a `sign` that needs no colour."""

    sign: str

    def __new__(cls, word: str, sign: str) -> Self:
        """A member whose value is its word."""
        member = str.__new__(cls, word)
        member._value_, member.sign = word, sign
        return member

    KEPT = "kept", "●"
    NOT_CERTIFIED = "not certified", "◆"
    VIOLATED = "violated", "▲"

    @property
    def signed(self) -> str:
        """The mark and the word."""
        return f"{self.sign} {self}"


def standing(claimed: float, lower: float, upper: float) -> Standing:
    """The word for a claim whose true ε lies in [lower, upper]; NaN for an end that is not proven."""
    if upper <= claimed:
        return Standing.KEPT
    return Standing.VIOLATED if lower > claimed else Standing.NOT_CERTIFIED


def standings(rows: pd.DataFrame) -> pd.Series:
    """The word of each private row of a results table, of privacy.csv or of formulas.csv."""
    claimed = rows["claimed_epsilon" if "claimed_epsilon" in rows else "epsilon"]
    lower = rows["delivered_lower"] if "delivered_lower" in rows else [math.nan] * len(rows)
    words = map(standing, claimed, lower, rows["delivered_epsilon"])
    return pd.Series(list(words), index=rows.index, dtype=object)
