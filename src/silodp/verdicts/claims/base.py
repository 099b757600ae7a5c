"""What all statistics share: the run they read, what they find, and how many comparisons make one verdict."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from silodp.config.errors import shown
from silodp.files import (
    BOUNDS_COLUMNS,
    PRIVACY_COLUMNS,
    REPORTED_COLUMNS,
    experiments_of,
    figure_name,
    with_reading,
)
from silodp.verdicts.claims.coverage import left_out
from silodp.verdicts.claims.models import Claim
from silodp.verdicts.words import Verdict

CONFIDENCE = 0.95
# One-sided level of a two-sided 95 % interval; Holm's method keeps it over all comparisons of a claim.
LEVEL = (1 - CONFIDENCE) / 2


@dataclass(frozen=True)
class Finding:
    """One row about a claim.

    Attributes:
        part: which part of the claim; empty for the claim as a whole.
        statistic: what was computed, and how its parts came out.
        value, low, high: the number and the ends of its interval; NaN where there is none.
        evidence: files of the run, relative to its folder.
        form: `as printed` or `corrected`, where the paper's statement and what holds differ (docs/errata.md).
    """

    part: str
    statistic: str
    verdict: Verdict
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    evidence: tuple[str, ...] = ()
    form: str = ""


class RunFolder:
    """The finished tables of a run, read once; a table that is not there is None.

    Raises ValueError where a file cannot be read as what it should be.
    """

    def __init__(self, path: Path | str, experiments: Iterable[str] | None = None):
        self.path = Path(path)
        if not self.path.is_dir():
            raise ValueError(f"{path}: folder: missing: must be a run's results folder")
        self.experiments = set(experiments) if experiments else experiments_of(self.path)

    @functools.cache  # noqa: B019 - a folder is read by one short-lived process
    def table(self, name: str, columns: tuple[str, ...] = ()) -> pd.DataFrame | None:
        """The CSV file `name` in the folder; it must have `columns`."""
        path = self.path / name
        if not path.is_file() or self._left_over(path):
            return None
        try:
            table = pd.read_csv(path, float_precision="round_trip")
        except ValueError as error:
            raise ValueError(f"{path}: file: not a table ({error}): must be a CSV file") from error
        missing = [column for column in columns if column not in table]
        if missing:
            raise ValueError(f"{path}: columns: lacks {', '.join(missing)}: must be as silodp writes it")
        return table

    def _left_over(self, path: Path) -> bool:
        """Whether a file is of an experiment that config.json does not name."""
        of_experiment = path.parent.name in ("tables", "reported") or (
            path.parent.name == "checkins" and path.stem != "figure_2"
        )
        return of_experiment and self.experiments is not None and path.stem not in self.experiments

    def reported(self, experiment: str) -> pd.DataFrame | None:
        """One row a trial behind the default rows of an experiment."""
        table = self.table(f"reported/{experiment}.csv", tuple(REPORTED_COLUMNS))
        return None if table is None else with_reading(table)

    def gaps(
        self, experiments: Iterable[str], least: float = 0, most: float = math.inf, reading: str = ""
    ) -> list[str]:
        """What a run file left out of experiments that have the reading: settings, ε between `least` and `most`."""
        tables = {name: self.reported(name) for name in experiments}
        own = {name: table[table["reading"] == reading] for name, table in tables.items() if table is not None}
        found = [left_out(name, rows, least, most) for name, rows in own.items() if len(rows)]
        return [one for one in found if one]

    def privacy(self) -> pd.DataFrame | None:
        """Claimed and delivered ε of every private row."""
        table = self.table("privacy.csv", tuple(PRIVACY_COLUMNS))
        return None if table is None else with_reading(table)

    def bounds(self, check: str) -> pd.DataFrame | None:
        """What a check found; rows without a verdict, a form or a detail have an empty one.

        Raises ValueError for a verdict that is none of the words.
        """
        table = self.table(f"bounds/{check}.csv", tuple(BOUNDS_COLUMNS))
        if table is None:
            return None
        table = table.assign(**{name: table[name].fillna("").astype(str) for name in ("verdict", "form", "detail")})
        for word in set(table["verdict"]) - {"", *Verdict}:
            known = ", ".join(Verdict)
            raise ValueError(
                f"{self.path}/bounds/{check}.csv: verdict: {shown(word)}: must be one of {known}, or empty"
            )
        return table

    def evidence(self, claim: Claim, place: Mapping[str, Any]) -> tuple[str, ...]:
        """The claim's files for one place, as far as the run has them: experiment with M, R and reading, or a check."""
        known = {"experiment": place.get("experiment", ""), "check": place.get("check", ""), "figure": ""}
        if "M" in place:
            known["figure"] = figure_name(place["experiment"], place["M"], place["R"], place.get("reading", ""))
        names = [
            pattern.format(**known)
            for pattern in claim.evidence
            if all(known[key] or f"{{{key}}}" not in pattern for key in known)
        ]
        # A run's figures are drawn beside the claims, from the same tables.
        return tuple(
            name for name in dict.fromkeys(names) if name.startswith("figures/") or (self.path / name).is_file()
        )


