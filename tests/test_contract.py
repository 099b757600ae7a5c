"""What everything that is registered must offer: whoever adds an algorithm, a model or a dataset has these tests."""

import dataclasses
import importlib
import inspect
import typing

import dp_accounting
import numpy as np
import pytest
import small
import textbook
import torch
from small import ALGORITHM_CASES, DTYPES, MODEL_CASES, Point

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.config.models import ModelConfig
from silodp.datasets import DATASETS, labels
from silodp.federation.models import MODELS
from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.plan import Budget, Release

ALL_MODELS = MODEL_CASES | small.KINKED_CASES
BUDGET = Budget(200, 6, 2.0, 1e-4, 4.0)


def made(name, rounds=6, **options):
    return ALGORITHMS[name].with_options({"rounds": rounds, **options})


def tensors(state):
    """A state's tensors, by name."""
    return {key: value for key, value in vars(state).items() if value is not None}


# Algorithms


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_is_a_frozen_class_in_the_file_of_its_name(name):
    kind = ALGORITHMS[name]
    assert issubclass(kind, Algorithm)
    assert kind.name == name
    assert kind.label
    assert kind.__module__ == f"silodp.algorithms.{name}"
    assert dataclasses.is_dataclass(kind)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made(name).rounds = 9
    assert hash(made(name)) == hash(made(name))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_says_what_it_does_and_where_it_is_from(name):
    kind = ALGORITHMS[name]
    module = inspect.getmodule(kind)
    assert "paper" in module.__doc__
    assert kind.__doc__.strip()
    assert kind.plan.__doc__, "the plan's formulas and their source"
    assert "σ" in kind.plan.__doc__
    assert "K" in kind.plan.__doc__
    own = [field.name for field in dataclasses.fields(kind) if field.name != "rounds"]
    assert all(field in kind.__doc__ for field in own), "each parameter is explained"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_plan_is_accepted_by_the_accountant(name):
    plan = made(name, phase_length=2).plan(BUDGET)
    assert plan.algorithm == name
    assert plan.private
    assert all(release.noise > 0 for release in plan.releases if release.count)
    assert isinstance(plan.event, dp_accounting.DpEvent)
    result = delivered_epsilon(plan, 1e-4)
    assert 0 < result.lower <= result.estimate <= result.upper < np.inf
    bare = made(name).plan(dataclasses.replace(BUDGET, epsilon=None))
    assert delivered_epsilon(bare, 1e-4).upper == np.inf


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_plan_draws_no_more_records_than_there_are_and_at_least_one(name):
    for n, rounds, epsilon in [(1, 1, 0.1), (3, 50, 0.1), (10, 2, 1000.0), (1000, 7, 24.0)]:
        plan = made(name, rounds).plan(Budget(n, rounds, 1.0, 1e-5, epsilon))
        assert all(1 <= release.drawn <= n for release in plan.releases)
        assert all(isinstance(release.drawn, int) for release in plan.releases)
        assert all(release.count >= 0 for release in plan.releases)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("model", MODEL_CASES)
def test_a_round_runs_on_a_tiny_federation_and_leaves_its_state_alone(name, model):
    case, points = MODEL_CASES[model], [Point(1.0, 0.1, 1.0), Point(None, 0.1, 1.0)]
    silos, network, method = small.records(case, (3, 2), torch.float64), case.model(), made(name, phase_length=2)
    federation = small.federation(network, silos, small.plans(method, points, (3, 2)), points, 1)
    state = method.start(small.start(network, torch.float64).expand(2, -1).clone())
    assert dataclasses.is_dataclass(state)
    assert state.w.shape == (2, network.size)
    for r in range(3):
        before = tensors(state)
        kept = {key: value.clone() for key, value in before.items()}
        after = method.round(r, state, federation)
        assert type(after) is type(state)
        assert tensors(after).keys() == before.keys()
        assert all(torch.equal(before[key], kept[key]) for key in kept)
        values = tensors(after).values()
        assert all(value.shape == (2, network.size) and torch.isfinite(value).all() for value in values)
        state = after
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.w = None
    assert not torch.equal(state.w[0], state.w[1])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_state_holds_one_row_for_each_point(name):
    """So that points can leave: every tensor of the state is cut by the same mask."""
    case, points = MODEL_CASES["linear"], [Point(1.0, 0.1, 1.0), Point(None, 0.1, 1.0), Point(3.0, 0.2, 1.0)]
    silos, network, method = small.records(case, (3, 2), torch.float64), case.model(), made(name, phase_length=2)
    plans, first = small.plans(method, points, (3, 2)), small.start(network, torch.float64)
    keep = torch.tensor([True, False, True])
    whole, cut = (small.federation(network, silos, plans, points) for _ in range(2))
    state = method.round(0, method.start(first.expand(3, -1).clone()), whole)
    state = method.round(1, state, whole)
    small_state = method.round(0, method.start(first.expand(3, -1).clone()), cut)
    cut.keep(keep)
    small_state = method.round(1, small_state.keep(keep), cut)
    for key, value in tensors(state).items():
        torch.testing.assert_close(tensors(small_state)[key], value[keep], rtol=1e-13, atol=0)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_only_messages_leave_a_silo(name, monkeypatch):
    """Nothing of an algorithm reads a silo's records: with messages replaced it runs on silos that hold none."""
    case, points = MODEL_CASES["linear"], [Point(1.0, 0.1, 1.0)]
    method, network = made(name, phase_length=2), case.model()
    nothing = [(None, None), (None, None)]
    monkeypatch.setattr("silodp.federation.messages.Messages.message", lambda self, w, *_, **__: torch.ones_like(w))
    monkeypatch.setattr("silodp.federation.messages.Messages.total", lambda self, w, *_, **__: torch.ones_like(w))
    monkeypatch.setattr("silodp.federation.messages.Messages.local_model", lambda self, w, *_, **__: w - 0.1)
    like = small.records(case, (2, 2), torch.float64)
    federation = small.federation(network, like, small.plans(method, points, (2, 2)), points)
    federation.messages.silos = nothing
    assert len(small.iterates(method, federation, small.start(network, torch.float64), 1)) == 6


