"""The keys of run files and experiments: one Pydantic model is the source of defaults, schema and reference page."""

import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_serializer, field_validator, model_validator

from silodp.config_parts import (
    AbsoluteModel,
    Constants,
    Count,
    Device,
    Finite,
    HingeModel,
    Penalty,
    Positive,
    PositiveOrInf,
    SigmoidModel,
    StageOptions,
    Strict,
)

SELECTION = Literal["pooled", "per_trial"]
EVALUATION = Literal["fresh", "same"]


def _distinct(values: list | None) -> list | None:
    """Validator of a grid: a value that is given twice would be trained and reported twice."""
    if values is not None and any(value in values[:place] for place, value in enumerate(values)):
        raise ValueError("values must be distinct")
    return values


class Grid(Strict):
    """Step sizes: `points` values from e^low to e^high, spaced evenly in value (linear) or exponent (exponential)."""

    low: Finite = Field(description="natural logarithm of the smallest step size")
    high: Finite = Field(description="natural logarithm of the largest step size")
    points: Count = Field(description="number of step sizes")
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


class Setting(Strict):
    """One (M, R): silos that take part in a round, and rounds."""

    M: Count = Field(description="silos drawn in each round")
    participants: list[Count] | None = Field(
        None, min_length=1, description="values of a random M_r, each as likely; M is then their harmonic mean, rounded"
    )
    R: Count = Field(description="rounds of communication")
    phase_lengths: list[Count] | None = Field(
        None, min_length=1, description="rounds of a phase; default: the experiment's"
    )
    stepsizes: Grid | None = Field(None, description="step sizes in this setting; default: the experiment's")

    _grid = field_validator("phase_lengths")(_distinct)

    @property
    def name(self) -> str:
        """The setting's name in paths, as in M12_R25."""
        return f"M{self.M}_R{self.R}"


class Partitioning(Strict):
    """How records are cut into silos."""

    scheme: Literal["digit_pairs", "by_class", "sorted_target", "iid"] = Field(
        description="digit_pairs: 25 (even, odd) pairs; by_class: one class a silo; sorted_target: parts by target"
    )
    count: Count | None = Field(None, description="number of silos N, where the scheme does not fix it")
    mixed: float = Field(0.0, ge=0, le=1, description="share p of a silo's records drawn from all digits")
    per_class: Count | None = Field(None, description="first k records of each class; default: all")
    train_share: float = Field(0.8, gt=0, lt=1, description="share of a silo's records used for training")
    official_test: bool = Field(False, description="test on the data set's own test part; train_share is of the rest")


class Preprocessing(Strict):
    """What is done to features before training, fitted as reading `standardise` says."""

    standardise: bool = Field(True, description="mean 0 and variance 1, per feature")
    pca: Count | None = Field(None, description="number of principal components kept; default: no PCA")
    constant_column: bool = Field(False, description="append a column of ones (the intercept of a linear model)")


class LinearModel(Strict):
    """Linear regression with half the squared error as loss."""

    tensors: ClassVar[int] = 1

    name: Literal["linear"]


class LogisticModel(Strict):
    """Logistic regression on two classes, no intercept of its own."""

    tensors: ClassVar[int] = 1

    name: Literal["logistic"]


class SoftmaxModel(Strict):
    """Multinomial logistic regression with intercepts."""

    tensors: ClassVar[int] = 2

    name: Literal["softmax"]


class PerceptronModel(Strict):
    """A perceptron with one hidden ReLU layer and cross-entropy loss."""

    tensors: ClassVar[int] = 4

    name: Literal["perceptron"]
    hidden: Count = Field(description="hidden units")


class ConvNetModel(Strict):
    """The non-convex paper's network for CIFAR-10: two convolutions and three dense layers, cross-entropy loss."""

    tensors: ClassVar[int] = 10

    name: Literal["convnet"]
    workspace_mb: Count = Field(256, description="temporary memory of a gradient, in MB; a GPU is faster with more")


ModelConfig = Annotated[
    LinearModel
    | LogisticModel
    | SoftmaxModel
    | PerceptronModel
    | ConvNetModel
    | HingeModel
    | AbsoluteModel
    | SigmoidModel,
    Field(discriminator="name"),
]


class AlgorithmOptions(Strict):
    """What an experiment says of one algorithm; anything not said is the experiment's."""

    private: Literal["both", "private", "non_private"] = Field(
        "both", description="train the private form, the baseline without noise, or both"
    )
    stepsizes: Grid | None = Field(None, description="the algorithm's own step sizes")
    clips: list[PositiveOrInf] | None = Field(None, min_length=1, description="the algorithm's own clip thresholds")
    phase_lengths: list[Count] | None = Field(
        None, min_length=1, description="rounds of a phase: q of FedProx-SPIDER, Q of Prox-SVRG"
    )
    noise: Literal["moments", "theorem", "calibrated"] | Positive = Field(
        "moments",
        description="moments form, the theorem's sigma^2, or sigma / L (minibatch, Prox and SDP algorithms); "
        "calibrated: the least that delivers the claimed epsilon (any algorithm)",
    )
    restarts: Count = Field(2, description="S of Prox-PL-SVRG: runs that start from an iterate of the one before")
    mu: float = Field(0.0, ge=0, description="strong convexity: weights of the average, steps of accelerated SGD")
    regularisation: float = Field(0.0, ge=0, description="lambda of accelerated SGD's added lambda/2 norm(w)^2")
    stages: list[StageOptions] = Field(default=[], description="stages of accelerated SGD; default: one")
    schedule: str | None = Field(
        None, description="theorem that gives rounds (at most R), K, sigma, steps and output, as in theorem-2.1"
    )
    constants: Constants | None = Field(None, description="what the schedule's theorem asks for")

    _grid = field_validator("clips", "phase_lengths")(_distinct)


