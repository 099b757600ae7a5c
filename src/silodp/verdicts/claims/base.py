"""What all statistics share: the run's tables, what a statistic finds, and how several comparisons make one verdict."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from silodp.config.errors import show_value
from silodp.config.experiment import Experiment
from silodp.config.loading import known_experiments
from silodp.experiments.columns import PRIVACY_COLUMNS, REPORTED_COLUMNS
from silodp.files import experiments_of, figure_name, with_reading
from silodp.verdicts.checks.columns import BOUNDS_COLUMNS
from silodp.verdicts.claims.claim_file import Claim
from silodp.verdicts.statistics import CONFIDENCE
from silodp.verdicts.words import Verdict

# One-sided level of a two-sided 95 % interval; Holm's method keeps it over all comparisons of a claim.
LEVEL = (1 - CONFIDENCE) / 2
# What a row covers: the claim itself, the whole claim under another reading or on other rows, or in its corrected
# form, or a part of it.
CLAIM, READING, FORM = "claim", "reading", "form"
DATA_SET, SETTING, EXPERIMENT, BASELINE, FORMULA = "data set", "setting", "experiment", "baseline", "formula"
MISSING = "missing"
# Which rows decide, where they are not the claim's own: of scaled-down surrogates, of the same trials under calibrated
# noise, under the paper's, or of the paper's protocol where a variant has rows.
SURROGATES, AT_CLAIM, PAPER_NOISE, SAME_ROWS = "surrogates", "calibrated noise", "paper's noise", "paper's protocol"
# Words of their labels, in front of the reading.
_LABELS = {
    AT_CLAIM: "at exactly the claimed ε:",
    PAPER_NOISE: "the same rows with the paper's noise:",
    SAME_ROWS: "the paper's protocol on the rows of",
}
# The reading without a name, where it has to be named.
DEFAULT = "default"


@dataclass(frozen=True)
class ClaimFinding:
    """One row about a claim: its number, and in columns what it is about; `low` and `high` are NaN for no interval.

    `scope` and `rows` are words from above, or `<algorithm> alone`; `reading` is the variant of the protocol, empty for
    the default; `experiment` is empty for several, M and R are 0; `pair` has the algorithms compared, or the algorithm
    or formula; `quantifier` is that of the ε. `evidence` are files relative to the run's folder, `form` is
    `as printed` or `corrected` (docs/errata.md), `tally` counts comparisons, `slack` is a bound over the worst value.
    """

    statistic: str
    verdict: Verdict
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    evidence: tuple[str, ...] = ()
    form: str = ""
    scope: str = CLAIM
    rows: str = ""
    reading: str = ""
    experiment: str = ""
    M: int = 0
    R: int = 0
    pair: tuple[str, ...] = ()
    data_set: str = ""
    quantifier: str = ""
    tally: str = ""
    slack: float = math.nan

    @property
    def compared(self) -> str:
        return " − ".join(self.pair)

    @property
    def row_name(self) -> str:
        """The row's name behind the claim's, made of its columns; empty for the claim itself."""
        place = f"{self.experiment} M={self.M} R={self.R}" if self.R else self.experiment
        if self.scope == EXPERIMENT:
            return ", ".join(filter(None, (f"{place} {self.compared}", self._label)))
        compared = self.compared if self.scope not in (CLAIM, READING) else ""
        return ", ".join(filter(None, (place or self.data_set, compared, self._label)))

    @property
    def _label(self) -> str:
        reading = f"[{self.reading}]" if self.reading else ""
        if self.rows == SURROGATES:
            # The experiments of surrogates are named.
            return " ".join(filter(None, (SURROGATES * (not self.experiment), reading)))
        if self.rows:
            words = f"{_LABELS[self.rows]} {self.reading or DEFAULT}" if self.rows in _LABELS else self.rows
            return f"[{words}]"
        if self.scope == FORM:
            return f"[{self.form}]"
        return reading if self.scope != CLAIM and self.reading else f"[{DEFAULT}]" * (self.scope == READING)


class RunFolder:
    """The finished tables of a run, each read once, None where missing; ValueError where a file cannot be read."""

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
        if missing := [column for column in columns if column not in table]:
            raise ValueError(f"{path}: columns: lacks {', '.join(missing)}: must be as silodp writes it")
        return table

    def _left_over(self, path: Path) -> bool:
        """Whether a file is of an experiment that config.json does not name."""
        folder = path.parent.name
        of_experiment = folder in ("tables", "reported") or (folder == "checkins" and path.stem != "figure_2")
        return of_experiment and self.experiments is not None and path.stem not in self.experiments

    def reported(self, experiment: str) -> pd.DataFrame | None:
        table = self.table(f"reported/{experiment}.csv", tuple(REPORTED_COLUMNS))
        return None if table is None else with_reading(table)

    def gaps(self, experiments: Iterable[str], least: float, most: float, reading: str = "") -> list[str]:
        """What a run file left out of experiments that have the reading: settings, ε between `least` and `most`."""
        gaps = []
        for name in experiments:
            table = self.reported(name)
            rows = None if table is None else table[table["reading"] == reading]
            if rows is not None and len(rows) and (gap := missing_rows_text(name, rows, least, most)):
                gaps.append(gap)
        return gaps

    def missing_parts(self, claim: Claim, parts: Iterable["ClaimFinding"]) -> list[str]:
        """The claim's experiments that no part is about, then what a run file left out of the others."""
        have = {part.experiment for part in parts}
        gaps = self.gaps((name for name in claim.experiments if name in have), *claim.statistic.epsilons)
        return [name for name in claim.experiments if name not in have] + gaps

    def privacy(self) -> pd.DataFrame | None:
        table = self.table("privacy.csv", tuple(PRIVACY_COLUMNS))
        return None if table is None else with_reading(table)

    def bounds(self, check: str) -> pd.DataFrame | None:
        """A check's table with "" for no verdict, form or detail; raises ValueError for an unknown verdict."""
        table = self.table(f"bounds/{check}.csv", tuple(BOUNDS_COLUMNS))
        if table is None:
            return None
        table = table.assign(**{name: table[name].fillna("").astype(str) for name in ("verdict", "form", "detail")})
        return table.assign(verdict=table["verdict"].map(partial(_word, f"{self.path}/bounds/{check}.csv")))

    def evidence(self, claim: Claim, place: Mapping[str, Any]) -> tuple[str, ...]:
        """The claim's files for one place, as far as the run has them: experiment with M, R and reading, or a check."""
        known = {"experiment": place.get("experiment", ""), "check": place.get("check", ""), "figure": ""}
        if "M" in place:
            known["figure"] = figure_name(place["experiment"], place["M"], place["R"], place.get("reading", ""))
        patterns = [text for text in claim.evidence if all(known[key] or f"{{{key}}}" not in text for key in known)]
        names = dict.fromkeys(pattern.format(**known) for pattern in patterns)
        # A run's figures are drawn beside the claims, from the same tables.
        return tuple(name for name in names if name.startswith("figures/") or (self.path / name).is_file())


