"""Runs behind the decided tables (docs/claims.md): the pilot, which points are choosable, and the fresh trials.

A file holds one setting of one experiment: its pilot, or some of its fresh trials. What stands there is not made again.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from silodp.algorithms import families
from silodp.config.errors import ConfigError
from silodp.config.experiment import Experiment, Setting
from silodp.config.run_keys import Run
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import run_trial
from silodp.experiments.validation import experiment_of
from silodp.experiments.variants import trained_as
from silodp.files import NON_PRIVATE, read_parquet, write_parquet
from silodp.partition.trial_data import TrialData, draw_partition, load_dataset, prepare
from silodp.verdicts.claims.base import data_set

# Trials in which a point that the publication did not train in every trial of the pilot is tried first.
SCREENED = 3
# Standard errors, of the paired difference to the best point, within which a point is choosable.
CHOOSABLE = 4.0
# Trials of a job.
BLOCK = 50
# Fresh trials keep seven digits: half the bytes of a repository in which nobody trains them again.
_KEPT = {"train_loss": "float32", "test_error": "float32"}
# The gate's second minibatch SGD, with batches and noise of its own.
GATED, COPY = "minibatch_sgd", "minibatch_sgd:again"


@dataclass(frozen=True)
class FamilySetting:
    """One setting of one experiment of the family `name`; `folder` holds the runs."""

    name: str
    family: Mapping[str, Any]
    experiment: str
    config: Experiment
    run: Run
    setting: Setting
    folder: Path

    @property
    def trials(self) -> int:
        """T; 0 where it is not registered."""
        return self.family["trials"].get(data_set(self.experiment), 0)

    @property
    def reading(self) -> str:
        return self.family.get("reading", "")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All pairs that the trials compare: those that T is for, then those beside."""
        return [(first, second) for first, second in [*self.family["pairs"], *self.family.get("beside", [])]]

    @property
    def trials_folder(self) -> Path:
        return self.folder / self.name / self.experiment / self.setting.name

    def sides(self) -> dict[str, list[str]]:
        """Algorithms between which a side of a pair chooses, by its name without the form, and the gate's."""
        names = [name.removesuffix(NON_PRIVATE) for pair in self.pairs for name in pair]
        known = families(self.config.algorithms)
        return {name: known.get(name, [name]) for name in [*names, GATED]}

    def task(self, algorithm: str) -> Task:
        label = self.reading if trained_as(self.config, algorithm, self.reading) else ""
        return Task(self.experiment, self.config, algorithm, self.setting, label)

    def points(self) -> pd.DataFrame:
        """Points (side, algorithm, POINT) of all sides on the union of their steps and clips."""
        own = {name: self.task(name).grid() for names in self.sides().values() for name in names}
        union = pd.concat(own.values())[["stepsize", "clip"]].drop_duplicates()
        plain = any(name.endswith(NON_PRIVATE) for pair in self.pairs for name in pair)
        parts = []
        for side, names in self.sides().items():
            for name in names:
                points = own[name][["epsilon", "phase_length"]].drop_duplicates().merge(union, how="cross")
                private = points["epsilon"].notna() & np.isfinite(points["clip"])
                parts.append(points[private | (points["epsilon"].isna() & plain)].assign(side=side, algorithm=name))
        return pd.concat(parts, ignore_index=True)

    def of_grid(self, file: Path) -> pd.DataFrame:
        """The rows of a file of this part; ConfigError for a point of another grid.

        Trials have no digest: those of another grid would be taken for this one's.
        """
        rows, names = read_parquet(file).astype(dict.fromkeys(_KEPT, float)), ["algorithm", *POINT]
        # Steps are powers, whose last digit depends on the machine.
        known, found = (
            set(table[names].fillna(-1).round(9).itertuples(index=False)) for table in (self.points(), rows)
        )
        for name, epsilon, *numbers in sorted(found - known):
            point = {"epsilon": "none" if epsilon == -1 else f"{epsilon:g}"}
            point |= {key: f"{number:g}" for key, number in zip(POINT[1:], numbers, strict=True)}
            told = ", ".join(f"{key} {value}" for key, value in point.items())
            allowed = "must be on the grid of the publication; trials of another grid are another family's"
            raise ConfigError(f"{file}: point: {name}, {told}: {allowed}")
        return rows

    def grid(self) -> pd.DataFrame:
        """`points` with their means in the publication."""
        grid = self.points()
        published = Path("results") / self.family["publication"] / "losses" / f"{self.experiment}.parquet"
        if not published.is_file():
            return grid.assign(train_loss_mean=np.nan, train_loss_error=np.nan)
        known = read_parquet(published)
        place = (known["M"] == self.setting.M) & (known["R"] == self.setting.R) & (known["reading"] == self.reading)
        known = known[place & (known["trials"] == self.config.trials)]
        known = known[["algorithm", *POINT, "train_loss_mean", "train_loss_error"]]
        return grid.merge(known, how="left", on=["algorithm", *POINT])


