"""A task: one algorithm in one setting of one experiment, under one reading; its grid and its privacy plans."""

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.config.experiment import Experiment, Setting
from silodp.config.readings import BY_POINT, Readings
from silodp.experiments.names import readings_of
from silodp.experiments.plans import Protocol, complete_plan
from silodp.experiments.schedules import prescribe
from silodp.federation.data_of import dataset_of
from silodp.federation.sizes import number_of_silos
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.theory.convex.schedules import Stage

if TYPE_CHECKING:
    from silodp.algorithms.base import Algorithm
    from silodp.theory.convex.schedules import Stage

POINT = ["epsilon", "stepsize", "clip", "phase_length"]


# Models with one weight for each feature.
_ONE_WEIGHT = ("linear", "logistic", "sigmoid")


def dimension(config: Experiment) -> int:
    """d of a model with one weight a feature, known before a trial is cut; ValueError for any other."""
    steps, dataset = config.preprocess, dataset_of(config)
    if config.model.name not in _ONE_WEIGHT or dataset.images:
        raise ValueError(f"must be ideal unless the model is one of {', '.join(_ONE_WEIGHT)}, so that d is known")
    return (steps.pca or dataset.features) + steps.constant_column


@dataclass(frozen=True)
class Task:
    """One algorithm in one setting of one experiment, under one reading."""

    experiment: str
    config: Experiment
    algorithm: str
    setting: Setting
    label: str = ""

    @property
    def readings(self) -> Readings:
        """The options behind the reading's label."""
        return self.config.variants()[self.label]

    @property
    def calibrated(self) -> bool:
        """Whether noise is the least that delivers the claimed ε."""
        return "calibrated" in (self.readings.noise, self.config.algorithms[self.algorithm].noise)

    def options(self) -> dict:
        """Everything an algorithm may want to know to be made, except what varies over the grid."""
        return self._said() | self.config.algorithms[self.algorithm].options

    def _said(self) -> dict:
        readings, own = self.readings, self.config.algorithms[self.algorithm]
        log_term = self.config.log_term if readings.log_term == "paper" else readings.log_term
        return {
            "rounds": self.setting.R,
            "silos": number_of_silos(self.config),
            "cohort": self.setting.M,
            "noise": "moments" if own.noise == "calibrated" else own.noise,
            "restarts": own.restarts,
            "mu": own.mu,
            "regularisation": own.regularisation,
            "stages": self._stages(),
            "average": readings.output == "own",
            "random_iterate": readings.output == "own",
            "log_term": log_term,
            "spider_q1_noise": readings.spider_q1_noise,
            "fed_spider_releases": readings.fed_spider_releases,
        }

    def own_parameters(self) -> list[str]:
        """Parameters of the algorithm that no key but `options` says."""
        said = {*self._said(), "phase_length", "schedule", "clip"}
        return [field.name for field in dataclasses.fields(ALGORITHMS[self.algorithm]) if field.name not in said]

    def make(self, phase_length: int, epsilon: float = math.nan, n: int | None = None) -> "Algorithm":
        """The algorithm at one point of the grid, for silos of at least n training records where it depends on them."""
        own, options = self.config.algorithms[self.algorithm], self.options() | {"phase_length": phase_length}
        if own.schedule and n is not None:
            delta = self.config.delta_of(n)
            silos = number_of_silos(self.config)
            found = prescribe(self.config, self.algorithm, self.setting, N=silos, n=n, epsilon=epsilon, delta=delta)
            options |= {"schedule": found, "clip": (own.clips or self.config.clips)[0], "rounds": found.rounds}
            options |= {"mu": found.strong, "average": True}
        made = ALGORITHMS[self.algorithm].with_options(options)
        return made if n is None else made.fitted(n, self.config.batch_of(n))

    def _stages(self) -> "tuple[Stage, ...]":
        """Stages of accelerated SGD, as the experiment gives them."""
        given = self.config.algorithms[self.algorithm].stages
        if not given:
            return ()
        return tuple(Stage(stage.rounds, stage.upsilon, stage.mu) for stage in given)

    def grid(self) -> pd.DataFrame:
        """All points, columns `POINT`; epsilon is NaN for the baseline without noise.

        A step size that a schedule prescribes, or a clip threshold that is read off the data, is NaN.
        """
        own = self.config.algorithms[self.algorithm]
        spacing = None if self.readings.stepsize_grid == "as_given" else self.readings.stepsize_grid
        steps = own.stepsizes or self.setting.stepsizes or self.config.stepsizes
        wider = self.readings.grid == "widened"
        stepsizes = steps.widened(spacing) if wider else steps.values(spacing)
        stepsizes = [math.nan] if own.schedule else stepsizes
        clips = own.clips or self.config.clips
        finite = sorted(clip for clip in clips if not math.isinf(clip))
        if wider and finite:
            clips = [finite[0] / 10, *clips, finite[-1] * 10]
        clips = [math.nan] if self.readings.clip_rule == "max_norm" else clips
        has_phases = "phase_length" in {field.name for field in dataclasses.fields(ALGORITHMS[self.algorithm])}
        phases = (own.phase_lengths or self.setting.phase_lengths or self.config.phase_lengths) if has_phases else [1]
        points = []
        if own.private != "non_private":
            finite = [clip for clip in clips if not math.isinf(clip)]
            points += list(itertools.product(self.config.epsilons, stepsizes, finite, phases))
        if own.private != "private":
            points += list(itertools.product([math.nan], stepsizes, clips, phases))
        return pd.DataFrame(points, columns=POINT).astype({"phase_length": int})

    def own_points(self, sizes: list[int]) -> pd.DataFrame:
        """Points of the grid that jobs of this reading train: those whose runs are not the default reading's as well.

        All of the grid where none would be left, and in a race, which goes its own way over every grid.

        Args:
            sizes: training records of each silo.
        """
        grid = self.grid()
        if not self.label or self.config.tuning == "race" or not self.config.changes()[self.label][0] <= BY_POINT:
            return grid
        default = dataclasses.replace(self, label="")
        shared = grid.merge(default.grid(), on=POINT)
        planned = shared[["epsilon", "phase_length"]].drop_duplicates()
        alike = [self.plans(e, int(q), sizes) == default.plans(e, int(q), sizes) for e, q in planned.to_numpy()]
        shared = shared.merge(planned.loc[alike]).assign(shared=True)
        own = grid.merge(shared, how="left", on=POINT)["shared"].isna()
        return grid[own] if own.any() else grid

    def plans(self, epsilon: float, phase_length: int, sizes: list[int]) -> list[PrivacyPlan]:
        """The privacy plan of every silo; `epsilon` is NaN for no noise, `sizes` are the silos' training records."""
        config, readings = self.config, self.readings
        claimed = None if math.isnan(epsilon) else epsilon
        batch_epsilon = config.batch_epsilon if readings.batch == "eps_max" or claimed is None else claimed
        counted = [min(sizes)] * len(sizes) if readings.records == "equal" else sizes
        if readings.records == "rounded":
            counted = [rounded_down(n) for n in sizes]
        algorithm = self.make(phase_length, epsilon, min(sizes))
        shuffled = readings.summation == "shuffled" and algorithm.trust == "sum"
        protocol = Protocol(
            readings.clipping,
            config.model.tensors,
            (self.setting.M, dimension(config)) if shuffled else None,
            self.calibrated,
            readings.sampler,
        )
        budgets = (
            # Where K is given, the ε of its formula is not asked for.
            Budget(n, algorithm.rounds, claimed, config.delta_of(n), batch_epsilon or 1.0, config.batch_of(n))
            for n in counted
        )
        return [complete_plan(algorithm, budget, protocol) for budget in budgets]


def rounded_down(n: int) -> int:
    """The largest whole part of a power of 1.25 that is at most n; below 4, n."""
    return n if n < 4 else math.floor(1.25 ** math.floor(math.log(n) / math.log(1.25) + 1e-9))


def task_of(name: str, config: Experiment, algorithm: str, setting: str, reading: str) -> Task:
    """The task behind a training job's words: names of an experiment, algorithm, setting (M12_R25) and reading."""
    own = next(one for one in config.settings if one.name == setting)
    return Task(name, config, algorithm, own, readings_of(config)[reading])
