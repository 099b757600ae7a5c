"""Small models, silos, federations and experiments that several tests share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import textbook
import torch
from torch import Tensor

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.config.errors import project_root
from silodp.config.experiment import Experiment
from silodp.config.run_keys import Run
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.simulated import SiloFederation
from silodp.models import MODELS
from silodp.models.base import Model
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.streams import Streams

FEATURES = 4
DTYPES = {"float64": torch.float64, "float32": torch.float32}
# How far the stack may be from the textbook, relative to the largest entry.
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
STREAMS = Streams(7).child("small", 0)


@dataclass(frozen=True)
class ModelCase:
    """A registered model at a small size, and the plain loss that it must agree with."""

    registered: str
    classes: int | None
    options: tuple[tuple[str, int], ...]
    loss: textbook.Loss

    def model(self, features: int = FEATURES) -> Model:
        return MODELS[self.registered](features, self.classes, **dict(self.options))


MODEL_CASES = {
    "linear": ModelCase("linear", None, (), textbook.linear),
    "logistic": ModelCase("logistic", 2, (), textbook.logistic),
    "sigmoid": ModelCase("sigmoid", 2, (), textbook.sigmoid),
    "softmax": ModelCase("softmax", 3, (), textbook.softmax(3)),
    "perceptron-2": ModelCase("perceptron", 2, (("hidden", 3),), textbook.perceptron(3, 2)),
    "perceptron-3": ModelCase("perceptron", 3, (("hidden", 3),), textbook.perceptron(3, 3)),
}

# Models that take images have tests of their own (tests/federation).
IMAGE_MODELS = {"convnet"}


# Losses with kinks: their own tests are in tests/models/test_nonsmooth.py.
KINKED_CASES = {
    "absolute": ModelCase("absolute", None, (), textbook.absolute),
    "hinge": ModelCase("hinge", 2, (), textbook.hinge),
    "l1": ModelCase("l1", None, (), textbook.l1),
}


@dataclass(frozen=True)
class AlgorithmCase:
    """A registered algorithm with its options, and the plain loop that it must agree with.

    `once` says that no record is drawn twice in a run.
    """

    registered: str
    options: dict[str, Any]
    run: Callable[..., list[Tensor]]
    once: bool

    def make(self, rounds: int, **more: Any) -> Algorithm:
        return ALGORITHMS[self.registered].with_options({"rounds": rounds, **self.options, **more})


def _case(name: str, run: Callable, once: bool = False, **options: Any) -> tuple[str, AlgorithmCase]:
    """A case by its name: that of the algorithm, with -word where an algorithm has several."""
    return name, AlgorithmCase(name.partition("-")[0], options, run, once)


def _restarted_svrg(problem: textbook.Problem, w: Tensor, rounds: int) -> list[Tensor]:
    return textbook.prox_svrg(problem, w, rounds, 2, -(-rounds // 2))


CORRELATED = (1, -1 / 2, -1 / 8, -1 / 16, -5 / 128)
# Where silos keep something of their own.
OWN = {"silos": 3, "phase_length": 2}
ALGORITHM_CASES = dict(
    (
        _case("minibatch_sgd", textbook.minibatch_sgd),
        # On a federation it is minibatch SGD; training hands it one silo at a time.
        _case("silo_only", textbook.minibatch_sgd),
        _case("local_sgd", textbook.local_sgd),
        *(_case(f"fedprox_spider-q{q}", partial(textbook.fedprox_spider, q=q), phase_length=q) for q in (1, 2, 3)),
        _case("fed_spider", textbook.fed_spider),
        _case("accelerated_minibatch_sgd", textbook.accelerated),
        _case(
            "accelerated_minibatch_sgd-regularised",
            partial(textbook.accelerated, mu=0.5, added=0.2),
            mu=0.3,
            regularisation=0.2,
        ),
        _case("one_pass_accelerated_sgd", textbook.accelerated, once=True),
        *(
            _case(form + name, run, once, **options, **summed)
            for form, summed in (("", {}), ("sdp_", {"silos": 3, "cohort": 2}))
            for name, run, once, options in (
                ("prox_sgd", textbook.minibatch_sgd, True, {}),
                ("prox_svrg", partial(textbook.prox_svrg, steps=2), False, {"phase_length": 2}),
                ("prox_pl_svrg", _restarted_svrg, False, {"phase_length": 2, "restarts": 2}),
            )
        ),
        _case("sdp_fedprox_spider", partial(textbook.fedprox_spider, q=3), phase_length=3, silos=3, cohort=2),
        _case("minibatch_sgd_momentum", textbook.minibatch_sgd_momentum),
        _case("minibatch_sgd_adam", textbook.minibatch_sgd_adam),
        _case("minibatch_sgd_correlated", partial(textbook.minibatch_sgd, mixing=CORRELATED[:3]), once=True, terms=3),
        _case("dp_mu2", partial(textbook.dp_mu2, mixing=(1,)), once=True),
        _case("dp_mu2_difference", partial(textbook.dp_mu2, mixing=(1, -1)), once=True),
        _case("dp_mu2_correlated", partial(textbook.dp_mu2, mixing=CORRELATED), once=True),
        _case("mr_mtl", partial(textbook.mr_mtl, pull=1 / 2), **OWN),
        *(
            _case(f"dp_scaffold-{name}", partial(textbook.dp_scaffold, steps=2, warm=warm), **OWN, warm_start=warm)
            for name, warm in (("cold", False), ("warm", True))
        ),
        _case("localised_accelerated", textbook.localised_accelerated, once=True),
        # Its own noise needs hundreds of silos.
        _case("shuffled_minibatch_sgd", textbook.minibatch_sgd, noise=0.4),
    )
)

# (model, algorithm) compared with the textbook: every algorithm on a model with a curve and one with layers,
# every model under messages of one step and of several.
PAIRS = [
    (model, name)
    for model in MODEL_CASES
    for name in ALGORITHM_CASES
    if model in ("logistic", "perceptron-3") or name in ("minibatch_sgd", "local_sgd")
]


@dataclass(frozen=True)
class Point:
    """A point of the grid; epsilon None is the baseline without noise."""

    epsilon: float | None
    stepsize: float
    clip: float


def records(case: ModelCase, sizes: Sequence[int], dtype: torch.dtype, seed: int = 0, features: int = FEATURES) -> list:
    """(x, y) of each silo, Gaussian features and labels that depend on them."""
    generator = np.random.default_rng(seed)
    silos = []
    for shift, size in enumerate(sizes):
        x = generator.standard_normal((size, features)) + 0.3 * shift
        score = x @ generator.standard_normal(features) + generator.standard_normal(size)
        y: np.ndarray = score
        if case.classes is not None:
            y = np.digitize(score, np.linspace(-1, 1, case.classes + 1)[1:-1])
        labels = torch.from_numpy(y)
        labels = labels if case.registered in ("softmax", "perceptron") else labels.to(dtype)
        silos.append((torch.from_numpy(x).to(dtype), labels))
    return silos


def plans(
    algorithm: Algorithm, points: Sequence[Point], sizes: Sequence[int], **budget: Any
) -> list[list[PrivacyPlan]]:
    """Plans of every point and silo, each silo by its own number of records."""
    options = {"delta": 0.02, "batch_epsilon": 9.0} | budget
    return [
        [algorithm.plan(Budget(size, algorithm.rounds, point.epsilon, **options)) for size in sizes] for point in points
    ]


def federation(
    model: Model,
    silos: list[tuple[Tensor, Tensor]],
    plans_: list[list[PrivacyPlan]],
    points: Sequence[Point],
    cohort: int | None = None,
    streams: Streams = STREAMS,
    **more: Any,
) -> SiloFederation:
    """A federation whose messages draw from `streams` below "messages"."""
    like = silos[0][0]
    return SiloFederation(
        Messages(model, silos, streams.child("messages")),
        plans_,
        torch.tensor([point.stepsize for point in points], dtype=torch.float64).to(like),
        torch.tensor([point.clip for point in points], dtype=torch.float64).to(like),
        len(silos) if cohort is None else cohort,
        streams,
        **more,
    )


def sent(
    messages: Messages,
    weights: Tensor,
    silo: int,
    records: int,
    clip: Tensor,
    noise_scale: Tensor,
    *,
    round: int,
    kind: str = "gradient",
    previous: Tensor | None = None,
    **how: Any,
) -> Tensor:
    """One message; `how` are the sampler and the clipping of its release."""
    release = Release(kind, 1, records, 0.0, **how)
    return messages.message(Query(weights, round, kind, previous), silo, release, clip, noise_scale)


def stepped(
    messages: Messages,
    weights: Tensor,
    silo: int,
    steps: int,
    clip: Tensor,
    noise: Tensor,
    stepsize: Tensor,
    round: int,
) -> Tensor:
    """The model after a silo's local steps."""
    release = Release("step", steps, 1, 0.0, steps=steps)
    return messages.local_model(Query(weights, round, "step"), silo, release, clip, noise, stepsize)


