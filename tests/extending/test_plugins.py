"""An algorithm and a data set of one's own, in a file that a run file or the command line names."""

import json
import shutil
from pathlib import Path

import pytest
import small
from runfiles import deactivate_plugins, message, overriding, project, write

from silodp.algorithms import ALGORITHMS
from silodp.cli import main
from silodp.datasets import DATASETS
from silodp.experiments.validation import load
from silodp.extending import plugins
from silodp.workflow.job_digest import RunPlan

TOY = Path(__file__).resolve().parents[1] / "helpers" / "toy_sign.py"
RECORDS = '''
"""Ten records of two features."""

import numpy as np

from silodp.datasets.base import Data, Dataset


def _load(files):
    return Data(np.arange(20.0).reshape(10, 2), np.arange(10) % 2, 2)


DATASET = Dataset("toy_records", "Toy", "classification", True, "none", "nobody", 10, 2, _load, (5, 5))
'''


@pytest.fixture(autouse=True)
def _none_left(monkeypatch):
    monkeypatch.setenv(plugins.VARIABLE, "")
    yield
    deactivate_plugins()


@pytest.fixture
def root(tmp_path):
    """A project with the toy beside its run file."""
    project(tmp_path)
    shutil.copy(TOY, tmp_path / "config")
    return tmp_path


def toy(files=("toy_sign.py",), **options):
    """A run of the toy beside minibatch SGD."""
    others = dict.fromkeys(small.experiment().algorithms) | {"minibatch_sgd": {}}
    return overriding(algorithms=others | {"toy_sign": options}) | {"plugins": list(files)}


def test_a_run_file_brings_its_algorithm(root):
    found = load(write(root, toy()), root)
    assert list(found.experiments["cancer"].algorithms) == ["minibatch_sgd", "toy_sign"]
    assert ALGORITHMS["toy_sign"].label == "Toy sign SGD"
    assert found.dump()["plugins"] == ["source/plugins/toy_sign.py"]
    plan = RunPlan(found)
    assert "results/r/source/plugins/toy_sign.py" in plan.deliverables()
    deactivate_plugins()
    assert "toy_sign" not in ALGORITHMS


