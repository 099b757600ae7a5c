"""What everything that is registered must offer: whoever adds an algorithm, a model or a dataset has these tests."""

import dataclasses
import importlib
import inspect
import re
import typing
from pathlib import Path

import numpy as np
import pytest
import small
import torch
from pydantic import TypeAdapter
from runfiles import deactivate_plugins
from small import DTYPES, MODEL_CASES

from silodp.algorithms import ALGORITHMS
from silodp.cli import main
from silodp.config.experiment import Experiment
from silodp.config.models import ModelConfig
from silodp.datasets import DATASETS, Data
from silodp.extending import plugins
from silodp.extending.contract import ALGORITHM_CHECKS, DATASET_CHECKS, make_algorithm
from silodp.models import MODELS

ALL_MODELS = MODEL_CASES | small.KINKED_CASES
CONFIGURED = [
    name
    for kind in typing.get_args(typing.get_args(ModelConfig)[0])
    for name in typing.get_args(kind.model_fields["name"].annotation)
]


# Algorithms


@pytest.mark.parametrize("check", ALGORITHM_CHECKS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_offers_what_all_must(name, check):
    ALGORITHM_CHECKS[check](ALGORITHMS[name])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_is_in_the_file_of_its_name(name):
    kind = ALGORITHMS[name]
    assert kind.name == name
    assert kind.__module__ == f"silodp.algorithms.{name}"
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_algorithm(kind).rounds = 9


# An edit of the toy → the checks that notice.
FAULTS = {
    ("sigma = budget.noise", "sigma = 0 * budget.noise"): {"plan", "states"},
    ("if budget.epsilon else 0.0", "if budget.epsilon else 1.0"): {"plan"},
    ("        return State(state.w - ", "        state.w.add_(1)\n        return State(state.w - "): {"states"},
    (".sign()", ".sign()[1:2]"): {"rows"},
    (".sign()", ".sign() * state.w.std()"): {"rows"},
    (".sign()", ".sign() * len(federation.messages.silos[0][0])"): {"messages"},
    ("def start(self", "def begin(self"): {"states", "rows", "messages"},
    (
        "import Algorithm, State\n",
        "import Algorithm\n\n\n@dataclass(frozen=True)\nclass State:\n    w: object\n",
    ): {"states"},
}


TOY = (Path(small.__file__).parent / "toy_sign.py").read_text()


@pytest.fixture
def contract(tmp_path, monkeypatch, capsys):
    """Exit code and output of `silodp config check` on a plug-in file of this text."""

    def run(text, *options):
        (tmp_path / "mine.py").write_text(text)
        monkeypatch.setenv(plugins.VARIABLE, "")
        try:
            code = main(["config", "check", "--plugin", str(tmp_path / "mine.py"), *options])
        finally:
            deactivate_plugins()
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize(("edit", "noticed"), FAULTS.items(), ids=[edit.strip() for edit, _ in FAULTS])
def test_a_fault_is_noticed(contract, edit, noticed):
    assert edit[0] in TOY
    code, output = contract(TOY.replace(*edit, 1))
    assert code == 1
    lines = output.splitlines()
    assert len(lines) == len(ALGORITHM_CHECKS)
    assert noticed <= {line.split()[2].strip(":") for line in lines if line.startswith("BAD ")}


PAGE = (small.ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
SHOWN = PAGE.split("```python\n")[1].split("```")[0]


@pytest.mark.parametrize(("name", "text"), [("toy_sign", TOY), ("sign_sgd", SHOWN)])
def test_plugins_without_fault_pass(contract, name, text):
    """The toy, and the algorithm that the docs show."""
    code, output = contract(text)
    assert code == 0
    assert output.count(f"ok  {name} ") == len(ALGORITHM_CHECKS)


def test_the_docs_say_what_an_experiment_must_have_and_a_data_set_gives():
    needed = [name for name, field in Experiment.model_fields.items() if field.is_required()]
    named = set(re.findall(r"\w+", PAGE.partition("**An experiment**")[2].partition("\n- ")[0]))
    assert {*needed, "silos", "batch_share"} <= named
    assert f"`silodp.datasets.Data({', '.join(list(inspect.signature(Data).parameters)[:3])})`" in PAGE


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


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_configuration_knows_how_many_tensors_a_model_has(name):
    config = TypeAdapter(ModelConfig).validate_python({"name": name} | ({"hidden": 3} if name == "perceptron" else {}))
    case = next((case for case in ALL_MODELS.values() if case.registered == name), None)
    model = case.model() if case else MODELS[name](3 * 32 * 32, 10)
    assert config.tensors == len(model.blocks)


@pytest.mark.parametrize("name", MODEL_CASES)
def test_a_model_says_what_an_output_that_is_no_number_costs(name):
    case = MODEL_CASES[name]
    assert case.model().worst_error == (np.inf if case.classes is None else 1.0)


@pytest.mark.parametrize("name", MODEL_CASES)
def test_blocks_cover_the_flat_vector_in_order(name):
    model = MODEL_CASES[name].model()
    position = 0
    for block in model.blocks:
        assert block.start == position
        position = block.stop
    assert position == model.size
    assert len({block.name for block in model.blocks}) == len(model.blocks)
    assert all(block.stop - block.start == np.prod(block.shape) for block in model.blocks)


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
    DATASET_CHECKS["declared"](dataset)
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.records = 3


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.embedded])
def test_an_embedded_dataset_is_what_it_declares(name):
    DATASET_CHECKS["records"](DATASETS[name])