def problem(
    loss: textbook.Loss,
    silos: list[tuple[Tensor, Tensor]],
    plans_: list[PrivacyPlan],
    point: Point,
    cohort: int | None = None,
    streams: Streams = STREAMS,
    **more: Any,
) -> textbook.Problem:
    """The same federation as the textbook sees it, at one point."""
    noisy = point.epsilon is not None
    return textbook.Problem(
        loss,
        [(x.double(), y) for x, y in silos],
        streams.child("messages"),
        streams,
        np.float32 if silos[0][0].dtype == torch.float32 else np.float64,
        point.stepsize,
        point.clip,
        [{release.kind: release.records * release.steps for release in plan.releases} for plan in plans_],
        [{release.kind: release.noise * point.clip if noisy else 0.0 for release in plan.releases} for plan in plans_],
        len(silos) if cohort is None else cohort,
        once={release.kind for release in plans_[0].releases if release.sampler == "disjoint"},
        whole={release.kind for release in plans_[0].releases if release.sampler == "all"},
        subset={release.kind for release in plans_[0].releases if release.sampler == "subset"},
        parts=[{release.kind: release.part for release in plan.releases if release.part} for plan in plans_],
        **more,
    )


def start(model: Model, dtype: torch.dtype, seed: int = 5) -> Tensor:
    """A starting point (d,) at which no model is degenerate."""
    return torch.from_numpy(0.5 * np.random.default_rng(seed).standard_normal(model.size)).to(dtype)


