"""Claims decided again at exactly the ε that is claimed: the same statistic and rule under calibrated noise.

Such a verdict stands beside a claim's own and never replaces it: the paper's protocol has the paper's noise.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from silodp.verdicts.claims.base import Finding, RunFolder
from silodp.verdicts.claims.coverage import left_out
from silodp.verdicts.claims.models import Claim, RelativeImprovement
from silodp.verdicts.words import Verdict

AT_CLAIM, PAPER = "at exactly the claimed ε", "the same rows with the paper's noise"
# Parts up to which each is named; of more, the claim's own rows have them.
FEW = 3
# Sizes that two noises are told apart by, as statistics write them: a pair's mean difference.
_MEAN = re.compile(r"(\w+ − [\w:]+) ([+-]\d+\.\d+) \[")


class UnderOneReading(RunFolder):
    """A run's tables as if one reading were all that they had."""

    def __init__(self, run: RunFolder, reading: str):
        super().__init__(run.path, run.experiments)
        self.reading = reading

    def reported(self, experiment: str) -> pd.DataFrame | None:
        """One row a trial under the reading, as the default rows of an experiment; None without any."""
        table = super().reported(experiment)
        rows = None if table is None else table[table["reading"] == self.reading]
        return None if rows is None or rows.empty else rows.assign(reading="")

    def gaps(
        self, experiments: Iterable[str], least: float = 0, most: float = math.inf, reading: str = ""
    ) -> list[str]:
        """None: what was left out of the claim's own experiments is said once, by `certified`."""
        return []

    def evidence(self, claim: Claim, place: Mapping[str, Any]) -> tuple[str, ...]:
        """The claim's files for one place, under the reading."""
        return super().evidence(claim, {**place, "reading": self.reading})


def certified(claim: Claim, run: RunFolder, decide: Callable[[Claim, RunFolder], list[Finding]]) -> list[Finding]:
    """The claim on its certified experiments under calibrated noise, and on the same trials under the paper's.

    Args:
        claim: whose `certified` names experiments and readings.
        run: a run's tables.
        decide: the function of the claim's statistic.

    Returns:
        For each of the claim's readings `[at exactly the claimed ε: …]` with its parts, then `[the same rows with the
        paper's noise: …]`; nothing where the run has none of the experiments.
    """
    if claim.certified is None:
        return []
    found: list[Finding] = []
    own = claim.certified
    named = [name for names in own.experiments.values() for name in names]
    for calibrated, paper in own.readings.items():
        for reading, word in ((calibrated, AT_CLAIM), (paper, PAPER)):
            view = UnderOneReading(run, reading)
            here = [name for name in named if view.reported(name) is not None]
            if not here:
                continue
            lacks = [one for name, names in own.experiments.items() if (one := _lacking(claim, name, names, view))]
            asked = claim.model_copy(update={"experiments": here, "surrogates": [], "protocol": "", "variants": []})
            whole, *parts = decide(asked, view)
            verdict, text = whole.verdict, whole.statistic
            if lacks:
                text += f"; without {', '.join(lacks)}"
                # Of fewer experiments than the paper's an average is another number.
                average = isinstance(claim.statistic, RelativeImprovement)
                verdict = Verdict.INCONCLUSIVE if verdict == Verdict.CONFIRMED or average else verdict
            label = f"[{word}: {reading or 'default'}]"
            found.append(replace(whole, part=label, verdict=verdict, statistic=text))
            found += [replace(part, part=f"{part.part}, {label}") for part in parts]
    return found


def _lacking(claim: Claim, name: str, names: Sequence[str], view: RunFolder) -> str:
    """The claim's experiment where it was not decided again at all, else what of it was left out; "" for nothing."""
    tables = [table for one in names if (table := view.reported(one)) is not None]
    return left_out(name, pd.concat(tables), *claim.statistic.epsilons) if tables else name


@dataclass(frozen=True)
class Turn:
    """How one claim comes out at its own protocol, and with both noises on the same trials.

    Attributes:
        claim: its id.
        statement: what is claimed.
        reading: the calibrated one.
        headline: verdict under the paper's own protocol.
        paper: verdict with the paper's noise on the trials and grids of the certified run.
        at_claim: verdict at exactly the claimed ε.
        why: the numbers behind, in a line.
    """

    claim: str
    statement: str
    reading: str
    headline: Verdict
    paper: Verdict
    at_claim: Verdict
    why: str

    @property
    def turns(self) -> bool:
        """Whether the noise alone, all else being equal, changes the verdict."""
        return self.paper != self.at_claim


def turns(table: pd.DataFrame) -> list[Turn]:
    """The claims of a claims.csv that were decided again at the claimed ε, in its order.

    Raises ValueError for a verdict that is none of the words.
    """
    rows = {str(row["claim"]): row for row in table.to_dict("records")}
    found = []
    for name, row in rows.items():
        claim, _, part = name.partition(": ")
        if not part.startswith(f"[{AT_CLAIM}: "):
            continue
        reading = part.removeprefix(f"[{AT_CLAIM}: ").removesuffix("]")
        beside = [other for other in rows if other.startswith(f"{claim}: [{PAPER}: ")]
        partner = next((other for other in beside if _same(other, reading)), None)
        if partner is None or claim not in rows:
            continue
        head, paper = rows[claim], rows[partner]
        found.append(
            Turn(
                claim,
                str(head["statement"]),
                reading,
                Verdict(head["verdict"]),
                Verdict(paper["verdict"]),
                Verdict(row["verdict"]),
                why(paper, row, [details(rows, claim, one) for one in (partner, name)]),
            )
        )
    return found


def _same(partner: str, reading: str) -> bool:
    """Whether the paper's rows differ from the calibrated reading in noise alone."""
    rest = [one for one in reading.split(";") if one != "noise=calibrated"]
    return partner.endswith(f": {';'.join(rest) or 'default'}]")


def details(rows: Mapping[str, Mapping], claim: str, whole: str) -> dict[str, tuple[float, str]]:
    """Value and verdict of a verdict's parts, by their names without the label that all of them have."""
    label = f", {whole.partition(': ')[2]}"
    named = [(name, row) for name, row in rows.items() if name.startswith(f"{claim}: ") and name.endswith(label)]
    return {name.removeprefix(f"{claim}: ").removesuffix(label): value_of(row) for name, row in named}


def value_of(row: Mapping) -> tuple[float, str]:
    """Value and verdict of a row of claims.csv."""
    return float(row["value"]), str(row["verdict"])


def why(paper: Mapping, certified: Mapping, parts: Sequence[Mapping[str, tuple[float, str]]]) -> str:
    """What the numbers were under the paper's noise → under calibrated noise; of many parts, of those that turn."""
    means = [dict(_MEAN.findall(str(row["statistic"]))) for row in (paper, certified)]
    said = [f"{pair} {means[0][pair]} → {value} in the mean" for pair, value in means[1].items() if pair in means[0]]
    if not said:
        both = [(name, parts[0][name], after) for name, after in parts[1].items() if name in parts[0]]
        if len(both) > FEW:
            both = [(name, before, after) for name, before, after in both if before[1] != after[1]]
        said = [
            f"{name} {before[0]:.3g} → {after[0]:.3g}" + (f" ({after[1]})" if before[1] != after[1] else "")
            for name, before, after in both
            if math.isfinite(before[0] + after[0])
        ]
    shares = [float(row["value"]) for row in (paper, certified)]
    if all(map(math.isfinite, shares)):
        said.insert(0, f"{shares[0]:.0%} → {shares[1]:.0%} of the parts support")
    return "; ".join(said)