def place_of(experiment: str, M: int, R: int, reading: str = "", what: str = "") -> str:
    """A part's name: what is compared, where, and under which reading."""
    return ", ".join(part for part in (f"{experiment} M={M} R={R}", what, f"[{reading}]" if reading else "") if part)


def merged(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The evidence of several findings, each file once."""
    return tuple(dict.fromkeys(name for one in findings for name in one.evidence))


def counted(words: Mapping[str, int]) -> str:
    """`3 support, 1 open`, without what does not occur."""
    return ", ".join(f"{count} {word}" for word, count in words.items() if count) or "none"


def one_sided(difference: float, low: float, high: float, trials: int) -> float:
    """p of Student's t test that a paired difference is at most 0, from its two-sided `CONFIDENCE` interval."""
    if not np.isfinite([difference, low, high]).all() or trials < 2:
        return 1.0
    error = (high - low) / 2 / stats.t.ppf((1 + CONFIDENCE) / 2, trials - 1)
    if error == 0:
        return 0.0 if difference > 0 else 1.0
    return float(stats.t.sf(difference / error, trials - 1))


def holm(p: Sequence[float], level: float = LEVEL) -> list[bool]:
    """What Holm's step-down method rejects: one or more wrongly with probability `level` at most."""
    rejected = [False] * len(p)
    for rank, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] > level / (len(p) - rank):
            break
        rejected[place] = True
    return rejected


def within(value: tuple[float, float], low: float, high: float) -> Verdict:
    """Verdict of an interval that has to lie in [low, high]: refuted outside of it, inconclusive across an end."""
    if not np.isfinite(value).all():
        return Verdict.INCONCLUSIVE
    if low <= value[0] and value[1] <= high:
        return Verdict.CONFIRMED
    return Verdict.REFUTED if value[1] < low or value[0] > high else Verdict.INCONCLUSIVE


def headed(claim: Claim, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with the paper's own protocol first, and its verdict beside those of the claim's fair variants.

    A statistic's first finding is the claim under the default reading; `[<reading>]` are those under others.
    """
    if not claim.protocol and not claim.variants:
        return list(findings)
    names = {"": "[default]"} | {reading: f"[{reading}]" for reading in (claim.protocol, *claim.variants) if reading}
    own = {one.part: replace(one, part="[default]") if not one.part else one for one in findings}
    head = own.get(names[claim.protocol] if claim.protocol else "")
    if head is None:
        text = f"{findings[0].statistic}; the paper's own protocol, {claim.protocol}, was not run"
        return [replace(findings[0], statistic=text, verdict=Verdict.NOT_TESTABLE), *list(own.values())[1:]]
    decided = {
        reading: one.verdict
        for reading in dict.fromkeys((claim.protocol, *claim.variants))
        if (one := own.get(names[reading] if reading else "")) and one.verdict in (Verdict.CONFIRMED, Verdict.REFUTED)
    }
    whole = replace(head, part="")
    if len(set(decided.values())) < 2 and not claim.protocol:
        return list(findings)
    if len(set(decided.values())) > 1:
        said = ", ".join(f"{verdict} under {names[reading][1:-1]}" for reading, verdict in decided.items())
        text = f"the paper's own protocol is {names[claim.protocol][1:-1]}: {said}; {head.statistic}"
        whole = replace(whole, verdict=Verdict.DEPENDS, statistic=text)
    return [whole, *own.values()]


def lacking(experiments: Iterable[str]) -> str:
    """The line that says which experiments, or which parts of one, would decide."""
    named = list(experiments)
    whole = "has all of it" if any(" at " in one for one in named) else "names it"
    return f"needs {', '.join(named)} (a run file that {whole}, as config/paper.yaml)"
