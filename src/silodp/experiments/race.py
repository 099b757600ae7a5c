"""Tuning by race: a coarse grid, a search around its best points, more trials for the best of those.

Every rung is a job that reads the tables of the rungs before it, and trains points that follow from those alone. A
point's run is that of the whole grid: the same streams, and the same bits where a kernel works point by point. So a
race does not depend on how jobs are cut, and can be played again on the tables of a whole grid.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pandas as pd

from silodp.config.errors import Rule
from silodp.config.experiment import Experiment, Race
from silodp.experiments.task import POINT, RUN

# Axes of a point beside its ε, the step size first.
AXES = POINT[1:]
# Best points of an ε around which a rung searches.
CENTRES = 2

Place = tuple[int, ...]


def race_rules(experiment: Experiment) -> Iterator[Rule]:
    """A race leaves no grid run of every trial to report, and needs a trial for each of its later rungs."""
    raced, kept = experiment.tuning == "race", len(experiment.race.kept)
    unlike = any((report.selection, report.evaluation) != ("pooled", "fresh") for report in experiment.reports)
    allowed = "must be full where reports are any but {selection: pooled, evaluation: fresh}"
    yield raced and unlike, "tuning", "race", allowed
    allowed = f"must be more than the {kept} numbers of race.kept"
    yield raced and experiment.trials <= kept, "trials", experiment.trials, allowed


class Rung(NamedTuple):
    """What a rung trains: its trial, and how its points are found."""

    trial: int
    kind: str
    kept: int


def rungs(race: Race) -> list[Rung]:
    """The rungs of a race, in order: one coarse, some searches, then a further trial each for fewer points."""
    first = [Rung(0, "coarse", 0), *[Rung(0, "search", CENTRES)] * race.searches]
    return first + [Rung(trial, "trial", kept) for trial, kept in enumerate(race.kept, start=1)]


def points(race: Race, number: int, grid: pd.DataFrame, earlier: pd.DataFrame | None) -> pd.DataFrame:
    """Points of `grid` that rung `number` trains, with the columns `POINT` and trial, in the grid's order.

    `earlier` has the rows of the rungs before it: `POINT`, trial and train_loss.
    """
    rung, lines = rungs(race)[number], _Lines(grid)
    ranked = [] if earlier is None else lines.rank_points(earlier, rung.trial)
    wanted: list[set[Place]] = []
    for line in range(len(lines)):
        if rung.kind == "coarse":
            wanted.append(lines.coarse(line, race.stride))
            continue
        best = set(ranked[line][: rung.kept])
        if rung.kind == "search":
            near = [place for other in lines.neighbours(line) for place in ranked[other][:1]]
            best |= {place for place in near if (line, place) in lines.points}
            best = {place for centre in best for place in lines.around(line, centre)} - set(ranked[line])
        wanted.append(best)
    chosen = [place in wanted[line] for line, place in zip(lines.line, lines.place, strict=True)]
    return grid[chosen].assign(trial=rung.trial).reset_index(drop=True)


def finalists(trials: pd.DataFrame) -> pd.DataFrame:
    """Rows of the points that were left at the end of their race: those that ran the last trial."""
    by = [name for name in (*RUN, *POINT) if name in trials]
    return trials.merge(trials.loc[trials["trial"] == trials["trial"].max(), by])


def play(race: Race, grid: pd.DataFrame, train: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """All rungs of a race; `train` takes points with their trial and gives them back with train_loss."""
    done: list[pd.DataFrame] = []
    for number in range(len(rungs(race))):
        earlier = pd.concat(done, ignore_index=True) if done else None
        done.append(train(points(race, number, grid, earlier)).assign(rung=number))
    return pd.concat(done, ignore_index=True)


class _Lines:
    """A grid as lines of one ε each, the line without noise last; a point is its place on the axes of its line."""

    def __init__(self, grid: pd.DataFrame):
        self.grid = grid.reset_index(drop=True)
        line = self.grid.groupby("epsilon", dropna=False).ngroup()
        ranks = [self.grid[axis].groupby(line).rank("dense", na_option="bottom").astype(int) - 1 for axis in AXES]
        self.line, self.place = line.tolist(), list(zip(*ranks, strict=True))
        self.private = self.grid["epsilon"].nunique()
        self.points = set(zip(self.line, self.place, strict=True))

    def __len__(self) -> int:
        return max(self.line) + 1

    def coarse(self, line: int, stride: int) -> set[Place]:
        """Every `stride`-th step size with every second value of the other axes, at every second ε."""
        if line < self.private and line not in _thinned(self.private, 2):
            return set()
        places = [place for other, place in self.points if other == line]
        lengths = [max(ranks) + 1 for ranks in zip(*places, strict=True)]
        axes = [_thinned(length, 2 if axis else stride) for axis, length in enumerate(lengths)]
        return {place for place in itertools.product(*axes) if (line, place) in self.points}

    def neighbours(self, line: int) -> list[int]:
        """Lines of the next smaller and the next larger ε; the one without noise has none."""
        return [near for near in (line - 1, line + 1) if 0 <= near < self.private > line]

    def around(self, line: int, place: Place) -> Iterator[Place]:
        """`place`, and the places one step away along one axis."""
        yield place
        for axis in range(len(place)):
            for step in (-1, 1):
                moved = (*place[:axis], place[axis] + step, *place[axis + 1 :])
                if (line, moved) in self.points:
                    yield moved

    def rank_points(self, earlier: pd.DataFrame, trial: int) -> list[list[Place]]:
        """For every line: places that have run every trial before `trial`, by their mean training loss."""
        numbered = self.grid.assign(line=self.line, place=self.place)
        rows = earlier.fillna({"train_loss": math.inf}).merge(numbered, on=POINT)
        runs = max(trial, 1)
        of_points = defaultdict(list)
        for line, place, loss in zip(rows["line"], rows["place"], rows["train_loss"], strict=True):
            of_points[line, place].append(loss)
        ranked: list[list[tuple[float, Place]]] = [[] for _ in range(len(self))]
        for (line, place), losses in of_points.items():
            if len(losses) == runs:
                ranked[line].append((math.fsum(losses) / runs if all(map(math.isfinite, losses)) else math.inf, place))
        return [[place for _, place in sorted(line)] for line in ranked]


def _thinned(count: int, stride: int) -> range:
    """Every `stride`-th of 0 … count − 1, as far from one end as from the other."""
    number = max(count // stride, 1)
    first = (count - 1 - stride * (number - 1)) // 2
    return range(first, first + stride * number, stride)
