"""Theorems that a run's checks speak about and no file claims: they get a row by the general rule, none is dropped."""

from collections.abc import Sequence

from silodp.theory import THEOREMS
from silodp.theory.registry import PAPERS
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.models import BoundsVerdicts, Claim, Rows

RULE = "the verdict of all rows of the check together; refuted when one is"


def uncovered(claims: Sequence[Claim], run: RunFolder) -> list[Claim]:
    """A claim for every theorem with a verdict in bounds/*.csv that none of `claims` reads."""
    read = {
        (rows.check, rows.theorem)
        for claim in claims
        if isinstance(claim.statistic, BoundsVerdicts)
        for rows in claim.statistic.rows
    }
    found: dict[str, list[str]] = {}
    for check in CHECKS:
        table = run.bounds(check)
        if table is None:
            continue
        spoken = table[table["verdict"] != ""]["theorem"]
        for theorem in spoken.unique():
            if (check, theorem) not in read:
                found.setdefault(theorem, []).append(check)
    return [_claim(theorem, checks) for theorem, checks in found.items()]


def _claim(theorem: str, checks: list[str]) -> Claim:
    known = THEOREMS.get(theorem)
    source = f"{PAPERS[known.paper]}, {known.place}" if known else theorem
    return Claim(
        id="T-" + "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in theorem),
        source=source,
        statement=known.statement if known else f"What the checks call {theorem}.",
        statistic=BoundsVerdicts(name="bounds_verdicts", rows=[Rows(check=check, theorem=theorem) for check in checks]),
        rule=RULE,
        kind="theorem",
        evidence=["bounds/{check}.png", "bounds/{check}.csv"],
    )