def test_the_command_line_brings_one_too(tmp_path, capsys):
    path = shutil.copy(TOY, tmp_path)
    run = ["--rounds", "5", "--records", "100", "--batch", "20", "--sigma", "1", "--clip", "1", "--json"]
    assert main(["epsilon", "--algorithm", "toy_sign", "--plugin", str(path), *run]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["delivered_epsilon"] < 10


def test_parameters_are_options_of_the_algorithm(root):
    found = load(write(root, toy(options={"damping": 0.25})), root)
    task = RunPlan(found).task("cancer", "toy_sign", "M2_R3", "default")
    assert task.make(1).damping == 0.25
    allowed = "parameters of toy_sign that no other key says: damping"
    assert f"algorithms.toy_sign.options.dumping: 0.2: {allowed}" in message(root, toy(options={"dumping": 0.2}))
    assert "toy_sign is not made: damping = 2" in message(root, toy(options={"damping": 2.0}))
    text = message(root, overriding(algorithms={"local_sgd": {"options": {"rounds": 3}}}))
    assert "parameters of local_sgd that no other key says: none" in text


def test_a_data_set_ones_own(root):
    (root / "config" / "records.py").write_text(RECORDS)
    run = overriding(dataset="toy_records", algorithms={name: None for name in ALGORITHMS if name != "local_sgd"})
    found = load(write(root, run | {"plugins": ["records.py"]}), root)
    assert found.experiments["cancer"].dataset == "toy_records"
    assert len(DATASETS["toy_records"].load().x) == 10
    before = RunPlan(found).digest_of("partition", experiment="cancer")
    (root / "config" / "records.py").write_text(RECORDS.replace("arange(20.0)", "arange(1.0, 21.0)"))
    assert RunPlan(load(root / "config" / "run.yaml", root)).digest_of("partition", experiment="cancer") != before


def test_an_experiment_of_a_data_set_or_an_algorithm_of_ones_own_stands_alone_in_a_run_file(root):
    """As docs/extend.md has it: no file of config/experiments names it."""
    (root / "config" / "records.py").write_text(RECORDS)
    mine = small.experiment(dataset="toy_records", algorithms={"minibatch_sgd": {}}).model_dump(
        mode="json", exclude_unset=True
    )
    run = {"run": "run", "seed": 1, "experiments": {"mine": mine}, "plugins": ["records.py"]}
    found = load(write(root, run), root)
    assert found.experiments["mine"].dataset == "toy_records"
    del mine["model"]
    assert "experiments.mine.model: missing: this key must be given" in message(root, run).replace("mine: ", "mine.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no such file: must be a Python file"),
        ("x = 1 / 0", "ZeroDivisionError: division by zero: must be Python that can be imported"),
        ("def", "SyntaxError: invalid syntax"),
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "holds no algorithm and no data set: must define a class derived from Algorithm with a name"),
        (TOY.read_text().replace('"toy_sign"', '"local_sgd"'), "algorithm local_sgd: the package has one"),
        (TOY.read_text().replace('"toy_sign"', '"../x"'), "algorithm '../x': must be named by small letters"),
        (RECORDS.replace("True", "False"), "DATASET: must be a Dataset with embedded=True"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_one_line(root, text, said):
    if text is not None:
        (root / "config" / "mine.py").write_text(text)
    found = message(root, toy(["mine.py"]))
    assert said in found
    assert "run.yaml: plugins[0]: 'mine.py': " in found


@pytest.mark.parametrize("name", ["toy-sign.py", "toy_sign.txt", "toy_sign"])
def test_a_plugin_has_the_name_of_a_module(root, name):
    shutil.copy(TOY, root / "config" / name)
    assert "plugins[0]: " + f"{name!r}: must be a Python file with the name of a module" in message(root, toy([name]))


def test_a_plugin_is_made_once_for_what_it_holds(root):
    made = []
    for end in ("", "", "# more\n"):
        (root / "config" / "toy_sign.py").write_text(TOY.read_text() + end)
        load(write(root, toy()), root)
        made.append(ALGORITHMS["toy_sign"])
    assert made[0] is made[1]
    assert made[1] is not made[2]


def test_two_plugins_of_one_name_are_refused(root):
    (root / "config" / "other.py").write_text(TOY.read_text())
    assert "plugins[1]: 'other.py': algorithm toy_sign: " in message(root, toy(["toy_sign.py", "other.py"]))
    (root / "toy_sign.py").write_text("x = 1")
    assert "plugins[1]: '../toy_sign.py': " in message(root, toy(["toy_sign.py", "../toy_sign.py"]))
    # The same file twice, or a copy beside a run's results, is one plug-in.
    shutil.copy(TOY, root)
    assert len(load(write(root, toy(["toy_sign.py", "toy_sign.py", "../toy_sign.py"])), root).plugins) == 1


def edited(root, old: str, new: str) -> set[str]:
    """Jobs that are done again when the toy's file changes."""

    def digests() -> dict[str, str]:
        plan = RunPlan(load(root / "config" / "run.yaml", root))
        algorithms = ("minibatch_sgd", "toy_sign")
        trained = {name: plan.own_digest("train", experiment="cancer", algorithm=name) for name in algorithms}
        jobs = ("partition", "table", "privacy", "figure")
        made = {job: plan.own_digest(job, experiment="cancer") for job in jobs}
        return trained | made | {"run": plan.own_digest("provenance")}

    before, path = digests(), root / "config" / "toy_sign.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    after = digests()
    return {name for name in before if before[name] != after[name]}


def test_an_edit_of_a_plugin_redoes_what_it_computes(root):
    """Constants retrain it and nothing else; comments only copy the file again."""
    write(root, toy())
    assert edited(root, "SCALE = 0.5", "SCALE = 0.75") == {"toy_sign", "privacy", "run"}
    assert edited(root, "SCALE =", "# A comment.\nSCALE =") == {"run"}
    assert edited(root, "Toy sign SGD", "Toy") == {"toy_sign", "privacy", "figure", "run"}


def test_a_resolved_configuration_leaves_out_what_the_run_left_out(root):
    found = load(write(root, toy()), root)
    folder = root / "results" / "source" / "plugins"
    folder.mkdir(parents=True)
    shutil.copy(TOY, folder)
    path = root / "results" / "config.json"
    path.write_text(json.dumps(found.dump()))
    again = load(path, root)
    assert again.experiments == found.experiments
    assert again.dump() == found.dump()
