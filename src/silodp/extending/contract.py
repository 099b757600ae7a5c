"""What everything that is registered must offer, as plain checks: for the package's own tests and for plug-ins.

A check raises `Broken` with what is wrong. None of them says that an algorithm is private as it claims: that it sends
what its plan releases is what `silodp audit` tests.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from traceback import format_exception_only
from typing import Any

import numpy as np
import torch

from silodp.algorithms.base import Algorithm, State
from silodp.datasets import Dataset
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.simulated import SiloFederation
from silodp.models import MODELS
from silodp.privacy.plan import Budget
from silodp.privacy.true_epsilon import upper_end
from silodp.streams import Streams

Kind = type[Algorithm]
BUDGET = Budget(200, 6, 2.0, 1e-4, 4.0)
# (ε, η, L) of the stack's points; ε None is the form without noise.
_POINTS = [(1.0, 0.1, 1.0), (None, 0.1, 1.0), (3.0, 0.2, 1.0)]
_SIZES = (3, 2)
_MODELS: dict[str, tuple[int | None, dict[str, int]]] = {
    "linear": (None, {}),
    "logistic": (2, {}),
    "softmax": (3, {}),
    "perceptron": (2, {"hidden": 3}),
}


class Broken(ValueError):
    """What a registered entry lacks, in one line."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


def make_algorithm(kind: Kind, rounds: int = 6, phase_length: int = 2) -> Algorithm:
    return kind.with_options({"rounds": rounds, "phase_length": phase_length, "silos": 2, "cohort": 1})


def has_a_plan(kind: Kind) -> None:
    """The accountant takes the plan: noise in every release at a finite ε, none and no guarantee without one."""
    plan = make_algorithm(kind).plan(BUDGET)
    require(plan.algorithm == kind.name, f"the plan is of {plan.algorithm!r}: must be of {kind.name!r}")
    require(bool(plan.releases) and plan.private, "the plan must release something, with noise")
    noisy = all(release.noise > 0 for release in plan.releases if release.count)
    require(noisy, "every release of the plan must have noise at a finite epsilon")
    upper = upper_end([plan])
    require(0 < upper < math.inf, f"true epsilon up to {upper}: must be positive and finite")
    bare = make_algorithm(kind).plan(dataclasses.replace(BUDGET, epsilon=None))
    require(not any(release.noise for release in bare.releases), "without epsilon the plan must have no noise")
    require(upper_end([bare]) == math.inf, "without noise nothing must be guaranteed")


def leaves_states_alone(kind: Kind) -> None:
    """Rounds on two tiny silos, for every kind of model: new frozen states of the same shape, all numbers finite."""
    for name in _MODELS:
        method, federation, state = _started(kind, name, cohort=1)
        require(isinstance(state, State) and dataclasses.is_dataclass(state), "start must give a State")
        shape = tuple(state.w.shape)
        for r in range(3):
            before = {key: value.clone() for key, value in _tensors(state).items()}
            after = method.round(r, state, federation)
            require(type(after) is type(state), "round must give a state of the same class as start")
            require(_tensors(after).keys() == before.keys(), "a state must keep the same tensors from round to round")
            same = all(torch.equal(value, before[key]) for key, value in _tensors(state).items())
            require(same, "round must not change the state that it is given")
            for key, value in _tensors(after).items():
                fits = value.shape in (shape, (shape[0], len(_SIZES), shape[1]))
                require(fits, f"{name}: {key} is {tuple(value.shape)}: must be (G, d) = {shape}, or (G, N, d)")
                require(bool(torch.isfinite(value).all()), f"{name}: {key} is not finite after round {r}")
            state = after
        require(type(state).__dataclass_params__.frozen, "a state must be frozen")  # type: ignore[attr-defined]
        require(method.output(state).shape == shape, "output must give one model for each point, (G, d)")
        require(method.models(state).shape[0] == shape[0], "models must give one or N models for each point")
        require(not torch.equal(state.w[0], state.w[1]), "noise must change the model")


def keeps_rows_apart(kind: Kind) -> None:
    """Points may leave the stack: a state has one row for each, and what is left goes on as before."""
    keep, states = torch.tensor([True, False, True]), []
    for cut in (False, True):
        method, federation, state = _started(kind)
        state = method.round(0, state, federation)
        if cut:
            federation.keep_points(keep)
            state = state.keep_points(keep)
        states.append(_tensors(method.round(1, state, federation)))
    whole, smaller = states
    for key, value in smaller.items():
        alike = torch.allclose(value, whole[key][keep], rtol=1e-13, atol=0)
        require(value.shape[0] == 2 and alike, f"{key}: a point must not depend on the others of the stack")


