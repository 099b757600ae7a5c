"""The base of every statistic of a claim: the run's tables, what it finds, and Holm's method over comparisons."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from silodp.config.experiment import Experiment
from silodp.config.loading import known_experiments
from silodp.experiments.columns import PRIVACY_COLUMNS
from silodp.files import read_csv, with_reading
from silodp.verdicts.checks.bound_columns import BOUNDS_COLUMNS
from silodp.verdicts.statistics import CONFIDENCE
from silodp.verdicts.words import Verdict

# One-sided level of a two-sided 95 % interval; Holm's method keeps it over all comparisons of a claim.
LEVEL = (1 - CONFIDENCE) / 2


@dataclass(frozen=True)
class ClaimFinding:
    """A claim's verdict, or that of its corrected form, with its number; `low` and `high` are NaN for no interval.

    `evidence` are files relative to the run's folder, `form` is `as printed` or `corrected` (docs/errata.md), `slack`
    is a bound over the worst value, `note` says why a claim is open. `on_average` and `at_every` are the words of a
    claim about trained models.
    """

    statistic: str
    verdict: Verdict
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    evidence: tuple[str, ...] = ()
    form: str = ""
    slack: float = math.nan
    note: str = ""
    on_average: str = ""
    at_every: str = ""


class RunFolder:
    """The finished tables of a run, each read once, None where missing; ValueError where a file cannot be read."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        if not self.path.is_dir():
            raise ValueError(f"{path}: folder: missing: must be a run's results folder")

    @functools.cache  # noqa: B019 - a folder is read by one short-lived process
    def table(self, name: str, columns: tuple[str, ...] = ()) -> pd.DataFrame | None:
        """The CSV file `name` in the folder; it must have `columns`."""
        path = self.path / name
        return read_csv(path, columns, float_precision="round_trip") if path.is_file() else None

    def privacy(self) -> pd.DataFrame | None:
        table = self.table("privacy.csv", tuple(PRIVACY_COLUMNS))
        return None if table is None else with_reading(table)

    def bounds(self, check: str) -> pd.DataFrame | None:
        """A check's table with "" for no verdict, form or detail; verdicts of earlier versions in today's words."""
        table = self.table(f"bounds/{check}.csv", tuple(BOUNDS_COLUMNS))
        if table is None:
            return None
        table = table.assign(**{name: table[name].fillna("").astype(str) for name in ("verdict", "form", "detail")})
        return table.assign(verdict=table["verdict"].map(lambda word: word and Verdict(word)))

    def evidence(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the files that the run has."""
        return tuple(name for name in names if (self.path / name).is_file())


def lacking_text(experiment: str, rows: pd.DataFrame) -> str:
    """What an experiment's own file has, which a run file may thin, and `rows` lack; "" for nothing.

    Its name, or "mnist_mlp at (M, R) = (12, 50) and ε = 0.75, 1". `rows` have the columns experiment, M, R and epsilon.
    """
    rows = rows[rows["experiment"] == experiment]
    if rows.empty:
        return experiment
    config = Experiment.model_validate(known_experiments()[experiment])
    gone = sorted({(one.M, one.R) for one in config.settings} - set(zip(rows["M"], rows["R"], strict=True)))
    fewer = sorted({*config.epsilons} - {*rows["epsilon"]})
    parts = [f"(M, R) = {', '.join(f'({M}, {R})' for M, R in gone)}"] if gone else []
    parts += [f"ε = {', '.join(f'{epsilon:g}' for epsilon in fewer)}"] if fewer else []
    return f"{experiment} at {' and '.join(parts)}" if parts else ""


def data_set(experiment: str) -> str:
    """The registered data set of an experiment of config/experiments, as mnist of mnist_mlp; else the experiment."""
    name = known_experiments().get(experiment, {}).get("dataset", experiment)
    return name if isinstance(name, str) else experiment


def counted(words: Mapping[str, int]) -> str:
    """`3 confirmed, 1 open`, without what does not occur."""
    return ", ".join(f"{count} {word}" for word, count in words.items() if count) or "none"


def holm(p: Sequence[float], level: float = LEVEL) -> list[bool]:
    """What Holm's step-down method rejects: one or more wrongly with probability `level` at most."""
    rejected = [False] * len(p)
    for rank, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] > level / (len(p) - rank):
            break
        rejected[place] = True
    return rejected
