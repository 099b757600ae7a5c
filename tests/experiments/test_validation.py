"""Every wrong input is one line that names file, key, value and what is allowed."""

import copy
import functools
import json
import math
from pathlib import Path

import pytest
import small
import yaml
from runfiles import message, overriding, project, write

from silodp.config import loading as config
from silodp.config.errors import ConfigError
from silodp.datasets import DATASETS
from silodp.experiments.validation import load
from silodp.files import write_text
from silodp.workflow.job_digest import RunPlan, freeze, make_plan


@pytest.fixture
def root(tmp_path):
    return project(tmp_path)


SCHEDULED = {"schedule": "theorem-2.1", "private": "private", "clips": [1], "constants": {"d": 30, "beta": 1}}
# What stands after the file and "experiments.<name>.".
OVERRIDES = {
    "cancer": [
        ({"radius": 1}, "radius: 1.0: dp_scaffold does not project: must be left out, or dp_scaffold be"),
        (
            {"regulariser": {"name": "l1", "weight": 1}},
            "regulariser: 'l1': dp_scaffold has no proximal step: leave out regulariser or dp_scaffold",
        ),
        ({"regulariser": {"name": "l1"}}, "regulariser.weight: missing: this key must be given"),
        (
            {"algorithms": {"prox_sgd": {"noise": "theorem"}}, "epsilons": [200]},
            "algorithms.prox_sgd.noise: 'theorem': nonconvex-2.1-noise: conversion from zCDP: epsilon = 200",
        ),
        (
            {"settings": [{"M": 2, "R": 5, "participants": [1, 3]}]},
            "settings[0].participants: [1, 3]: must be at most N = 2, the number of silos",
        ),
        (
            {"settings": [{"M": 2, "R": 5, "participants": [1, 2]}]},
            "settings[0].M: 2: must be the harmonic mean of participants, 1.333, rounded",
        ),
        (
            {"algorithms": {"accelerated_minibatch_sgd": {"stages": [{"rounds": 2, "upsilon": 1}]}}},
            "algorithms.accelerated_minibatch_sgd.stages: 2: rounds of the stages must add up to R = 3",
        ),
        (
            {"algorithms": {"local_sgd": {"schedule": "theorem-2.1"}}},
            "algorithms.local_sgd.schedule: 'theorem-2.1': schedules of local_sgd: none",
        ),
        (
            {"algorithms": {"minibatch_sgd": {"schedule": "theorem-2.3"}}},
            "algorithms.minibatch_sgd.schedule: 'theorem-2.3': schedules of minibatch_sgd: theorem-2.1, ",
        ),
        (
            {"algorithms": {"minibatch_sgd": SCHEDULED | {"private": "both"}}},
            "algorithms.minibatch_sgd.private: 'both': must be private, as the schedule's theorem is about an epsilon",
        ),
        (
            {"algorithms": {"minibatch_sgd": SCHEDULED | {"clips": [1, 2]}}},
            "algorithms.minibatch_sgd.clips: [1.0, 2.0]: must be one value, the theorem's L",
        ),
        (
            {"algorithms": {"minibatch_sgd": SCHEDULED}},
            "algorithms.minibatch_sgd.schedule: 'theorem-2.1': theorem-2.1 asks for radius",
        ),
        ({"epsilon": [1]}, "epsilon: [1]: unknown key; silodp config reference lists the keys"),
        ({"settings": [{"M": 3, "R": 5}]}, "settings[0].M: 3: must be at most N = 2, the number of silos"),
        ({"batch_records": 170}, "batch_records: 170: K must be at most n = 169, the records of a silo"),
        ({"delta": 0}, "delta: 0: must be greater than 0, or: must be '1/n^2'"),
        ({"stepsizes": {"low": 1, "high": 0, "points": 3}}, "low must be at most high"),
        ({"trials": True}, "trials: True: must be a valid integer"),
        ({"preprocess": {"pca": 10**6}}, "preprocess.pca: 1000000: must be at most 30, the features of wbcd"),
        *(
            (
                {"dataset": "cifar10", "model": {"name": "convnet"}, "preprocess": keys},
                "are not for images, as cifar10's",
            )
            for keys in ({"pca": 3}, {"constant_column": True})
        ),
        ({"preprocess": {"standardise": "bounds"}}, "'bounds': needs data whose columns are known by name"),
        ({"silos": {"train_share": 1 - 1e-13}}, "must leave at least one test record in each silo"),
        ({"epsilons": [1e-320]}, "epsilons[0]: 1e-320: must be at least 1e-06"),
        ({"delta": 1e-320}, "delta: 1e-320: must be at least 1e-30"),
        ({"title": "a\0b"}, "title: 'a\\x00b': must hold no control characters"),
        ({"epsilons": [0, -1], "trials": 0}, "epsilons[0]: 0: must be greater than 0 (and 2 more)"),
        ({"epsilons": [1, 2, 1]}, "epsilons: [1, 2, 1]: values must be distinct"),
        ({"clips": [1, 1.0]}, "clips: [1, 1.0]: values must be distinct"),
        ({"reports": [{}, {"selection": "pooled"}]}, "values must be distinct"),
        ({"settings": [{"M": 1, "R": 5}, {"M": 1, "R": 5, "phase_lengths": [2]}]}, "settings (M, R) must be distinct"),
        ({"algorithms": {"local_sgd": {"clips": [2, 2]}}}, "algorithms.local_sgd.clips: [2, 2]: values must be"),
        ({"dataset": "iris"}, f"dataset: 'iris': must be one of {', '.join(sorted(DATASETS))}"),
        (
            {"algorithms": {"adam": {}}},
            "algorithms.adam: 'adam': no such algorithm: must be one of accelerated_minibatch_sgd, dp_mu2, ",
        ),
        (
            {"alternatives": [{"batch": "per_eps", "algorithms": ["adam"]}]},
            "alternatives[0].algorithms: 'adam': must be one of the experiment's: ",
        ),
        ({"algorithms": {"local_sgd": {"step": 1}}}, "algorithms.local_sgd.step: 1: unknown key"),
        ({"model": {"name": "perceptron", "hidden": 3, "depth": 2}}, "model.depth: 2: unknown key"),
        ({"model": {"name": "linear"}}, "model: 'linear': must fit the task of wbcd, which is classification"),
        ({"label": "target"}, "label: 'target': must be class or parity for classification"),
        ({"silos": {"scheme": "iid"}}, "silos.count: None: must be given for iid"),
        ({"silos": {"scheme": "digit_pairs"}}, "silos.scheme: 'digit_pairs': needs a data set with ten classes"),
        ({"silos": {"count": 3}}, "silos.count: 3: must be 2 (or left out) for by_class"),
        ({"silos": {"per_class": 213}}, "silos.per_class: 213: must be at most 212, the records of the smallest class"),
        ({"silos": {"mixed": 0.5}}, "silos.mixed: 0.5: must be 0 for by_class; only digit_pairs can mix its silos"),
        (
            {"tuning": "race", "reports": [{"selection": "pooled", "evaluation": "same"}]},
            "tuning: 'race': must be full where reports are any but {selection: pooled, evaluation: fresh}",
        ),
        (
            {"tuning": "race", "trials": 2, "reports": [{"selection": "pooled", "evaluation": "fresh"}]},
            "trials: 2: must be more than the 2 numbers of race.kept",
        ),
        ({"race": {"kept": [1, 2]}}, "race.kept: [1, 2]: kept must not grow"),
        ({"readings": {"records": "rounded"}}, "readings.records: 'rounded': must be equal for "),
        ({"clips": [math.inf]}, "clips: [inf]: private training needs a finite clip threshold"),
    ],
    "pairs": [
        ({"label": "class", "model": {"name": "logistic"}}, "model: 'logistic': needs two classes, digits has 10"),
        (
            {"silos": {"official_test": True}, "alternatives": [{"resample": True}]},
            "silos.official_test: True: must be false where a reading resamples",
        ),
        ({"silos": {"official_test": True}}, "silos.official_test: True: must be false: digits has no test part"),
        (
            {"readings": {"standardise": "silo"}},
            "readings.standardise: 'silo': must be train or all where silos share records",
        ),
    ],
    "patients": [
        ({"silos": {"scheme": "by_class"}}, "silos.scheme: 'by_class': needs a data set with classes"),
        ({"silos": {"count": 222}}, "silos.count: 222: must be at most 221, half the records of diabetes"),
        (
            {"silos": {"count": 147, "train_share": 0.6}},
            "silos.train_share: 0.6: must leave at least 2 training records in each silo, not 1",
        ),
        ({"silos": {"per_class": 10}}, "silos.per_class: 10: needs silos cut by class, not sorted_target"),
        (
            {"readings": {"split": "per_silo"}},
            "readings.split: 'per_silo': must be by_record for sorted_target, whose silos share no record",
        ),
    ],
}
CASES = [(name, *case) for name, cases in OVERRIDES.items() for case in cases]


