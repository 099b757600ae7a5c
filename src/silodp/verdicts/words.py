"""The words for verdicts: one enum for rows of bounds/*.csv, for claims.csv, for `silodp claims` and for the page."""

from collections.abc import Sequence
from enum import StrEnum


class Verdict(StrEnum):
    """What a row or a claim comes to; its text is what every file and page shows."""

    CONFIRMED = "confirmed"
    ORDER_AGREES = "order agrees"
    NOT_CONTRADICTED = "not contradicted"
    DERIVATION = "derivation"
    VACUOUS = "vacuous here"
    DEPENDS = "depends on the variant"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable here"

    @property
    def meaning(self) -> str:
        """When the word is used, in one sentence."""
        return _ABOUT[self][1]

    @property
    def sign(self) -> str:
        """A mark beside the word, so that colour alone never tells it."""
        return _ABOUT[self][0]

    @property
    def signed(self) -> str:
        """The mark and the word."""
        return f"{self.sign} {self}"

    @property
    def style(self) -> str:
        """The word as a class name of a page."""
        return self.value.replace(" ", "-")


_ABOUT: dict[Verdict, tuple[str, str]] = {
    Verdict.CONFIRMED: (
        "✓",
        "The statement as worded could have failed on these rows and did not: its bound lies below the largest value "
        "that can be reached, or the interval contains the stated exponent or that of the formula itself.",
    ),
    Verdict.ORDER_AGREES: (
        "≈",
        "A slope nearer to the stated exponent than to the rivals that are named beside it, whose interval leaves the "
        "stated exponent out.",
    ),
    Verdict.NOT_CONTRADICTED: (
        "○",
        "No run speaks against it, and none could confirm it: a statement about every algorithm or every instance, "
        "met on a few of them.",
    ),
    Verdict.DERIVATION: ("=", "An identity or a computation on the paper's formulas, with no run behind it."),
    Verdict.VACUOUS: ("∅", "The bound exceeds the largest value that can be reached at every row: it says nothing."),
    Verdict.DEPENDS: (
        "±",
        "Variants of the protocol that a fair reader would accept come to different verdicts, which stand beside it.",
    ),
    Verdict.REFUTED: ("✗", "At least one part has an interval, or an exact number, on the other side."),
    Verdict.INCONCLUSIVE: (
        "~",
        "Neither: an interval reaches over the line, or an experiment is missing, whole or some settings or ε of it.",
    ),
    Verdict.NOT_TESTABLE: ("–", "The run lacks what the claim needs; the row says what would give it."),
}

# Which statement of a paper a row is about, where what is printed and what holds differ (docs/errata.md).
AS_PRINTED, CORRECTED = "as printed", "corrected"
FORMS = (AS_PRINTED, CORRECTED)


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Verdict of a claim that is made of parts.

    One part that is refuted refutes it, one that is open or missing leaves it open; otherwise the weakest word of its
    parts stands, where parts that say nothing (vacuous) or that no run stands behind (derivation) count only when
    there are no others.
    """
    if Verdict.REFUTED in verdicts:
        return Verdict.REFUTED
    decided = [one for one in verdicts if one != Verdict.NOT_TESTABLE]
    if not decided:
        return Verdict.NOT_TESTABLE
    if len(decided) < len(verdicts) or Verdict.INCONCLUSIVE in decided:
        return Verdict.INCONCLUSIVE
    weakest = (
        Verdict.DEPENDS,
        Verdict.NOT_CONTRADICTED,
        Verdict.ORDER_AGREES,
        Verdict.CONFIRMED,
        Verdict.DERIVATION,
        Verdict.VACUOUS,
    )
    return next(one for one in weakest if one in decided)