class Readings(Strict):
    """Choices where the papers and the released programs are silent or at odds; see the README."""

    stepsize_grid: Literal["as_given", "linear", "exponential"] = Field(
        "as_given", description="spacing of every step size grid; as_given: each grid's own"
    )
    spider_q1_noise: Literal["own", "minibatch"] = Field(
        "own", description="noise of FedProx-SPIDER at q = 1: its own formula, or MB-SGD's"
    )
    records: Literal["equal", "own"] = Field(
        "equal", description="n of unequal silos: the smallest for all, or each its own"
    )
    server_update: Literal["mean", "sum"] = Field("mean", description="the server averages messages, or adds them up")
    log_term: Literal["paper", "1/delta", "2/delta"] = Field(
        "paper", description="log term of MB-SGD's moments-form noise; paper: the experiment's log_term"
    )
    batch: Literal["eps_max", "per_eps"] = Field("eps_max", description="K from batch_epsilon, or from each epsilon")
    fed_spider_releases: Literal["R", "2R-1"] = Field("R", description="releases the noise of Fed-SPIDER is made for")
    resample: bool = Field(False, description="draw records with replacement before splitting (train and test overlap)")
    standardise: Literal["train", "all"] = Field(
        "train", description="records that standardisation and PCA are fitted on"
    )
    output: Literal["last", "mean_of_last_8", "own"] = Field(
        "last", description="iterate that is evaluated; own: what the paper's algorithm returns (weighted average)"
    )
    clipping: Literal["record", "per_tensor", "batch_mean"] = Field(
        "record", description="what is clipped; per_tensor and batch_mean are not private as claimed"
    )
    noise: Literal["paper", "calibrated"] = Field(
        "paper", description="noise by the papers' formulas, or the least that delivers the claimed epsilon"
    )
    summation: Literal["ideal", "shuffled"] = Field(
        "ideal", description="sums of the SDP algorithms: Gaussian by a trusted party, or the shuffle protocol P_vec"
    )
    clip_rule: Literal["grid", "max_norm"] = Field(
        "grid", description="clip thresholds; max_norm: twice the longest training record, hence not private as claimed"
    )


class Alternative(Readings):
    """Readings that are run beside the default ones."""

    algorithms: list[str] | None = Field(
        None, min_length=1, description="algorithms that are run so; default: all that a reading speaks to"
    )


# Readings that speak to some algorithms only; the others are not trained again for them.
SPEAKS_TO = {
    "log_term": {"minibatch_sgd", "accelerated_minibatch_sgd", "fedprox_spider", "sdp_fedprox_spider"},
    "clipping": {
        *("minibatch_sgd", "accelerated_minibatch_sgd", "fedprox_spider", "fed_spider", "sdp_fedprox_spider"),
        *("prox_sgd", "prox_svrg", "prox_pl_svrg", "sdp_prox_sgd", "sdp_prox_svrg", "sdp_prox_pl_svrg"),
    },
    "spider_q1_noise": {"fedprox_spider", "sdp_fedprox_spider"},
    "fed_spider_releases": {"fed_spider"},
    "summation": {"sdp_prox_sgd", "sdp_prox_svrg", "sdp_prox_pl_svrg", "sdp_fedprox_spider"},
}


class Report(Strict):
    """How a point is chosen and on which runs it is reported."""

    selection: SELECTION = Field(
        "pooled", description="smallest training loss by the mean over trials, or in each trial"
    )
    evaluation: EVALUATION = Field(
        "fresh", description="train the chosen point again, or report the runs that chose it"
    )