@pytest.mark.parametrize(("name", "overrides", "wanted"), CASES, ids=lambda value: str(value)[:50])
def test_a_wrong_override_is_one_line_that_names_the_run_file(root, name, overrides, wanted):
    text = message(root, overriding(name, **overrides))
    assert text.startswith(f"{root}/config/run.yaml: experiments.{name}.")
    assert wanted in text


RUN_KEYS = [
    ({"experiments": {"cancer": None}}, "run: missing: this key must be given"),
    (
        {"run": "r", "sed": 1, "experiments": {"cancer": None}},
        "sed: 1: unknown key; silodp config reference lists the keys",
    ),
    (
        {"run": "r", "experiments": {"nope": None}},
        "experiments.nope: no such experiment: must be one of cancer, pairs, patients",
    ),
    ("run: [unclosed", "file: not YAML: while parsing a flow sequence"),
    ("- 1\n- 2\n", "file: list: must be a mapping of keys to values"),
    ("", "file: NoneType: must be a mapping of keys to values"),
]


@pytest.mark.parametrize(("content", "wanted"), RUN_KEYS, ids=lambda value: str(value)[:50])
def test_a_wrong_run_file_is_one_line_that_names_it(root, content, wanted):
    assert message(root, content).startswith(f"{root}/config/run.yaml: {wanted}")