def _word(path: str, word: str) -> str:
    """A stored verdict; those of earlier versions in today's words."""
    try:
        return Verdict(word) if word else word
    except ValueError:
        raise ValueError(
            f"{path}: verdict: {show_value(word)}: must be one of {', '.join(Verdict)}, or empty"
        ) from None


@functools.cache
def _experiment_grid(experiment: str) -> tuple[frozenset[tuple[int, int]], frozenset[float]]:
    """Settings (M, R) and ε of the experiment's own file, which a run file may thin; none without such a file."""
    if experiment not in known_experiments():
        return frozenset(), frozenset()
    config = Experiment.model_validate(known_experiments()[experiment])
    return frozenset((setting.M, setting.R) for setting in config.settings), frozenset(config.epsilons)


def missing_rows_text(experiment: str, rows: pd.DataFrame, least: float = 0, most: float = math.inf) -> str:
    """What of an experiment has no row, as in "mnist_mlp at (M, R) = (12, 50) and ε = 0.75, 1"; "" for nothing.

    `rows` have the columns M, R and epsilon; `least` and `most` are the ends of the ε that the claim is about.
    """
    settings, epsilons = _experiment_grid(experiment)
    gone = sorted(settings - set(zip(rows["M"], rows["R"], strict=True)))
    fewer = sorted(epsilon for epsilon in epsilons - set(rows["epsilon"]) if least <= epsilon <= most)
    parts = [f"(M, R) = {', '.join(f'({M}, {R})' for M, R in gone)}"] if gone else []
    parts += [f"ε = {', '.join(f'{epsilon:g}' for epsilon in fewer)}"] if fewer else []
    return f"{experiment} at {' and '.join(parts)}" if parts else ""


def data_set(experiment: str) -> str:
    """The registered data set of an experiment of config/experiments, as mnist of mnist_mlp; else the experiment."""
    name = known_experiments().get(experiment, {}).get("dataset", experiment)
    return name if isinstance(name, str) else experiment


def scope_of(reading: str, surrogate: bool = False) -> dict[str, Any]:
    """What a row about all of a reading is about: the claim itself, a variant of it, or its surrogates."""
    scope = READING if reading or surrogate else CLAIM
    return {"scope": scope, "reading": reading, "rows": SURROGATES * surrogate}


def count_findings(findings: Iterable[ClaimFinding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for finding in findings for name in finding.evidence))


def counted(words: Mapping[str, int]) -> str:
    """`3 support, 1 open`, without what does not occur."""
    return ", ".join(f"{count} {word}" for word, count in words.items() if count) or "none"


def with_gaps(text: str, verdict: Verdict, missing: Sequence[str]) -> tuple[str, Verdict]:
    """A statistic's words and verdict where parts of its experiments are missing: nothing is confirmed without them."""
    if not missing:
        return text, verdict
    return f"{text}; {lacking(missing)}", Verdict.OPEN if verdict == Verdict.CONFIRMED else verdict


def holm(p: Sequence[float], level: float = LEVEL) -> list[bool]:
    """What Holm's step-down method rejects: one or more wrongly with probability `level` at most."""
    rejected = [False] * len(p)
    for rank, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] > level / (len(p) - rank):
            break
        rejected[place] = True
    return rejected


def lacking(experiments: Iterable[str]) -> str:
    """The line that says which experiments, or which parts of one, would decide."""
    named = list(experiments)
    whole = "has all of it" if any(" at " in name for name in named) else "names it"
    return f"needs {', '.join(named)} (a run file that {whole}, as config/paper.yaml)"
