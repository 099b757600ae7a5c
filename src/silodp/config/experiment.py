"""The keys of run files and experiments: one Pydantic model is the source of defaults, schema and reference page."""

import itertools
import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, field_serializer, field_validator, model_validator

from silodp.config.models import ModelConfig, Penalty
from silodp.config.readings import Alternative, Readings
from silodp.config.types import (
    Clip,
    Constants,
    Count,
    Device,
    Epsilon,
    Exponent,
    Finite,
    NonNegative,
    OwnData,
    Positive,
    StageOptions,
    Strict,
    Title,
    at_least,
)

# How far beyond both ends of a grid its widened form goes, in the exponent.
WIDER = 3.0


class Grid(Strict):
    """Step sizes: `points` values from e^low to e^high."""

    low: Exponent = Field(description="natural logarithm of the smallest step size")
    high: Exponent = Field(description="natural logarithm of the largest step size")
    points: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of step sizes")
    spacing: Literal["linear", "exponential"] = Field(
        "exponential", description="evenly spaced in value or in exponent"
    )

    @model_validator(mode="after")
    def _ordered(self) -> "Grid":
        if self.low > self.high:
            raise ValueError("low must be at most high")
        return self

    def values(self, spacing: str | None = None) -> list[float]:
        """The step sizes, ascending; `spacing` overrides the grid's own (reading `stepsize_grid`)."""
        if (spacing or self.spacing) == "linear":
            return np.linspace(math.exp(self.low), math.exp(self.high), self.points).tolist()
        return np.exp(np.linspace(self.low, self.high, self.points)).tolist()

    def wider_values(self, spacing: str | None = None) -> list[float]:
        """The same with values beyond both ends, down to e^(low − 3) and up to e^(high + 3) or just past them.

        They go on in the exponent with the grid's own distance, or a distance of 1 where values are evenly spaced.
        """
        even = (spacing or self.spacing) == "linear" or self.points == 1
        apart = max(1.0 if even else (self.high - self.low) / (self.points - 1), 1e-3)
        beyond = [apart * step for step in range(1, math.ceil(WIDER / apart) + 1)]
        below, above = [self.low - one for one in reversed(beyond)], [self.high + one for one in beyond]
        return [*np.exp(below).tolist(), *self.values(spacing), *np.exp(above).tolist()]


def _source_tag(value: Any) -> str:
    return "str" if isinstance(value, str) else "owndata"


# Told apart before they are read, so that an error speaks of the one that was meant.
Source = Annotated[Annotated[str, Tag("str")] | Annotated[OwnData, Tag("owndata")], Discriminator(_source_tag)]


def _distinct(values: list | None) -> list | None:
    """Validator of a grid: a value that is given twice would be trained and reported twice."""
    if values is not None and any(value in values[:place] for place, value in enumerate(values)):
        raise ValueError("values must be distinct")
    return values


class Setting(Strict):
    """One (M, R): silos that take part in a round, and rounds."""

    M: Count = Field(description="silos drawn in each round")
    participants: list[Count] | None = Field(
        None, min_length=1, description="values of a random M_r, each as likely; M is their harmonic mean, rounded"
    )
    R: Count = Field(description="rounds of communication")
    phase_lengths: list[Count] | None = Field(
        None, min_length=1, description="rounds of a phase; default: the experiment's"
    )
    stepsizes: Grid | None = Field(None, description="step sizes; default: the experiment's")

    _grid = field_validator("phase_lengths")(_distinct)

    @property
    def name(self) -> str:
        """The setting's name in paths, as in M12_R25."""
        return f"M{self.M}_R{self.R}"


class Partitioning(Strict):
    """How records are cut into silos."""

    scheme: Literal["digit_pairs", "by_class", "sorted_target", "iid", "column", "dirichlet"] = Field(
        "column",
        description="25 (even, odd) pairs; a class a silo; parts by target; at random; the file's silo column; shares "
        "of each class drawn from Dir(alpha)",
    )
    count: Count | None = Field(None, description="number of silos N, where the scheme does not fix it")
    alpha: Positive | None = Field(None, description="of dirichlet: the smaller, the more silos differ")
    least: Count | None = Field(None, description="smaller silos of the silo column are left out")
    mixed: float = Field(0.0, ge=0, le=1, description="share p of a silo's records drawn from all digits")
    per_class: Count | None = Field(None, description="first k records of each class; default: all")
    train_share: float = Field(0.8, gt=0, lt=1, description="share of a silo's records used for training")
    official_test: bool = Field(False, description="test on the data set's test part; train_share is of the rest")


