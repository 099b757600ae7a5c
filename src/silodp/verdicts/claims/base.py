"""What all statistics share: the run they read, what they find, and how many comparisons make one verdict."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from silodp.claims.models import Claim
from silodp.figures.slices import figure_name, with_reading
from silodp.results import BOUNDS_COLUMNS, PRIVACY_COLUMNS, REPORTED_COLUMNS

CONFIRMED, REFUTED = "confirmed", "refuted"
INCONCLUSIVE, NOT_TESTABLE = "inconclusive", "not testable here"
VERDICTS = (CONFIRMED, REFUTED, INCONCLUSIVE, NOT_TESTABLE)
CONFIDENCE = 0.95
# One-sided level of a two-sided 95 % interval; Holm's method keeps it over all comparisons of a claim.
LEVEL = (1 - CONFIDENCE) / 2


@dataclass(frozen=True)
class Finding:
    """One row about a claim.

    Attributes:
        part: which part of the claim; empty for the claim as a whole.
        statistic: what was computed, and how its parts came out.
        verdict: one of `VERDICTS`.
        value, low, high: the number and the ends of its interval; NaN where there is none.
        evidence: files of the run, relative to its folder.
    """

    part: str
    statistic: str
    verdict: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    evidence: tuple[str, ...] = ()


class RunFolder:
    """The finished tables of a run, read once; a table that is not there is None.

    Raises ValueError where a file cannot be read as what it should be.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        if not self.path.is_dir():
            raise ValueError(f"{path}: folder: missing: must be a run's results folder")

    @functools.cache  # noqa: B019 - a folder is read by one short-lived process
    def table(self, name: str, columns: tuple[str, ...] = ()) -> pd.DataFrame | None:
        """The CSV file `name` in the folder; it must have `columns`."""
        path = self.path / name
        if not path.is_file():
            return None
        try:
            table = pd.read_csv(path, float_precision="round_trip")
        except ValueError as error:
            raise ValueError(f"{path}: file: not a table ({error}): must be a CSV file") from error
        missing = [column for column in columns if column not in table]
        if missing:
            raise ValueError(f"{path}: columns: lacks {', '.join(missing)}: must be as silodp writes it")
        return table

    def reported(self, experiment: str) -> pd.DataFrame | None:
        """One row a trial behind the default rows of an experiment."""
        table = self.table(f"reported/{experiment}.csv", tuple(REPORTED_COLUMNS))
        return None if table is None else with_reading(table)

    def privacy(self) -> pd.DataFrame | None:
        """Claimed and delivered ε of every private row."""
        table = self.table("privacy.csv", tuple(PRIVACY_COLUMNS))
        return None if table is None else with_reading(table)

    def bounds(self, check: str) -> pd.DataFrame | None:
        """What a check found; rows without a verdict have an empty one."""
        table = self.table(f"bounds/{check}.csv", tuple(BOUNDS_COLUMNS))
        return None if table is None else table.assign(verdict=table["verdict"].fillna(""))

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


def within(value: tuple[float, float], low: float, high: float) -> str:
    """Verdict of an interval that has to lie in [low, high]: refuted outside of it, inconclusive across an end."""
    if not np.isfinite(value).all():
        return INCONCLUSIVE
    if low <= value[0] and value[1] <= high:
        return CONFIRMED
    return REFUTED if value[1] < low or value[0] > high else INCONCLUSIVE


def together(verdicts: Sequence[str]) -> str:
    """Verdict of a claim that is made of parts: each has to be confirmed, one that is refuted refutes it."""
    if REFUTED in verdicts:
        return REFUTED
    decided = [verdict for verdict in verdicts if verdict != NOT_TESTABLE]
    if not decided:
        return NOT_TESTABLE
    return CONFIRMED if all(verdict == CONFIRMED for verdict in verdicts) else INCONCLUSIVE


def lacking(experiments: Iterable[str]) -> str:
    """The line that says which experiments would decide."""
    return f"needs {', '.join(experiments)} (a run file that names it, as config/paper.yaml)"