class Experiment(Strict):
    """One experiment: data, silos, model, settings, grids and algorithms."""

    title: str = Field(description="a line for figures and the report")
    paper: str = Field("", description="the figure that this replicates")
    dataset: str = Field(description="a registered data set")
    label: Literal["class", "parity", "target"] = Field("class", description="what is predicted")
    silos: Partitioning
    preprocess: Preprocessing = Preprocessing()
    model: ModelConfig
    radius: Positive | None = Field(
        None, description="radius D of the ball around 0 that weights are projected onto; default: none"
    )
    regulariser: Penalty | None = Field(
        None, description="convex part f1 of the objective, dealt with by its proximal map; default: none"
    )
    settings: list[Setting] = Field(min_length=1)
    epsilons: list[Positive] = Field(min_length=1, description="claimed epsilon of the private algorithms")
    delta: Annotated[float, Field(gt=0, lt=1)] | Literal["1/n^2"] = Field("1/n^2", description="delta, or 1/n^2")
    trials: Count = Field(description="random train/test splits")
    batch_epsilon: Positive = Field(
        description="epsilon in K = floor(n sqrt(epsilon) / (2 sqrt(R))) under batch: eps_max"
    )
    batch_records: Count | None = Field(None, description="K given directly in place of the formula")
    log_term: Literal["1/delta", "2/delta"] = Field(
        "1/delta", description="log term of MB-SGD's noise as the paper has it"
    )
    stepsizes: Grid
    clips: list[PositiveOrInf] = Field(min_length=1, description="clip thresholds L; .inf for none (non-private only)")
    phase_lengths: list[Count] = Field(
        default=[1], min_length=1, description="rounds of a phase: q of FedProx-SPIDER, Q of Prox-SVRG"
    )
    algorithms: dict[str, AlgorithmOptions] = Field(min_length=1)
    readings: Readings = Readings()
    alternatives: list[Alternative] = Field(default=[], description="readings that are run beside the default ones")
    reports: list[Report] = Field(
        default=[Report()], min_length=1, description="the first is the default row of a table"
    )
    allow_unproven: bool = Field(
        False, description="run private algorithms that deliver a larger epsilon than they claim; their rows are marked"
    )
    trials_per_job: Count | None = Field(None, description="trials in one training job; default: the run's")
    device: Device | None = Field(None, description="the experiment's own device; default: the run's")

    _grid = field_validator("epsilons", "clips", "phase_lengths", "reports")(_distinct)

    @field_validator("settings")
    @classmethod
    def _distinct_settings(cls, values: list[Setting]) -> list[Setting]:
        if len({setting.name for setting in values}) != len(values):
            raise ValueError("settings (M, R) must be distinct")
        return values

    @field_serializer("alternatives")
    def _as_given(self, alternatives: list[Alternative]) -> list[dict[str, Any]]:
        # What is left out of an alternative is the experiment's reading, not the model's default.
        return [one.model_dump(mode="json", exclude_unset=True) for one in alternatives]

    def variants(self) -> dict[str, Readings]:
        """Label of each reading that is run -> its options; the default's label is empty."""
        found = {"": self.readings}
        for alternative in self.alternatives:
            given = self._changed(alternative)
            found[self._label(given)] = Readings(**{**self.readings.model_dump(), **given})
        return found

    def trained_as(self, algorithm: str, label: str) -> str | None:
        """Label of the reading whose runs stand for `label`: the default's where it says nothing to `algorithm`.

        None where the algorithm is not run under that reading.
        """
        for alternative in self.alternatives if label else ():
            given = self._changed(alternative)
            if self._label(given) == label:
                if alternative.algorithms is not None and algorithm not in alternative.algorithms:
                    return None
                return label if any(algorithm in SPEAKS_TO.get(key, {algorithm}) for key in given) else ""
        return ""

    def _changed(self, alternative: Alternative) -> dict[str, Any]:
        """The readings in which an alternative differs from the default ones."""
        default = self.readings.model_dump()
        given = alternative.model_dump(exclude_unset=True, exclude={"algorithms"})
        return {key: value for key, value in given.items() if value != default[key]}

    def _label(self, changed: dict[str, Any]) -> str:
        return ";".join(f"{key}={_short(value)}" for key, value in changed.items())


class DataConfig(Strict):
    """Where data files come from."""

    mirror: str | None = Field(None, description="folder or address tried before the official one (SILODP_DATA_MIRROR)")
    cache: str | None = Field(None, description="folder of downloaded files (SILODP_DATA_CACHE)")


class Bounds(Strict):
    """How the papers' bounds are checked against runs (target `bounds`)."""

    scale: Literal["smoke", "default", "paper"] = Field(
        "default", description="trials: smoke has a tenth of the default's, paper ten times as many"
    )


class Run(Strict):
    """A run file."""

    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] = Field(
        description="name of the results folder"
    )
    seed: int = Field(2023, ge=0, description="the only entropy of a run")
    device: Device = Field("cpu", description="cpu, cuda or cuda:<index>")
    dtype: Literal["float32", "float64"] = Field("float32", description="precision of training")
    threads: Count = Field(1, description="threads of one job; jobs run side by side")
    trials_per_job: Count = Field(5, description="trials trained in one job")
    audit_runs: Annotated[int, Field(ge=4)] = Field(
        100, description="runs of an audit with the canary, and as many without; half of them choose the threshold"
    )
    memory_mb: Annotated[int, Field(ge=256)] = Field(4000, description="memory bound of one job")
    runtime_minutes: Count = Field(240, description="time limit of one training job on a cluster, in minutes")
    data: DataConfig = DataConfig()
    bounds: Bounds = Bounds()
    targets: list[Literal["bounds", "checkins"]] = Field(
        [], description="made with the rest, for claims and page: bounds against runs, random check-ins"
    )
    experiments: dict[str, dict[str, Any] | None] = Field(
        min_length=1, description="experiment -> overrides of its file"
    )


def _short(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