def test_releases_and_budgets_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BUDGET.epsilon = 100.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        Release("gradient", 1, 1, 1.0).noise = 0.0


# Models


@pytest.mark.parametrize("name", sorted(set(MODELS) - small.IMAGE_MODELS))
def test_a_model_says_what_it_computes(name):
    (case,) = [case for case in ALL_MODELS.values() if case.registered == name][:1]
    model = case.model()
    assert inspect.getmodule(type(model)).__doc__.strip()
    assert type(model).__doc__.strip()
    assert MODELS[name].__doc__.strip()
    assert dataclasses.is_dataclass(model)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.features = 3
    assert hash(model) == hash(case.model())


@pytest.mark.parametrize("config", typing.get_args(typing.get_args(ModelConfig)[0]), ids=lambda one: one.__name__)
def test_the_configuration_knows_how_many_tensors_a_model_has(config):
    (name,) = typing.get_args(config.model_fields["name"].annotation)
    case = next((case for case in ALL_MODELS.values() if case.registered == name), None)
    model = case.model() if case else MODELS[name](3 * 32 * 32, 10)
    assert config.tensors == len(model.blocks)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_a_model_says_what_an_output_that_is_no_number_costs(name):
    case = ALL_MODELS[name]
    assert case.model().worst_error == (np.inf if case.classes is None else 1.0)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_blocks_cover_the_flat_vector_in_order(name):
    model = ALL_MODELS[name].model()
    position = 0
    for block in model.blocks:
        assert block.start == position
        position = block.stop
    assert position == model.size
    assert len({block.name for block in model.blocks}) == len(model.blocks)
    assert all(block.stop - block.start == np.prod(block.shape) for block in model.blocks)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MODEL_CASES)
def test_a_models_gradients_are_those_of_its_own_losses(name, dtype):
    """Autograd through the model's own outputs and losses, record by record; where a kernel is, through its double."""
    case = MODEL_CASES[name]
    model, ((x, y),) = case.model(), small.records(case, (6,), DTYPES[dtype])
    w = small.start(model, DTYPES[dtype])
    forward = (lambda w, x: model._forward(w, x)[1]) if hasattr(model, "_forward") else model.outputs
    clip = torch.tensor([0.8], dtype=DTYPES[dtype])
    wanted = torch.zeros_like(w)
    for i in range(6):
        leaf = w.clone().requires_grad_()
        model.losses(forward(leaf[None], x[i : i + 1]), y[i : i + 1]).sum().backward()
        wanted += textbook.clip_to(leaf.grad, 0.8)
    found = model.clipped_gradient_sum(w[None], x, y, clip)[0]
    assert textbook.relative_error(found, wanted) <= small.TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MODEL_CASES)
def test_shapes_and_precision_are_kept(name, dtype):
    case = MODEL_CASES[name]
    model, ((x, y),) = case.model(), small.records(case, (5,), DTYPES[dtype])
    w = small.start(model, DTYPES[dtype]).expand(3, -1).clone()
    one = torch.ones(3, dtype=DTYPES[dtype])
    outputs = model.outputs(w, x)
    assert outputs.shape[:2] == (3, 5)
    found = [
        outputs,
        model.losses(outputs, y),
        model.errors(outputs, y),
        model.clipped_gradient_sum(w, x, y, one),
        model.local_steps(w, x, y, one, one, one * 0, None),
    ]
    assert [tuple(tensor.shape) for tensor in found[1:]] == [(3, 5), (3, 5), (3, model.size), (3, model.size)]
    assert {tensor.dtype for tensor in found} == {DTYPES[dtype]}


# Datasets


@pytest.mark.parametrize("name", DATASETS)
def test_a_dataset_declares_itself_in_the_file_of_its_name(name):
    dataset = DATASETS[name]
    module = importlib.import_module(f"silodp.datasets.{name}")
    assert module.__doc__.strip()
    assert module.DATASET is dataset
    assert dataset.title
    assert dataset.licence
    assert dataset.citation
    assert (dataset.class_counts is None) == (dataset.task == "regression")
    if dataset.class_counts:
        assert sum(dataset.class_counts) == dataset.records
        assert dataset.counts(official_test=False) == dataset.class_counts
        assert sum(dataset.counts(official_test=True)) == dataset.records - sum(dataset.test_counts or ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.records = 3


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.embedded])
def test_an_embedded_dataset_is_what_it_declares(name):
    dataset = DATASETS[name]
    data = dataset.load()
    assert len(data.x) == len(data.y) == dataset.records
    assert np.isfinite(data.x).all()
    if dataset.task == "classification":
        assert np.bincount(data.y).tolist() == list(dataset.class_counts)
        assert data.classes == len(dataset.class_counts)
        assert labels(data, "class") is data.y
        assert set(labels(data, "parity")) <= {0, 1}
    else:
        assert data.classes is None
        assert labels(data, "target") is data.y
        assert np.isfinite(data.y).all()
    again = dataset.load()
    np.testing.assert_array_equal(again.x, data.x)
    np.testing.assert_array_equal(again.y, data.y)


def test_every_case_of_these_tests_is_registered():
    assert {case.registered for case in ALL_MODELS.values()} == set(MODELS) - small.IMAGE_MODELS
    assert {case.registered for case in ALGORITHM_CASES.values()} == set(ALGORITHMS)