class _Blind(Messages):
    """Messages that look at no record."""

    def message(self, query: Query, *_: Any) -> torch.Tensor:
        return torch.ones_like(query.weights)

    def total(self, query: Query, *_: Any) -> torch.Tensor:
        return torch.ones_like(query.weights)

    def local_model(self, query: Query, *_: Any) -> torch.Tensor:
        return torch.ones_like(query.weights)


def sends_its_plan(kind: Kind) -> None:
    """Over a whole run every message is one that the plan has, with its noise, clip and number."""
    method, federation, state = _started(kind, rounds=12)
    federation.hold_to_plans()
    for r in range(method.rounds):
        state = method.round(r, state, federation)


def sees_messages_only(kind: Kind) -> None:
    """Nothing of an algorithm reads a silo's records: it runs on silos that hold none."""
    method, federation, state = _started(kind, messages=_Blind)
    federation.messages.silos = [(None, None)] * len(_SIZES)  # type: ignore[list-item]
    for r in range(method.rounds):
        state = method.round(r, state, federation)


ALGORITHM_CHECKS: dict[str, Callable[[Kind], None]] = {
    "plan": has_a_plan,
    "states": leaves_states_alone,
    "rows": keeps_rows_apart,
    "messages": sees_messages_only,
    "kept": sends_its_plan,
}


def is_declared(dataset: Dataset) -> None:
    """Title, licence and citation, and numbers of records that add up."""
    for name in ("title", "licence", "citation"):
        require(bool(getattr(dataset, name)), f"{name}: must be given")
    require(
        (dataset.class_counts is None) == (dataset.task == "regression"), "class_counts: for classification, and only"
    )
    if dataset.class_counts:
        require(sum(dataset.class_counts) == dataset.records, "class_counts: must add up to the records")
        left = sum(dataset.counts(official_test=True) or ())
        require(left == dataset.records - sum(dataset.test_counts or ()), "test_counts: must be of the classes")


def is_what_it_declares(dataset: Dataset) -> None:
    """Records as declared, all numbers finite, and the same whenever they are read."""
    data, again = dataset.load(), dataset.load()
    require(len(data.x) == dataset.records, f"records: {len(data.x)} are there: must be {dataset.records}")
    width = data.x.shape[-1] if not dataset.images else int(np.prod(data.x.shape[1:]))
    require(width == dataset.features, f"features: {width} are there: must be {dataset.features}")
    require(bool(np.isfinite(data.x).all()), "x: must be finite")
    if dataset.class_counts is not None:
        found = tuple(np.bincount(data.y).tolist())
        require(found == dataset.class_counts and data.classes == len(found), f"class_counts: {found} are there")
    else:
        require(data.classes is None and bool(np.isfinite(data.y).all()), "y: must be finite targets, classes None")
    same = np.array_equal(data.x, again.x) and np.array_equal(data.y, again.y)
    require(same, "loader: must give the same records every time")


DATASET_CHECKS: dict[str, Callable[[Dataset], None]] = {"declared": is_declared, "records": is_what_it_declares}


def results(entry: Any) -> Iterator[tuple[str, str]]:
    """(check, what is wrong or nothing) of an algorithm's class or a data set; what it raises is wrong too."""
    checks: dict[str, Callable[[Any], None]] = DATASET_CHECKS if isinstance(entry, Dataset) else ALGORITHM_CHECKS
    for name, check in checks.items():
        try:
            check(entry)
        except Broken as error:
            yield name, str(error)
        except Exception as error:
            yield name, " ".join(format_exception_only(error)[-1].split())[:300]
        else:
            yield name, ""


def _started(
    kind: Kind, name: str = "linear", cohort: int = 2, messages: type[Messages] = Messages, rounds: int = 6
) -> tuple[Algorithm, SiloFederation, State]:
    """The algorithm and its first state, in a federation of two silos of a few records with four features."""
    classes, options = _MODELS[name]
    generator, silos = np.random.default_rng(0), []
    for size in _SIZES:
        x = generator.standard_normal((size, 4))
        y = generator.standard_normal(size) if classes is None else generator.integers(0, classes, size)
        target = torch.from_numpy(y)
        silos.append((torch.from_numpy(x), target if name in ("softmax", "perceptron") else target.double()))
    method, model = make_algorithm(kind, rounds), MODELS[name](4, classes, **options)
    streams = Streams(7).child("contract")
    plans = [[method.plan(Budget(n, method.rounds, epsilon, 0.02, 9.0)) for n in _SIZES] for epsilon, _, _ in _POINTS]
    stepsize, clip = (torch.tensor([point[k] for point in _POINTS], dtype=torch.float64) for k in (1, 2))
    federation = SiloFederation(messages(model, silos, streams), plans, stepsize, clip, cohort, streams)
    first = torch.from_numpy(0.5 * generator.standard_normal(model.size))
    return method, federation, method.start(first.expand(len(_POINTS), -1).clone())


def _tensors(state: State) -> dict[str, torch.Tensor]:
    return {key: value for key, value in vars(state).items() if value is not None}