class Preprocessing(Strict):
    """What is done to features before training, fitted as reading `standardise` says."""

    standardise: bool | Literal["none", "bounds", "silo", "train"] = Field(
        True,
        description="mean 0 and variance 1: as the reading says (true), over training records or in each silo; bounds: "
        "to [-1, 1]; false, none: as it is",
    )
    bounds: dict[str, Annotated[list[Finite], Field(min_length=2, max_length=2)]] = Field(
        default={}, description="lowest and highest value of a column; values beyond are cut"
    )
    bounds_from: Literal["knowledge", "file"] = Field(
        "knowledge", description="file: read off the records, hence not private"
    )
    pca: Count | None = Field(None, description="principal components kept")
    constant_column: bool = Field(False, description="append a column of ones (the intercept of a linear model)")


class AlgorithmOptions(Strict):
    """Options of one algorithm; the experiment's own values stand for those left out."""

    private: Literal["both", "private", "non_private"] = Field(
        "both", description="the private form, the baseline without noise, or both"
    )
    stepsizes: Grid | None = Field(None, description="default: the experiment's")
    clips: list[Clip] | None = Field(None, min_length=1, description="default: the experiment's")
    phase_lengths: list[Count] | None = Field(
        None, min_length=1, description="rounds of a phase: q of FedProx-SPIDER, Q of Prox-SVRG"
    )
    noise: Literal["moments", "theorem", "calibrated"] | Positive = Field(
        "moments",
        description="moments form, the theorem's, the least that certifies epsilon, or sigma / L (minibatch, Prox, "
        "SDP)",
    )
    restarts: Count = Field(2, description="S of Prox-PL-SVRG: runs, each from an iterate of the last")
    mu: NonNegative = Field(0.0, description="strong convexity: weights of the average, steps of accelerated SGD")
    regularisation: NonNegative = Field(0.0, description="lambda of accelerated SGD's added lambda/2 norm(w)^2")
    stages: list[StageOptions] = Field(default=[], description="stages of accelerated SGD; default: one")
    schedule: str | None = Field(
        None, description="theorem that gives rounds (at most R), K, sigma, steps, output, as in theorem-2.1"
    )
    constants: Constants | None = Field(None, description="constants that the schedule's theorem needs")
    options: dict[str, bool | int | Finite | str] = Field(
        default={}, description="further parameters of a plug-in's algorithm"
    )

    _grid = field_validator("clips", "phase_lengths")(_distinct)


class Report(Strict):
    """How a point is chosen and on which runs it is reported."""

    selection: Literal["pooled", "per_trial"] = Field(
        "pooled", description="smallest training loss in the mean over trials, or in each trial"
    )
    evaluation: Literal["fresh", "same"] = Field(
        "fresh", description="train the chosen point again, or report the runs that chose it"
    )


class Race(Strict):
    """How a race over the grid goes (docs/results.md, Tuning by race)."""

    stride: Count = Field(3, description="of the coarse grid's step sizes")
    searches: Count = Field(3, description="searches around the best points")
    kept: list[Count] = Field(
        [3, 2], min_length=1, description="points of an epsilon in the second trial, the third, …"
    )

    @field_validator("kept")
    @classmethod
    def _falling(cls, values: list[int]) -> list[int]:
        if any(after > before for before, after in itertools.pairwise(values)):
            raise ValueError("kept must not grow")
        return values

    @property
    def rungs(self) -> int:
        """Rungs of the race: the coarse grid, the searches, the further trials."""
        return 1 + self.searches + len(self.kept)


