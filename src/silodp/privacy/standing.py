"""What the proven bounds on the true ε say of a claim, in one of three words."""

from enum import StrEnum
from typing import Self

import pandas as pd


class Word(StrEnum):
    """Words for what is found: the text, a `sign` that needs no colour, and perhaps the `meaning` in a sentence."""

    sign: str
    meaning: str

    def __new__(cls, word: str, sign: str = "", meaning: str = "") -> Self:
        member = str.__new__(cls, word)
        member._value_, member.sign, member.meaning = word, sign, meaning
        return member

    @property
    def text_with_sign(self) -> str:
        return f"{self.sign} {self}"

    @property
    def style(self) -> str:
        return self.value.replace(" ", "-")


class Standing(Word):
    """How a claimed ε stands against the true one."""

    KEPT = "kept", "●"
    NOT_CERTIFIED = "not certified", "◐"
    VIOLATED = "violated", "○"


def standing(claimed: float, lower: float, upper: float) -> Standing:
    """The word for a claim whose true ε lies in [lower, upper]; NaN for an end that is not proven."""
    if upper <= claimed:
        return Standing.KEPT
    return Standing.VIOLATED if lower > claimed else Standing.NOT_CERTIFIED


def standings(rows: pd.DataFrame) -> pd.Series:
    """The word of each private row of a results table or of privacy.csv."""
    ends = rows.reindex(columns=["epsilon", "delivered_lower", "delivered_epsilon"]).to_numpy(float)
    return pd.Series([standing(*row) for row in ends], index=rows.index, dtype=object)


def counts_of(rows: pd.DataFrame) -> dict[Standing, int]:
    """How many private rows keep their claim, are not certified at it, and violate it."""
    words = standings(rows)
    return {word: int((words == word).sum()) for word in Standing}
