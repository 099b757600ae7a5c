"""The words for verdicts: one enum for rows of bounds/*.csv, for claims.csv, for `silodp claims` and for the page."""

from collections.abc import Sequence

from silodp.privacy.standing import Word


class Verdict(Word):
    """What a row or a claim comes to."""

    CONFIRMED = (
        "confirmed",
        "✓",
        "The statement as worded could have failed on these rows, where an algorithm that does nothing fails, and did "
        "not: it keeps to the bound, or the interval contains the stated exponent or that of the formula itself.",
    )
    ORDER_AGREES = (
        "order agrees",
        "≈",
        "Of a check's row: a slope nearer to the stated exponent than to the rivals that are named beside it, whose "
        "interval leaves the stated exponent out. It leaves a claim open, and its note says so.",
    )
    NOT_CONTRADICTED = (
        "not contradicted",
        "◇",
        "No run speaks against it, and none could confirm it: a statement about every algorithm or every instance, "
        "met on a few of them.",
    )
    DERIVATION = (
        "derivation",
        "=",
        "An identity or a computation on the paper's formulas, with no run behind it; or a slope or an equality that "
        "an algorithm which does nothing has as well, from the instance or from the noise put in.",
    )
    VACUOUS = (
        "vacuous",
        "∅",
        "At every row the bound exceeds the largest value that can be reached, or an algorithm that does nothing keeps "
        "to it: it says nothing.",
    )
    REFUTED = (
        "refuted",
        "✗",
        "The statement is false: at least one part has an exact number or an interval on the other side, its witness.",
    )
    NOT_REPRODUCED = (
        "not reproduced",
        "≠",
        "A report of the authors' own runs that these runs contradict; it says nothing of the authors' runs.",
    )
    GAP = (
        "gap",
        "◌",
        "The constant or the step of the printed proof fails; the statement that it is for may still hold.",
    )
    MISPRINT = "misprint", "¶", "The printed form fails, and the form that was evidently meant, beside it, holds."
    OPEN = (
        "open",
        "~",
        "Neither: an interval reaches over the line, or an experiment is missing, whole or some settings or ε of it.",
    )
    NOT_TESTABLE = (
        "not testable",
        "–",
        "The run lacks what the claim needs, or nothing contradicts it and the power of its trials is below 0.8: the "
        "note says which.",
    )

    @classmethod
    def _missing_(cls, value: object) -> "Verdict | None":
        # Published bounds tables have earlier words.
        earlier = {"inconclusive": cls.OPEN, "vacuous here": cls.VACUOUS, "not testable here": cls.NOT_TESTABLE}
        return earlier.get(str(value))


# Which statement of a paper a row is about, where what is printed and what holds differ (docs/errata.md).
AS_PRINTED, CORRECTED = "as printed", "corrected"
FORMS = (AS_PRINTED, CORRECTED)
# What speaks against a statement: false, or in a way that leaves the statement or the authors' runs alone.
AGAINST = (Verdict.REFUTED, Verdict.NOT_REPRODUCED, Verdict.GAP, Verdict.MISPRINT)
# Of a claim's decided parts, the first of these that occurs.
_WEAKEST_FIRST = (
    Verdict.NOT_CONTRADICTED,
    Verdict.ORDER_AGREES,
    Verdict.CONFIRMED,
    Verdict.DERIVATION,
    Verdict.VACUOUS,
)


def combine_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """Verdict of a claim that is made of parts.

    One refuted part refutes it; one that is open or missing leaves it open. Otherwise the weakest word of its parts
    stands, where parts that say nothing (vacuous) or that no run stands behind (derivation) count only without others.
    """
    if Verdict.REFUTED in verdicts:
        return Verdict.REFUTED
    decided = set(verdicts) - {Verdict.NOT_TESTABLE}
    if not decided:
        return Verdict.NOT_TESTABLE
    if Verdict.NOT_TESTABLE in verdicts or Verdict.OPEN in decided:
        return Verdict.OPEN
    return next(word for word in _WEAKEST_FIRST if word in decided)