class Experiment(Strict):
    """One experiment: data, silos, model, settings, grids and algorithms."""

    title: Title = Field(description="a line for the report")
    short: Title = Field("", max_length=40, description="a short title for figures")
    paper: Title = Field("", description="the figure that this replicates")
    board: Literal["", "leaderboard"] = Field("", description="table that ranks algorithms by it and others")
    vary: Literal["", "silos.mixed", "silos.alpha"] | dict[Literal["silos.mixed", "silos.alpha"], list[float]] = Field(
        "", description="in a file, a key and its values, an experiment for each; in an experiment, that key"
    )
    dataset: Source = Field(description="a registered data set, or your own file")
    label: Literal["class", "parity", "target"] = Field("class", description="what is predicted")
    silos: Partitioning = Field(Partitioning(), description="how records are dealt to silos")
    preprocess: Preprocessing = Field(Preprocessing(), description="scaling and reduction of features")
    model: ModelConfig
    radius: Positive | None = Field(None, description="radius D of the ball around 0 that weights are projected onto")
    regulariser: Penalty | None = Field(None, description="convex part f1 of the objective, by its proximal map")
    settings: list[Setting] = Field(min_length=1)
    epsilons: list[Epsilon] = Field(min_length=1, description="claimed epsilon of the private algorithms")
    delta: Annotated[float, Field(gt=0, lt=1)] | Literal["1/n^2"] = Field("1/n^2", description="delta, or 1/n^2")
    trials: Count = Field(description="random train/test splits")
    batch_epsilon: Epsilon | None = Field(
        None, description="epsilon in K = floor(n sqrt(epsilon) / (2 sqrt(R))) under batch: eps_max"
    )
    batch_records: Count | None = Field(None, description="K in place of the formula")
    batch_share: Annotated[float, Field(gt=0, le=1)] | None = Field(None, description="K as a share of each silo's n")
    log_term: Literal["1/delta", "2/delta"] = Field(
        "1/delta", description="log term of MB-SGD's noise as the paper has it"
    )
    stepsizes: Grid = Field(description="step sizes to choose from")
    clips: list[Clip] = Field(min_length=1, description="clip thresholds L; .inf for none (non-private only)")
    phase_lengths: list[Count] = Field(
        default=[1], min_length=1, description="rounds of a phase: q of FedProx-SPIDER, Q of Prox-SVRG"
    )
    algorithms: dict[str, AlgorithmOptions] = Field(min_length=1)
    readings: Readings = Field(Readings(), description="how what the papers leave open is read")
    alternatives: list[Alternative] = Field(default=[], description="readings that are run beside the default ones")
    reports: list[Report] = Field(
        default=[Report()], min_length=1, description="the first is the default row of a table"
    )
    allow_unproven: bool = Field(False, description="run private algorithms whose claim is violated or not certified")
    tuning: Literal["full", "race"] = Field(
        "full", description="train the whole grid in every trial, or drop points as `race` says"
    )
    race: Race = Field(Race(), description="how `tuning: race` drops points")
    trials_per_job: Count | None = Field(None, description="trials in one training job; default: the run's")
    device: Device | None = Field(None, description="default: the run's")

    _grid = field_validator("epsilons", "clips", "phase_lengths", "reports")(_distinct)

    @field_validator("algorithms", mode="before")
    @classmethod
    def _defaults(cls, values: Any) -> Any:
        # An algorithm's name alone, with nothing behind the colon, stands for its default options.
        return {n: {} if one is None else one for n, one in values.items()} if isinstance(values, dict) else values

    @field_validator("delta")
    @classmethod
    def _delta(cls, value: float | str) -> float | str:
        return value if isinstance(value, str) else at_least(value, 1e-30)

    @model_validator(mode="after")
    def _one_batch_size(self) -> "Experiment":
        if self.batch_records is not None and self.batch_share is not None:
            raise ValueError("batch_records and batch_share both give K: leave one out")
        if self.batch_epsilon is None and self.batch_records is None and self.batch_share is None:
            raise ValueError("one of batch_epsilon, batch_records and batch_share must be given")
        return self

    @field_validator("settings")
    @classmethod
    def _distinct_settings(cls, values: list[Setting]) -> list[Setting]:
        if len({setting.name for setting in values}) != len(values):
            raise ValueError("settings (M, R) must be distinct")
        return values

    @field_serializer("alternatives")
    def _as_given(self, alternatives: list[Alternative]) -> list[dict[str, Any]]:
        # What is left out of an alternative is the experiment's reading, not the model's default.
        return [alternative.model_dump(mode="json", exclude_unset=True) for alternative in alternatives]

    @property
    def is_own(self) -> bool:
        """Whether the data are a user's file, and not registered."""
        return not isinstance(self.dataset, str)

    @property
    def data_name(self) -> str:
        return self.dataset if isinstance(self.dataset, str) else self.dataset.file

    def batch_of(self, n: int) -> int | None:
        """K for a silo of n training records where it is given; None for the formula."""
        if self.batch_share is not None:
            return max(1, round(self.batch_share * n))
        return self.batch_records

    def delta_of(self, n: int) -> float:
        return n**-2.0 if self.delta == "1/n^2" else self.delta

    def variants(self) -> dict[str, Readings]:
        """Label of each reading that is run -> its options; the default's label is empty."""
        variants = {"": self.readings}
        for alternative in self.alternatives:
            given = self._changed(alternative)
            variants[self._label(given)] = Readings(**{**self.readings.model_dump(), **given})
        return variants

    def changes(self) -> dict[str, tuple[frozenset[str], list[str] | None]]:
        """Label of each alternative -> keys in which it differs from the default, and who is run so (None: all)."""
        return {
            self._label(given): (frozenset(given), alternative.algorithms)
            for alternative in self.alternatives
            if (given := self._changed(alternative))
        }

    def _changed(self, alternative: Alternative) -> dict[str, Any]:
        """The readings in which an alternative differs from the default ones."""
        default = self.readings.model_dump()
        given = alternative.model_dump(exclude_unset=True, exclude={"algorithms"})
        return {key: value for key, value in given.items() if value != default[key]}

    def _label(self, changed: dict[str, Any]) -> str:
        words = {key: str(value).lower() if isinstance(value, bool) else value for key, value in changed.items()}
        return ";".join(f"{key}={word}" for key, word in words.items())
