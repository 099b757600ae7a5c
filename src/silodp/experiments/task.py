"""A task: one algorithm in one setting of one experiment, under one reading; its grid and its privacy plans."""

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.config.experiment import AlgorithmOptions, Experiment, Setting
from silodp.config.readings import BY_POINT, Readings
from silodp.experiments.prescribed_points import prescribe
from silodp.experiments.protocol_plans import Protocol, complete_plan
from silodp.experiments.variants import readings_of
from silodp.partition.experiment_data import dataset_of, number_of_silos
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.theory.convex.schedules import Stage

if TYPE_CHECKING:
    from silodp.algorithms.base import Algorithm

# Columns that name a run, and a point of its grid.
RUN = ["experiment", "algorithm", "reading", "M", "R"]
POINT = ["epsilon", "stepsize", "clip", "phase_length"]
# δ·n above which δ is weak: it allows that one record in fifty is published as it is.
WEAK = 0.02
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
        return self.config.variants()[self.label]

    @property
    def keys(self) -> AlgorithmOptions:
        return self.config.algorithms[self.algorithm]

    @property
    def on_own_data(self) -> bool:
        """Whether the data are a user's own, and so no two points may share noise."""
        return self.config.is_own

    @property
    def calibrated(self) -> bool:
        """Whether noise is the least that certifies the claimed ε."""
        return "calibrated" in (self.readings.noise, self.keys.noise)

    def _known_options(self) -> dict[str, Any]:
        """Parameters of algorithms that the experiment's own keys say, except what varies over the grid."""
        readings, keys = self.readings, self.keys
        return {
            "rounds": self.setting.R,
            "silos": number_of_silos(self.config),
            "cohort": self.setting.M,
            "noise": "moments" if keys.noise == "calibrated" else keys.noise,
            "restarts": keys.restarts,
            "mu": keys.mu,
            "regularisation": keys.regularisation,
            "stages": tuple(Stage(stage.rounds, stage.upsilon, stage.mu) for stage in keys.stages),
            "average": readings.output == "own",
            "random_iterate": readings.output == "own",
            "log_term": self.config.log_term if readings.log_term == "paper" else readings.log_term,
            "noise_at": readings.noise_at,
            "spider_q1_noise": readings.spider_q1_noise,
            "fed_spider_releases": readings.fed_spider_releases,
        }

    def own_parameters(self) -> list[str]:
        known = {*self._known_options(), "phase_length", "schedule", "clip"}
        return [field.name for field in dataclasses.fields(ALGORITHMS[self.algorithm]) if field.name not in known]

    def make(self, phase_length: int, epsilon: float = math.nan, n: int | None = None) -> "Algorithm":
        """The algorithm at one point of the grid, for silos of at least n training records where it depends on them."""
        config, options = self.config, self._known_options() | self.keys.options | {"phase_length": phase_length}
        if self.keys.schedule and n is not None:
            silos, delta = number_of_silos(config), config.delta_of(n)
            schedule = prescribe(config, self.algorithm, self.setting, N=silos, n=n, epsilon=epsilon, delta=delta)
            options |= {"schedule": schedule, "clip": (self.keys.clips or config.clips)[0], "rounds": schedule.rounds}
            options |= {"mu": schedule.strong, "average": True}
        algorithm = ALGORITHMS[self.algorithm].with_options(options)
        return algorithm if n is None else algorithm.fitted(n, config.batch_of(n))

    def grid(self) -> pd.DataFrame:
        """All points, columns `POINT`; epsilon is NaN for the baseline without noise.

        A step size that a schedule prescribes, or a clip threshold that is read off the data, is NaN.
        """
        config, keys, readings = self.config, self.keys, self.readings
        spacing = None if readings.stepsize_grid == "as_given" else readings.stepsize_grid
        steps = keys.stepsizes or self.setting.stepsizes or config.stepsizes
        wider = readings.grid == "widened"
        stepsizes = steps.wider_values(spacing) if wider else steps.values(spacing)
        stepsizes = [math.nan] if keys.schedule else stepsizes
        clips = keys.clips or config.clips
        finite = sorted(clip for clip in clips if not math.isinf(clip))
        if wider and finite:
            clips = [finite[0] / 10, *clips, finite[-1] * 10]
        clips = [math.nan] if readings.clip_rule == "max_norm" else clips
        has_phases = "phase_length" in {field.name for field in dataclasses.fields(ALGORITHMS[self.algorithm])}
        phases = (keys.phase_lengths or self.setting.phase_lengths or config.phase_lengths) if has_phases else [1]
        points: list[tuple] = []
        if keys.private != "non_private":
            finite = [clip for clip in clips if not math.isinf(clip)]
            points += itertools.product(config.epsilons, stepsizes, finite, phases)
        if keys.private != "private":
            points += itertools.product([math.nan], stepsizes, clips, phases)
        return pd.DataFrame(points, columns=POINT).astype({"phase_length": int})

    def points_to_train(self, sizes: list[int]) -> pd.DataFrame:
        """Points of the grid that jobs of this reading train: those whose runs are not the default reading's as well.

        All of the grid where none would be left, and in a race, which goes its own way over every grid.
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
        # Where K is given, nothing depends on the ε of its formula.
        batch_epsilon = config.batch_epsilon if readings.batch == "eps_max" or claimed is None else claimed
        counted = [min(sizes)] * len(sizes) if readings.records == "equal" else sizes
        if readings.records == "rounded":
            counted = [rounded_down(n) for n in sizes]
        algorithm = self.make(phase_length, epsilon, min(sizes))
        shuffled = readings.summation == "shuffled" and algorithm.trust == "sum"
        sums = (self.setting.M, dimension(config)) if shuffled else None
        noise = "calibrated" if self.calibrated else readings.noise
        protocol = Protocol(readings.clipping, config.model.tensors, sums, noise, readings.sampler)
        budgets = (
            Budget(n, algorithm.rounds, claimed, config.delta_of(n), batch_epsilon or 1.0, config.batch_of(n))
            for n in counted
        )
        return [complete_plan(algorithm, budget, protocol) for budget in budgets]


def rounded_down(n: int) -> int:
    """The largest whole part of a power of 1.25 that is at most n; below 4, n."""
    return n if n < 4 else math.floor(1.25 ** math.floor(math.log(n) / math.log(1.25) + 1e-9))


def task_of(name: str, config: Experiment, algorithm: str, setting: str, reading: str) -> Task:
    """The task behind a training job's words: names of an experiment, algorithm, setting (M12_R25) and reading."""
    chosen = next(other for other in config.settings if other.name == setting)
    return Task(name, config, algorithm, chosen, readings_of(config)[reading])


def task_at(name: str, config: Experiment, row: dict) -> Task:
    """The task behind a row of a table: its algorithm, M, R and reading."""
    setting = next(other for other in config.settings if (row["M"], row["R"]) == (other.M, other.R))
    return Task(name, config, row["algorithm"], setting, row["reading"])