def parts_of(protocol: Mapping[str, Any], name: str, folder: Path) -> Iterator[FamilySetting]:
    """Every setting of every experiment of a family."""
    family = protocol["families"][name]
    for experiment in family["experiments"]:
        run, config = experiment_of(Path("results") / family["publication"] / "config.json", experiment)
        device = protocol["data_sets"][data_set(experiment)].get("device", run.device)
        run = run.model_copy(update={"seed": protocol["seed"], "device": device})
        yield from (
            FamilySetting(name, family, experiment, config, run, setting, folder) for setting in config.settings
        )


def trial_data(part: FamilySetting) -> Callable[[int], TrialData]:
    """Trial → its records; ConfigError where this machine lacks the device."""
    if part.run.device.startswith("cuda") and not torch.cuda.is_available():
        key = f"config/claims/decided.yaml: data_sets.{data_set(part.experiment)}.device"
        raise ConfigError(f"{key}: {part.run.device!r}: this machine has no CUDA device: must be cpu")
    readings, data = part.task(GATED).readings, load_dataset(part.config, part.run)

    def load(trial: int) -> TrialData:
        cut = draw_partition(part.experiment, part.config, readings, part.run, data, trial)
        return prepare(data, part.config, readings, cut, part.run)

    return load


def train_points(part: FamilySetting, points: pd.DataFrame, trials: Iterable[int], purpose: str) -> pd.DataFrame:
    """Rows (algorithm, trial, POINT, train_loss, test_error) of `points` (algorithm, POINT) in every trial.

    No row depends on which points and trials are trained beside it.
    """
    columns = ["algorithm", "trial", *POINT, "train_loss", "test_error"]
    tables, load = [], trial_data(part)
    for trial in trials if len(points) else ():
        records = load(trial)
        for name, own in points.groupby("algorithm", sort=False):
            stack = own[POINT].reset_index(drop=True)
            table = run_trial(part.task(str(name)), part.run, records, trial, stack, purpose)
            tables.append(table.assign(algorithm=name)[columns])
    return _join_rows(tables) if tables else pd.DataFrame(columns=columns)