def _places(value, place=()):
    """Where values are in nested mappings."""
    if place:
        yield place
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*place, key))


@pytest.mark.parametrize("overrides", [None, {"trials": 3, "silos": {"train_share": 0.7}}], ids=["none", "some"])
@pytest.mark.parametrize("file", ["cancer", "base", "run"])
def test_a_wrong_value_is_reported_with_the_file_that_holds_it(root, file, overrides):
    """Whichever value of an experiment, of the file that it extends, or of the run file is wrong."""
    folder = root / "config" / "experiments"
    base = yaml.safe_load((folder / "cancer.yaml").read_text()) | {"algorithms": {"minibatch_sgd": {"private": "both"}}}
    (folder / "base.yaml").write_text(yaml.safe_dump(base))
    (folder / "cancer.yaml").write_text("extends: base\nclips: [2]\nsilos: {per_class: 50}\nmodel: {name: softmax}\n")
    path = root / "config" / "run.yaml" if file == "run" else folder / f"{file}.yaml"
    run = overriding() | {"experiments": {"cancer": overrides}}
    content = run["experiments"]["cancer"] if file == "run" else yaml.safe_load(path.read_text())
    extending = yaml.safe_load((folder / "cancer.yaml").read_text())
    upper = {"run": [], "cancer": [overrides], "base": [overrides, extending]}
    hidden = {place for above in upper[file] for place in _places(above or {}) if place != ("silos",)}
    refused = 0
    for place in _places(content or {}):
        if place == ("extends",) or hidden & {place[:1], place}:
            continue
        wrong = copy.deepcopy(content)
        functools.reduce(dict.__getitem__, place[:-1], wrong)[place[-1]] = [{"no": ["sense"]}]
        if file == "run":
            text = message(root, run | {"experiments": {"cancer": wrong}})
        else:
            path.write_text(yaml.safe_dump(wrong))
            text = message(root, run)
        assert text.startswith(f"{path}: "), (place, text)
        refused += 1
    assert refused or (file == "run" and overrides is None)


def test_a_key_without_a_value_is_an_empty_section_and_null_takes_it_away(root):
    options = "run: r\nexperiments:\n  cancer:\n    algorithms: {minibatch_sgd: , fed_spider: null}\n"
    algorithms = load(write(root, options), root).experiments["cancer"].algorithms
    assert algorithms["minibatch_sgd"].private == "both"
    assert "fed_spider" not in algorithms
    text = message(root, "run: r\nexperiments: {cancer: {epsilons: }}\n")
    assert "experiments.cancer.epsilons: {}: must be a valid list" in text


def test_an_experiments_mistake_is_not_blamed_on_an_override_beside_it(root):
    """The run file sets another key of the same section."""
    path = root / "config" / "experiments" / "cancer.yaml"
    content = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(content | {"silos": {"scheme": "even"}}))
    text = message(root, overriding(silos={"train_share": 0.7}))
    assert text.startswith(f"{path}: silos.scheme: 'even'")
    path.write_text(yaml.safe_dump(content | {"silos": {"scheme": "by_class", "count": 3}}))
    text = message(root, overriding(silos={"train_share": 0.7}))
    assert text.startswith(f"{path}: silos.count: 3")
    # As two values may be at odds of which each file has one.
    assert text.endswith(f"(beside what {root / 'config' / 'run.yaml'} overrides)")


