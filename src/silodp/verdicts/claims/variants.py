"""Which choice of protocol turns which verdict: a claim under a variant, and under the paper's on the same rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd

from silodp.verdicts.claims.base import Finding, RunFolder
from silodp.verdicts.claims.certified import FEW, UnderOneReading, details, value_of, why
from silodp.verdicts.claims.models import Claim
from silodp.verdicts.words import Verdict

SAME_ROWS = "the paper's protocol on the rows of"
_KEY = ["M", "R", "epsilon", "algorithm"]


class _OnRowsOf(UnderOneReading):
    """A run's tables under one reading, without the settings, algorithms and ε that another one lacks."""

    def __init__(self, run: RunFolder, reading: str, other: str):
        super().__init__(run, reading)
        self.other = UnderOneReading(run, other)

    def reported(self, experiment: str) -> pd.DataFrame | None:
        """One row a trial, of cells that both readings have; None without any."""
        own, other = super().reported(experiment), self.other.reported(experiment)
        if own is None or other is None:
            return None
        own = own[pd.MultiIndex.from_frame(own[_KEY]).isin(pd.MultiIndex.from_frame(other[_KEY]))]
        return None if own.empty else own


def same_rows(claim: Claim, run: RunFolder, decide: Callable[[Claim, RunFolder], list[Finding]]) -> list[Finding]:
    """The claim under its paper's protocol, once for every variant: on the experiments, settings and ε of the variant.

    Beside the verdict under the variant itself, which the statistic has found, so that nothing but the protocol
    differs. Noise is none of the variants meant here (`silodp.verdicts.claims.certified`).

    Args:
        claim: decided on trained models.
        run: a run's tables.
        decide: the function of the claim's statistic.

    Returns:
        `[the paper's protocol on the rows of <reading>]` for each, with its parts where they are few.
    """
    if claim.kind != "experiment":
        return []
    tables = {name: run.reported(name) for name in claim.experiments}
    readings = {str(one) for table in tables.values() if table is not None for one in table["reading"].unique()}
    base = claim.protocol if claim.protocol in readings else ""
    found: list[Finding] = []
    for reading in sorted(one for one in readings - {base} if "noise=calibrated" not in one.split(";")):
        view = _OnRowsOf(run, base, reading)
        here = [name for name in claim.experiments if view.reported(name) is not None]
        if not here:
            continue
        asked = claim.model_copy(update={"experiments": here, "surrogates": [], "protocol": "", "variants": []})
        whole, *parts = decide(asked, view)
        label = f"[{SAME_ROWS} {reading or 'default'}]"
        if whole.verdict != Verdict.NOT_TESTABLE:
            found.append(replace(whole, part=label))
            if len(parts) <= FEW:
                found += [replace(part, part=f"{part.part}, {label}") for part in parts]
    return found


@dataclass(frozen=True)
class Change:
    """How a claim comes out under a variant, all else being equal.

    Attributes:
        claim: its id.
        reading: the variant.
        protocol: verdict under the paper's protocol on the same rows.
        variant: verdict under the variant.
        why: the numbers behind, protocol → variant, in a line.
    """

    claim: str
    reading: str
    protocol: Verdict
    variant: Verdict
    why: str

    @property
    def turns(self) -> bool:
        """Whether the choice of protocol alone changes the verdict."""
        return self.protocol != self.variant


def changes(table: pd.DataFrame) -> list[Change]:
    """Every (claim, variant) of a claims.csv, in its order; those without a verdict on the variant are left out.

    Raises ValueError for a verdict that is none of the words.
    """
    rows = {str(row["claim"]): row for row in table.to_dict("records")}
    found = []
    for name, row in rows.items():
        claim, _, part = name.partition(": ")
        if not part.startswith(f"[{SAME_ROWS} "):
            continue
        reading = part.removeprefix(f"[{SAME_ROWS} ").removesuffix("]")
        beside = rows.get(f"{claim}: [{reading}]")
        if beside is None:
            continue
        # A detail under a variant is `<place>, [<reading>], <what>` or `[<reading>], <what>`.
        after = {
            other.partition(": ")[2].replace(f"[{reading}], ", "").replace(f", [{reading}]", ""): value_of(one)
            for other, one in rows.items()
            if other.startswith(f"{claim}: ") and f"[{reading}]" in other and SAME_ROWS not in other
        }
        numbers = why(row, beside, [details(rows, claim, name), after])
        found.append(Change(claim, reading, Verdict(row["verdict"]), Verdict(beside["verdict"]), numbers))
    return found