def _join_rows(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Tables without those that are empty, whose columns would take the types of the others away."""
    return pd.concat([table for table in tables if len(table)], ignore_index=True)


def pilot(part: FamilySetting) -> pd.DataFrame:
    """Rows (side, algorithm, trial, POINT, train_loss, test_error) of every point that may be choosable.

    Trials, batches and noise are the publication's. Where that has a point's mean over all of them, a paired standard
    error is at most the sum of the two marginal ones, and a point outside `CHOOSABLE` of those is left out. Other
    points run `SCREENED` trials, and go on where their mean loss there is within three times the sum of the two
    standard deviations of the best point's.
    """
    grid = part.grid()
    sides = grid[["side", "algorithm"]].drop_duplicates()
    known = grid[grid["train_loss_mean"].notna()]
    best = known.loc[known.groupby(["side", "epsilon"], dropna=False)["train_loss_mean"].idxmin()]
    beside = known.merge(best, on=["side", "epsilon"], suffixes=("", "_best"))
    limit = CHOOSABLE * (beside["train_loss_error"] + beside["train_loss_error_best"])
    close = beside[beside["train_loss_mean"] - beside["train_loss_mean_best"] <= limit]
    rows = train_points(part, close, range(part.config.trials), "grid")
    unknown = grid[grid["train_loss_mean"].isna()]
    if len(unknown):
        rows = _join_rows([rows, train_points(part, unknown, range(SCREENED), "grid")])
        going = []
        for key, wide in _losses_by_point(rows.merge(sides)):
            wide = wide.reindex(range(part.config.trials))
            means = wide.mean().where(wide.notna().all(), math.inf)
            first = wide[:SCREENED]
            reference = (means if np.isfinite(means).any() else first.mean()).idxmin()
            apart = first.sub(first[reference], axis=0).mean()
            more = wide.isna().any() & (apart <= 3 * (first.std() + wide[reference].std()))
            going.append(more[more].index.to_frame(index=False).assign(epsilon=key[1]))
        more = train_points(part, pd.concat(going), range(SCREENED, part.config.trials), "grid")
        rows = _join_rows([rows, more])
    return rows.merge(sides)


def _losses_by_point(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, float], pd.DataFrame]]:
    """((side, ε), training losses: a row a trial and a column a point), for every side and ε."""
    scored = rows.assign(train_loss=rows["train_loss"].fillna(math.inf))
    for key, own in scored.groupby(["side", "epsilon"], dropna=False, sort=False):
        yield key, own.pivot(index="trial", columns=["algorithm", *POINT[1:]], values="train_loss").sort_index()


def choosable(rows: pd.DataFrame) -> pd.DataFrame:
    """Points (side, algorithm, POINT) within `CHOOSABLE` paired standard errors of their side's best, of pilot rows.

    Of points with the same loss in every trial, as clips that clip nothing, the first stands for all.
    """
    found = []
    for (side, epsilon), wide in _losses_by_point(rows):
        whole = wide.loc[:, wide.notna().all()].T.drop_duplicates().T
        apart = whole.sub(whole[whole.mean().idxmin()], axis=0)
        near_best = apart.mean() <= CHOOSABLE * apart.sem()
        points = near_best[near_best].index.to_frame(index=False)
        found.append(points.assign(side=side, epsilon=epsilon)[["side", "algorithm", *POINT]])
    return pd.concat(found, ignore_index=True)


def make_pilot(part: FamilySetting) -> pd.DataFrame:
    """The stored pilot, made where it is missing."""
    file = part.trials_folder / "pilot.parquet"
    if not file.exists():
        write_parquet(pilot(part), file)
    return part.of_grid(file)


def stored_trials(part: FamilySetting, side: str) -> pd.DataFrame | None:
    """The rows of a side's trials; None until all are there."""
    files = list(trial_files(part, side))
    whole = bool(files) and all(file.exists() for file in files)
    return pd.concat(map(part.of_grid, files), ignore_index=True) if whole else None


def trial_files(part: FamilySetting, side: str) -> dict[Path, range]:
    """Files of a side's fresh trials, `BLOCK` a file, and their numbers, which go on from the pilot's."""
    firsts, start = range(0, part.trials, BLOCK), part.config.trials
    folder = part.trials_folder / side.replace(":", "_")
    return {folder / f"trials_{first}.parquet": range(start + first, start + first + BLOCK) for first in firsts}


def make_trials(part: FamilySetting, side: str) -> None:
    """The fresh trials of a side's choosable points, made where they are missing; the gate's copy has own streams."""
    files = trial_files(part, side)
    for file in [file for file in files if file.exists()]:
        part.of_grid(file)
        files.pop(file)
    if files:
        points = choosable(make_pilot(part))
        copied = side == COPY
        points = points[(points["side"] == (GATED if copied else side)) & (points["epsilon"].notna() | (not copied))]
        for file, numbers in files.items():
            rows = train_points(part, points, numbers, "decided again" if copied else "decided")
            write_parquet(rows.astype(_KEPT), file)