def iterates(algorithm: Algorithm, federation_: SiloFederation, first: Tensor, points: int) -> list[Tensor]:
    """The models (G, d) after every round."""
    state = algorithm.start(first.expand(points, -1).clone())
    found = []
    for r in range(algorithm.rounds):
        state = algorithm.round(r, state, federation_)
        found.append(state.w.clone())
    return found


def experiment(**changes: Any) -> Experiment:
    """Breast cancer with a small perceptron and every algorithm, in seconds; top-level keys may be replaced."""
    keys: dict[str, Any] = {
        "title": "small",
        "dataset": "wbcd",
        "label": "class",
        "silos": {"scheme": "by_class"},
        "model": {"name": "perceptron", "hidden": 3},
        "settings": [{"M": 2, "R": 3}],
        "epsilons": [2.0, 8.0],
        "trials": 3,
        "allow_unproven": True,
        "batch_epsilon": 1.0,
        "log_term": "2/delta",
        "stepsizes": {"low": -3, "high": 0, "points": 2},
        "clips": [0.5, 5.0],
        "phase_lengths": [1, 2],
        "algorithms": {name: {"noise": 0.4} if name.startswith("shuffled") else {} for name in ALGORITHMS},
    }
    return Experiment.model_validate(keys | changes)


def run(**changes: Any) -> Run:
    """A run file's own keys."""
    return Run.model_validate({"run": "small", "experiments": {"small": None}} | changes)


ROOT = project_root()
