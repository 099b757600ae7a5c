"""A task: one algorithm in one setting of one experiment, under one reading; its grid and its privacy plans."""

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from silodp.algorithms import ALGORITHMS
from silodp.config_models import Experiment, Readings, Setting
from silodp.datasets import DATASETS
from silodp.privacy.plan import Budget, PrivacyPlan

if TYPE_CHECKING:
    from silodp.algorithms.base import Algorithm
    from silodp.theory.schedules import Stage

POINT = ["epsilon", "stepsize", "clip", "phase_length"]


def number_of_silos(config: Experiment) -> int:
    """N, as the scheme or the config fixes it."""
    if config.silos.scheme == "digit_pairs":
        return 25
    return config.silos.count or len(DATASETS[config.dataset].class_counts or ())


def dimension(config: Experiment) -> int:
    """d of a linear model on an embedded data set, known before a trial is cut; ValueError for any other."""
    steps, dataset = config.preprocess, DATASETS[config.dataset]
    if config.model.name != "linear" or not dataset.embedded:
        raise ValueError("must be ideal unless the model is linear and its data set embedded, so that d is known")
    features = steps.pca or len(dataset.load().feature_names)
    return features + steps.constant_column


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
        readings, own = self.readings, self.config.algorithms[self.algorithm]
        log_term = self.config.log_term if readings.log_term == "paper" else readings.log_term
        return {
            "rounds": self.setting.R,
            "silos": number_of_silos(self.config),
            "taking_part": self.setting.M,
            "noise": "moments" if own.noise == "calibrated" else own.noise,
            "restarts": own.restarts,
            "mu": own.mu,
            "regularisation": own.regularisation,
            "stages": self._stages(),
            "average": readings.output == "own",
            "log_term": log_term,
            "spider_q1_noise": readings.spider_q1_noise,
            "fed_spider_releases": readings.fed_spider_releases,
        }

    def make(self, phase_length: int, epsilon: float = math.nan, n: int | None = None) -> "Algorithm":
        """The algorithm at one point of the grid, for silos of at least n training records where it depends on them."""
        own, options = self.config.algorithms[self.algorithm], self.options() | {"phase_length": phase_length}
        if own.schedule and n is not None:
            from silodp.prescribed import prescribe

            delta = self._delta(n)
            silos = number_of_silos(self.config)
            found = prescribe(self.config, self.algorithm, self.setting, N=silos, n=n, epsilon=epsilon, delta=delta)
            options |= {"schedule": found, "clip": (own.clips or self.config.clips)[0], "rounds": found.rounds}
            options |= {"mu": found.strong, "average": True}
        made = ALGORITHMS[self.algorithm].with_options(options)
        return made if n is None else made.fitted(n, self.config.batch_records)

    def _stages(self) -> "tuple[Stage, ...]":
        """Stages of accelerated SGD, as the experiment gives them."""
        given = self.config.algorithms[self.algorithm].stages
        if not given:
            return ()
        from silodp.theory.schedules import Stage

        return tuple(Stage(stage.rounds, stage.upsilon, stage.mu) for stage in given)

    def _delta(self, n: int) -> float:
        return n**-2.0 if self.config.delta == "1/n^2" else self.config.delta

    def grid(self) -> pd.DataFrame:
        """All points, columns `POINT`; epsilon is NaN for the baseline without noise.

        A step size that a schedule prescribes, or a clip threshold that is read off the data, is NaN.
        """
        own = self.config.algorithms[self.algorithm]
        spacing = None if self.readings.stepsize_grid == "as_given" else self.readings.stepsize_grid
        stepsizes = (own.stepsizes or self.setting.stepsizes or self.config.stepsizes).values(spacing)
        stepsizes = [math.nan] if own.schedule else stepsizes
        clips = own.clips or self.config.clips
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

    def plans(self, epsilon: float, phase_length: int, sizes: list[int]) -> list[PrivacyPlan]:
        """The privacy plan of every silo; `epsilon` is NaN for no noise, `sizes` are the silos' training records."""
        config, readings = self.config, self.readings
        claimed = None if math.isnan(epsilon) else epsilon
        batch_epsilon = config.batch_epsilon if readings.batch == "eps_max" or claimed is None else claimed
        plans: dict[int, PrivacyPlan] = {}
        smallest = min(sizes)
        algorithm = self.make(phase_length, epsilon, smallest)
        for size in {smallest} if readings.records == "equal" else set(sizes):
            budget = Budget(size, algorithm.rounds, claimed, self._delta(size), batch_epsilon, config.batch_records)
            plan = algorithm.plan(budget)
            clipping, tensors = readings.clipping, config.model.tensors
            clipped = tuple(dataclasses.replace(one, clipping=clipping, tensors=tensors) for one in plan.releases)
            plans[size] = dataclasses.replace(plan, releases=clipped)
            if readings.summation == "shuffled" and plan.private and plan.trusted_sum is not None:
                from silodp.privacy.shuffled_plan import shuffled_plan  # slow to import

                plans[size] = shuffled_plan(plans[size], self.setting.M, dimension(config))
                continue
            if self.calibrated:
                from silodp.privacy.calibration import calibrated_plan  # slow to import

                plans[size] = calibrated_plan(plans[size])
        return [plans[smallest if readings.records == "equal" else size] for size in sizes]
