"""Tuning by race: a coarse grid, a search around its best points, more trials for the best of those.

Every rung is a job of its own that reads the rungs before it. Which points it trains follows from their tables alone,
and a point's run is the one of the whole grid: the same streams, and the same bits where a kernel works point by point.
So a race is the same however jobs are cut, and can be played again on the tables of a whole grid.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

import pandas as pd

from silodp.config.experiment import Experiment, Race
from silodp.experiments.task import POINT

# Axes of a point beside its ε, and which of them the step size is.
AXES = POINT[1:]
# Best points of an ε that a search goes on from.
CENTRES = 2

Place = tuple[int, ...]


def check_race(experiment: Experiment, fail: Callable[[str, object, str], NoReturn]) -> None:
    """Calls `fail(key, value, allowed)` where an experiment's race cannot be run.

    A race leaves no grid run of every trial to report, and needs a trial for each of its later rungs.
    """
    if experiment.tuning != "race":
        return
    if any((report.selection, report.evaluation) != ("pooled", "fresh") for report in experiment.reports):
        fail("tuning", "race", "must be full where reports are any but {selection: pooled, evaluation: fresh}")
    if experiment.trials <= len(experiment.race.kept):
        fail("trials", experiment.trials, f"must be more than the {len(experiment.race.kept)} numbers of race.kept")


class Rung(NamedTuple):
    """What a rung trains: its trial, and how its points are found."""

    trial: int
    kind: str
    kept: int


def rungs(race: Race) -> list[Rung]:
    """The rungs of a race, in order: one coarse, some searches, then a further trial each for fewer points."""
    found = [Rung(0, "coarse", 0), *[Rung(0, "search", CENTRES)] * race.searches]
    return found + [Rung(trial, "trial", kept) for trial, kept in enumerate(race.kept, start=1)]


def points(race: Race, number: int, grid: pd.DataFrame, earlier: pd.DataFrame | None) -> pd.DataFrame:
    """Points of `grid` that a rung trains, with the columns `POINT` and trial, in the grid's order.

    Args:
        race: its settings.
        number: of the rung, from 0.
        grid: all points, columns `POINT`; ε is NaN without noise.
        earlier: rows of the rungs before it: `POINT`, trial and train_loss.
    """
    rung, lines = rungs(race)[number], _Lines(grid)
    wanted: dict[int, set[Place]] = {line: set() for line in range(len(lines))}
    for line in range(len(lines)):
        if rung.kind == "coarse":
            wanted[line] = set(_coarse(lines, line, race))
            continue
        ranked = _Ranks(lines, earlier, rung.trial)
        best = ranked.best(line)[: rung.kept]
        if rung.kind == "trial":
            wanted[line] = set(best)
            continue
        centres = set(best)
        for near in lines.neighbours(line):
            centres |= {place for place in ranked.best(near)[:1] if lines.holds(line, place)}
        wanted[line] = {place for one in centres for place in (one, *lines.around(line, one))} - ranked.tried(line)
    chosen = [row for row in range(len(grid)) if lines.place[row] in wanted[lines.line[row]]]
    return grid.iloc[chosen].assign(trial=rung.trial).reset_index(drop=True)


def finalists(trials: pd.DataFrame) -> pd.DataFrame:
    """Rows of the points that were left at the end of their race: those that ran the last trial."""
    return trials.merge(trials.loc[trials["trial"] == trials["trial"].max(), [*_run(trials), *POINT]])


def play(race: Race, grid: pd.DataFrame, train: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """All rungs of a race; `train` takes points with their trial and gives them back with train_loss."""
    done: pd.DataFrame | None = None
    for number in range(len(rungs(race))):
        found = train(points(race, number, grid, done)).assign(rung=number)
        done = found if done is None else pd.concat([done, found], ignore_index=True)
    assert done is not None
    return done


def _run(trials: pd.DataFrame) -> list[str]:
    return [name for name in ("experiment", "algorithm", "reading", "M", "R") if name in trials]


class _Lines:
    """A grid as lines of one ε each, a point as its place on the axes of its line.

    Attributes:
        line, place: of every row of the grid.
    """

    def __init__(self, grid: pd.DataFrame):
        self.epsilons = sorted(grid["epsilon"].dropna().unique())
        self._silent = bool(grid["epsilon"].isna().any())
        self.line = [len(self.epsilons) if math.isnan(e) else self.epsilons.index(e) for e in grid["epsilon"]]
        self.values: list[list[list[float]]] = []
        for line in range(len(self)):
            own = grid[[at == line for at in self.line]]
            self.values.append([_distinct(own[axis]) for axis in AXES])
        self.place: list[Place] = [
            self._at(line, row) for line, row in zip(self.line, grid[AXES].itertuples(index=False), strict=True)
        ]
        self._there = set(zip(self.line, self.place, strict=True))

    def __len__(self) -> int:
        return len(self.epsilons) + self._silent

    def _at(self, line: int, row: tuple) -> Place:
        return tuple(_index(values, value) for values, value in zip(self.values[line], row, strict=True))

    def where(self, epsilon: float, row: tuple) -> tuple[int, Place]:
        """Line and place of a point."""
        line = len(self.epsilons) if math.isnan(epsilon) else self.epsilons.index(epsilon)
        return line, self._at(line, row)

    def holds(self, line: int, place: Place) -> bool:
        """Whether the line has a point at `place`."""
        return (line, place) in self._there

    def neighbours(self, line: int) -> list[int]:
        """Lines of the next smaller and the next larger ε; the one without noise has none."""
        last = len(self.epsilons)
        return [] if line == last else [near for near in (line - 1, line + 1) if 0 <= near < last]

    def around(self, line: int, place: Place) -> Iterator[Place]:
        """Places one step away along one axis."""
        for axis in range(len(place)):
            for step in (-1, 1):
                moved = (*place[:axis], place[axis] + step, *place[axis + 1 :])
                if self.holds(line, moved):
                    yield moved


class _Ranks:
    """Places of every line by their mean training loss over the trials before `trial`; in ties the grid's order."""

    def __init__(self, lines: _Lines, earlier: pd.DataFrame | None, trial: int):
        if earlier is None:
            raise ValueError("rung > 0: must be given the rows of the rungs before it")
        losses: dict[tuple[int, Place], list[float]] = {}
        for epsilon, *row, loss in earlier[[*POINT, "train_loss"]].itertuples(index=False):
            losses.setdefault(lines.where(epsilon, tuple(row)), []).append(math.inf if math.isnan(loss) else loss)
        runs = max(trial, 1)
        self._means = {
            key: math.fsum(found) / runs if math.isfinite(sum(found)) else math.inf
            for key, found in losses.items()
            if len(found) == runs
        }

    def best(self, line: int) -> list[Place]:
        """Places that have run every trial so far, best first."""
        return [place for _, place in sorted((mean, place) for (at, place), mean in self._means.items() if at == line)]

    def tried(self, line: int) -> set[Place]:
        """Places that have run."""
        return {place for at, place in self._means if at == line}


def _coarse(lines: _Lines, line: int, race: Race) -> Iterator[Place]:
    """Every `stride`-th step size with every second value of the other axes, at every second ε."""
    if line < len(lines.epsilons) and line not in _thinned(len(lines.epsilons), 2):
        return
    axes = [_thinned(len(values), 2 if axis else race.stride) for axis, values in enumerate(lines.values[line])]
    yield from (place for place in itertools.product(*axes) if lines.holds(line, place))


def _thinned(count: int, stride: int) -> range:
    """Every `stride`-th of 0 … count − 1, as far from one end as from the other."""
    number = max(count // stride, 1)
    first = (count - 1 - stride * (number - 1)) // 2
    return range(first, first + stride * number, stride)


def _distinct(values: pd.Series) -> list[float]:
    return sorted(values.dropna().unique()) + ([math.nan] if values.isna().any() else [])


def _index(values: list[float], value: float) -> int:
    return len(values) - 1 if math.isnan(value) else values.index(value)