def test_an_experiment_may_extend_another(root):
    """Keys are laid over the other's; None removes one."""
    text = "extends: cancer\nmodel: {name: logistic}\nphase_lengths: [3]\nalgorithms: {fed_spider: null}\n"
    (root / "config" / "experiments" / "again.yaml").write_text(text)
    run = {"run": "r", "experiments": {"cancer": None, "again": {"trials": 7}}}
    found = load(write(root, run), root).experiments
    assert found["again"].model.name == "logistic"
    assert found["again"].trials == 7
    assert found["again"].phase_lengths == [3]
    assert set(found["again"].algorithms) == set(found["cancer"].algorithms) - {"fed_spider"}
    assert found["again"].silos == found["cancer"].silos


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("extends: nothing", "extends: 'nothing': must name another experiment's file"),
        ("extends: chain", "extends: 'chain': must be an experiment that extends none itself"),
    ],
)
def test_what_is_extended_must_be_there_and_stand_by_itself(root, text, wanted):
    folder = root / "config" / "experiments"
    (folder / "chain.yaml").write_text("extends: cancer")
    (folder / "again.yaml").write_text(text)
    found = message(root, {"run": "r", "experiments": {"again": None}})
    assert found == f"{folder}/again.yaml: {wanted}"


PAPER = small.ROOT / "config" / "paper.yaml"


@pytest.mark.parametrize(
    ("said", "here", "kept"), [("", False, False), ("", True, True), ("1", False, True), ("0", True, False)]
)
def test_an_experiment_on_cuda_is_kept_where_a_device_can_be_had(monkeypatch, said, here, kept):
    monkeypatch.setenv("SILODP_CUDA", said)
    monkeypatch.setattr(config.Path, "exists", lambda path: here)
    found = load(PAPER)
    assert ("cifar10_cnn" in found.experiments) == kept
    assert found.left_out == ([] if kept else ["cifar10_cnn"])
    assert "mnist_mlp" in found.experiments


def test_nothing_left_and_a_variable_of_another_kind_are_refused(monkeypatch, tmp_path):
    path = Path(tmp_path / "run.yaml")
    path.write_text("run: r\nexperiments: {cifar10_cnn: {device: cuda}}\n")
    monkeypatch.setenv("SILODP_CUDA", "0")
    with pytest.raises(ConfigError, match=r"run\.yaml: experiments: cifar10_cnn: must be run where there is a CUDA"):
        load(path)
    monkeypatch.setenv("SILODP_CUDA", "yes")
    with pytest.raises(ConfigError, match="environment: SILODP_CUDA: 'yes': must be 0 or 1"):
        load(path)


@pytest.mark.parametrize("here", ["0", "1", ""])
@pytest.mark.parametrize(("gpus", "device"), [("true", "cuda"), ("false", "cpu")])
def test_the_device_that_is_faster_follows_from_the_run_file_alone(gpus, device, here, tmp_path, monkeypatch):
    """Whatever the machine that plans has; a small problem stays on the CPU."""
    monkeypatch.setenv("SILODP_CUDA", here)
    path = tmp_path / "run.yaml"
    path.write_text(f"run: r\ndevice: auto\ngpus: {gpus}\nexperiments: {{cifar10_cnn: ~, wbcd_mlp: ~}}\n")
    plan = RunPlan(load(path))
    assert [plan.device(name) for name in ("cifar10_cnn", "wbcd_mlp")] == [device, "cpu"]
    assert [plan.gpus(name) for name in ("cifar10_cnn", "wbcd_mlp")] == [1 if device == "cuda" else None, None]


def test_a_planned_run_keeps_what_it_asks_of_a_gpu_where_jobs_have_none(tmp_path, monkeypatch):
    """Jobs without training, and pages of a publication, are made on machines without a GPU too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SILODP_CUDA", "1")
    path = tmp_path / "run.yaml"
    path.write_text("run: r\ndevice: auto\ngpus: true\nexperiments: {cifar10_cnn: ~, wbcd_mlp: {device: cuda}}\n")
    plan = RunPlan(load(path))
    assert [plan.device(name) for name in plan.experiments] == ["cuda", "cuda"]
    freeze(plan, path)
    monkeypatch.setenv("SILODP_CUDA", "0")
    assert list(make_plan(path, None, frozen=True).experiments) == list(plan.experiments)
    write_text(json.dumps(plan.resolved.dump()), tmp_path / "config.json")
    found = load(tmp_path / "config.json")
    assert list(found.experiments) == list(plan.experiments)
    assert found.left_out == []
