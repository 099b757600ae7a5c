"""Run files and experiments: every wrong input is one line that names file, key, value and what is allowed."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from silodp.algorithms import ALGORITHMS
from silodp.config import ConfigError, Experiment, Grid, Readings, load
from silodp.config_pages import reference_text, schema_text
from silodp.datasets import DATASETS
from small import ROOT, experiment

EXPERIMENTS = sorted((ROOT / "config" / "experiments").glob("*.yaml"))
RUNS = sorted((ROOT / "config").glob("*.yaml"))


@pytest.fixture
def root(tmp_path):
    """A project with three experiments of its own, valid as they stand."""
    folder = tmp_path / "config" / "experiments"
    folder.mkdir(parents=True)
    base = experiment().model_dump(mode="json", exclude_none=True)
    (folder / "cancer.yaml").write_text(yaml.safe_dump(base))
    pairs = base | {"dataset": "digits", "label": "parity", "silos": {"scheme": "digit_pairs"}}
    pairs |= {"model": {"name": "logistic"}, "settings": [{"M": 25, "R": 3}]}
    (folder / "pairs.yaml").write_text(yaml.safe_dump(pairs))
    patients = base | {"dataset": "diabetes", "label": "target", "silos": {"scheme": "sorted_target", "count": 5}}
    patients |= {"model": {"name": "linear"}, "settings": [{"M": 5, "R": 3}]}
    (folder / "patients.yaml").write_text(yaml.safe_dump(patients))
    return tmp_path


def write(root: Path, content) -> Path:
    path = root / "config" / "run.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return path


def message(root: Path, content) -> str:
    with pytest.raises(ConfigError) as caught:
        load(write(root, content), root)
    text = str(caught.value)
    assert "\n" not in text
    return text


def overriding(name="cancer", **overrides):
    return {"run": "r", "experiments": {name: overrides}}


SCHEDULED = {"schedule": "theorem-2.1", "private": "private", "clips": [1], "constants": {"d": 30, "beta": 1}}

# What stands after the file and "experiments.<name>.".
OVERRIDES = [
    # The convex paper's options.
    ("cancer", {"radius": 1}, "radius: 1.0: local_sgd does not project: must be left out, or local_sgd be"),
    (
        "cancer",
        {"settings": [{"M": 2, "R": 5, "participants": [1, 3]}]},
        "settings[0].participants: [1, 3]: must be at most N = 2, the number of silos",
    ),
    (
        "cancer",
        {"settings": [{"M": 2, "R": 5, "participants": [1, 2]}]},
        "settings[0].M: 2: must be the harmonic mean of participants, 1.333, rounded",
    ),
    (
        "cancer",
        {"algorithms": {"accelerated_minibatch_sgd": {"stages": [{"rounds": 2, "upsilon": 1}]}}},
        "algorithms.accelerated_minibatch_sgd.stages: 2: rounds of the stages must add up to R = 3",
    ),
    (
        "cancer",
        {"algorithms": {"shuffled_minibatch_sgd": {"noise": "moments"}}},
        "algorithms.shuffled_minibatch_sgd: 'M2_R3': ",
    ),
    (
        "cancer",
        {"algorithms": {"minibatch_sgd": {"noise": -1}}},
        "algorithms.minibatch_sgd.noise: -1: ",
    ),
    (
        "cancer",
        {"algorithms": {"local_sgd": {"schedule": "theorem-2.1"}}},
        "algorithms.local_sgd.schedule: 'theorem-2.1': schedules of local_sgd: none",
    ),
    (
        "cancer",
        {"algorithms": {"minibatch_sgd": {"schedule": "theorem-2.3"}}},
        "algorithms.minibatch_sgd.schedule: 'theorem-2.3': schedules of minibatch_sgd: theorem-2.1, ",
    ),
    (
        "cancer",
        {"algorithms": {"minibatch_sgd": SCHEDULED | {"private": "both"}}},
        "algorithms.minibatch_sgd.private: 'both': must be private, as the schedule's theorem is about an epsilon",
    ),
    (
        "cancer",
        {"algorithms": {"minibatch_sgd": SCHEDULED | {"clips": [1, 2]}}},
        "algorithms.minibatch_sgd.clips: [1.0, 2.0]: must be one value, the theorem's L",
    ),
    (
        "cancer",
        {"algorithms": {"minibatch_sgd": SCHEDULED}},
        "algorithms.minibatch_sgd.schedule: 'theorem-2.1': theorem-2.1 asks for radius",
    ),
    # The doors of the design: unknown key, ε ≤ 0, M > N, K > n, clip ≤ 0.
    ("cancer", {"epsilon": [1]}, "epsilon: [1]: unknown key; see docs/configuration.md for the keys allowed here"),
    ("cancer", {"epsilons": [0]}, "epsilons[0]: 0: Input should be greater than 0"),
    ("cancer", {"epsilons": [1, -2]}, "epsilons[1]: -2: Input should be greater than 0"),
    ("cancer", {"settings": [{"M": 3, "R": 5}]}, "settings[0].M: 3: must be at most N = 2, the number of silos"),
    ("pairs", {"settings": [{"M": 1, "R": 5}, {"M": 26, "R": 5}]}, "settings[1].M: 26: must be at most N = 25, "),
    ("cancer", {"batch_records": 170}, "batch_records: 170: K must be at most n = 169, the records of a silo"),
    ("patients", {"batch_records": 71}, "batch_records: 71: K must be at most n = 70, the records of a silo"),
    ("cancer", {"clips": [0]}, "clips[0]: 0: Input should be greater than 0"),
    ("cancer", {"clips": [1, -0.5]}, "clips[1]: -0.5: Input should be greater than 0"),
    # Numbers that are none, or out of range.
    ("cancer", {"epsilons": [math.inf]}, "epsilons[0]: inf: Input should be a finite number"),
    ("cancer", {"epsilons": [math.nan]}, "epsilons[0]: nan: Input should be a finite number"),
    ("cancer", {"epsilons": ["big"]}, "epsilons[0]: 'big': Input should be a valid number"),
    ("cancer", {"clips": [math.nan]}, "clips[0]: nan: Input should be greater than 0"),
    ("cancer", {"epsilons": []}, "epsilons: []: List should have at least 1 item"),
    ("cancer", {"delta": 0}, "delta: 0: Input should be greater than 0, or: Input should be '1/n^2'"),
    ("cancer", {"delta": 1}, "delta: 1: Input should be less than 1, or: Input should be '1/n^2'"),
    ("cancer", {"delta": "1/n"}, "delta: '1/n': Input should be a valid number, unable to parse string"),
    ("cancer", {"trials": 0}, "trials: 0: Input should be greater than or equal to 1"),
    ("cancer", {"trials": 2.5}, "trials: 2.5: Input should be a valid integer"),
    ("cancer", {"batch_epsilon": 0}, "batch_epsilon: 0: Input should be greater than 0"),
    ("cancer", {"batch_records": 0}, "batch_records: 0: Input should be greater than or equal to 1"),
    ("cancer", {"phase_lengths": [0]}, "phase_lengths[0]: 0: Input should be greater than or equal to 1"),
    ("cancer", {"settings": [{"M": 0, "R": 5}]}, "settings[0].M: 0: Input should be greater than or equal to 1"),
    ("cancer", {"settings": [{"M": 1, "R": 0}]}, "settings[0].R: 0: Input should be greater than or equal to 1"),
    ("cancer", {"settings": [{"M": 1}]}, "settings[0].R: missing: this key must be given"),
    ("cancer", {"stepsizes": {"low": 1, "high": 0, "points": 3}}, "low must be at most high"),
    ("cancer", {"stepsizes": {"low": 0, "high": 0, "points": 0}}, "stepsizes.points: 0: Input should be greater"),
    ("cancer", {"stepsizes": {"low": 0}}, "stepsizes.high: missing: this key must be given (and 1 more)"),
    (
        "cancer",
        {"stepsizes": {"low": math.nan, "high": 0, "points": 3}},
        "stepsizes.low: nan: Input should be a finite",
    ),
    (
        "cancer",
        {"stepsizes": {"low": 0, "high": math.inf, "points": 3}},
        "stepsizes.high: inf: Input should be a finite",
    ),
    ("cancer", {"silos": {"train_share": 1}}, "silos.train_share: 1: Input should be less than 1"),
    ("cancer", {"silos": {"train_share": 0}}, "silos.train_share: 0: Input should be greater than 0"),
    ("pairs", {"silos": {"mixed": 1.5}}, "silos.mixed: 1.5: Input should be less than or equal to 1"),
    # What is given twice.
    ("cancer", {"epsilons": [1, 2, 1]}, "epsilons: [1, 2, 1]: values must be distinct"),
    ("cancer", {"clips": [1, 1.0]}, "clips: [1, 1.0]: values must be distinct"),
    ("cancer", {"phase_lengths": [2, 2]}, "phase_lengths: [2, 2]: values must be distinct"),
    ("cancer", {"reports": [{}, {"selection": "pooled"}]}, "values must be distinct"),
    ("cancer", {"settings": [{"M": 1, "R": 5}] * 2}, "settings (M, R) must be distinct"),
    (
        "cancer",
        {"settings": [{"M": 1, "R": 5, "phase_lengths": [1, 1]}]},
        "settings[0].phase_lengths: [1, 1]: values must",
    ),
    (
        "cancer",
        {"settings": [{"M": 1, "R": 5, "phase_lengths": []}]},
        "settings[0].phase_lengths: []: List should have",
    ),
    ("cancer", {"algorithms": {"local_sgd": {"clips": [2, 2]}}}, "algorithms.local_sgd.clips: [2, 2]: values must be"),
    # Names that no one knows.
    ("cancer", {"dataset": "iris"}, f"dataset: 'iris': must be one of {', '.join(sorted(DATASETS))}"),
    (
        "cancer",
        {"algorithms": {"adam": {}}},
        "algorithms.adam: 'adam': no such algorithm: must be one of accelerated_minibatch_sgd, fed_spider, ",
    ),
    (
        "cancer",
        {"model": {"name": "forest"}},
        "does not match any of the expected tags: 'linear', 'logistic', 'softmax', 'perceptron'",
    ),
    (
        "cancer",
        {"silos": {"scheme": "even"}},
        "silos.scheme: 'even': Input should be 'digit_pairs', 'by_class', 'sorted_target' or 'iid'",
    ),
    ("cancer", {"label": "colour"}, "label: 'colour': Input should be 'class', 'parity' or 'target'"),
    ("cancer", {"device": "gpu"}, "device: 'gpu': String should match pattern '^(cpu|cuda(:\\d+)?)$'"),
    ("cancer", {"readings": {"batch": "max"}}, "readings.batch: 'max': Input should be 'eps_max' or 'per_eps'"),
    (
        "cancer",
        {"readings": {"clipping": "per_tensor"}},
        "readings.clipping: 'per_tensor': Input should be 'record' or ",
    ),
    (
        "cancer",
        {"alternatives": [{"log_term": "x"}]},
        "alternatives[0].log_term: 'x': Input should be 'paper', '1/delta' or '2/delta'",
    ),
    (
        "cancer",
        {"reports": [{"selection": "best"}]},
        "reports[0].selection: 'best': Input should be 'pooled' or 'per_trial'",
    ),
    (
        "cancer",
        {"algorithms": {"local_sgd": {"private": "yes"}}},
        "algorithms.local_sgd.private: 'yes': Input should be 'both', ",
    ),
    ("cancer", {"algorithms": {"local_sgd": {"step": 1}}}, "algorithms.local_sgd.step: 1: unknown key"),
    # Models and data that do not go together.
    ("cancer", {"model": {"name": "perceptron"}}, "model.hidden: missing: this key must be given"),
    ("cancer", {"model": {"name": "perceptron", "hidden": 3, "depth": 2}}, "model.depth: 2: unknown key"),
    ("patients", {"model": {"name": "linear", "hidden": 3}}, "experiments.patients.model.hidden: 3: unknown key"),
    ("pairs", {"model": {"name": "logistic", "hidden": 3}}, "model.hidden: 3: unknown key"),
    ("cancer", {"model": {"name": "linear"}}, "model: 'linear': must fit the task of wbcd, which is classification"),
    (
        "patients",
        {"model": {"name": "softmax"}},
        "model: 'softmax': must fit the task of diabetes, which is regression",
    ),
    ("cancer", {"label": "target"}, "label: 'target': must be class or parity for classification"),
    ("patients", {"label": "class"}, "label: 'class': must be target for regression"),
    ("pairs", {"label": "class", "model": {"name": "logistic"}}, "model: 'logistic': needs two classes, digits has 10"),
    # Silos that cannot be cut.
    ("cancer", {"silos": {"scheme": "digit_pairs"}}, "silos.scheme: 'digit_pairs': needs a data set with ten classes"),
    ("patients", {"silos": {"scheme": "by_class"}}, "silos.scheme: 'by_class': needs a data set with classes"),
    ("cancer", {"silos": {"count": 3}}, "silos.count: 3: must be 2 (or left out), one class a silo"),
    ("pairs", {"silos": {"count": 24}}, "silos.count: 24: must be 25 (or left out) for digit_pairs"),
    ("patients", {"silos": {"count": 222}}, "silos.count: 222: must be at most 221, half the records of diabetes"),
    (
        "patients",
        {"silos": {"count": 147, "train_share": 0.6}},
        "silos.train_share: 0.6: must leave at least 2 training records in each silo, not 1",
    ),
    (
        "cancer",
        {"silos": {"per_class": 213}},
        "silos.per_class: 213: must be at most 212, the records of the smallest class",
    ),
    (
        "pairs",
        {"silos": {"per_class": 175}},
        "silos.per_class: 175: must be at most 174, the records of the smallest class",
    ),
    (
        "cancer",
        {"silos": {"mixed": 0.5}},
        "silos.mixed: 0.5: must be 0 for by_class; only digit_pairs can mix its silos",
    ),
    ("patients", {"silos": {"per_class": 10}}, "silos.per_class: 10: needs silos cut by class, not sorted_target"),
    (
        "patients",
        {"silos": {"official_test": True}},
        "silos.official_test: True: needs silos cut by class, not sorted_target",
    ),
    (
        "pairs",
        {"silos": {"official_test": True}, "alternatives": [{"resample": True}]},
        "silos.official_test: True: must be false where a reading resamples",
    ),
    # Private training without a bound.
    ("cancer", {"clips": [math.inf]}, "clips: [inf]: private training needs a finite clip threshold"),
    (
        "cancer",
        {"algorithms": {"local_sgd": {"clips": [math.inf]}}},
        "algorithms.local_sgd.clips: [inf]: private training needs a finite clip threshold",
    ),
]


@pytest.mark.parametrize(("name", "overrides", "wanted"), OVERRIDES, ids=lambda value: str(value)[:50])
def test_a_wrong_override_is_one_line_that_names_the_run_file(root, name, overrides, wanted):
    text = message(root, overriding(name, **overrides))
    assert text.startswith(f"{root}/config/run.yaml: experiments.{name}.")
    assert wanted in text


@pytest.mark.parametrize(("name", "overrides", "wanted"), OVERRIDES, ids=lambda value: str(value)[:50])
def test_a_wrong_key_of_an_experiment_is_one_line_that_names_its_file(root, name, overrides, wanted):
    path = root / "config" / "experiments" / f"{name}.yaml"
    content = yaml.safe_load(path.read_text())
    for key, value in overrides.items():
        deep = isinstance(value, dict) and isinstance(content.get(key), dict) and key not in ("stepsizes", "model")
        content[key] = content[key] | value if deep else value
    path.write_text(yaml.safe_dump(content))
    text = message(root, overriding(name))
    assert text.startswith(f"{path}: ")
    assert wanted.replace(f"experiments.{name}.", f"{path}: ") in text


RUN_KEYS = [
    ({"experiments": {"cancer": None}}, "run: missing: this key must be given"),
    ({"run": "r"}, "experiments: missing: this key must be given"),
    ({"run": "r", "experiments": {}}, "experiments: {}: Dictionary should have at least 1 item"),
    ({"run": "r", "experiments": {"cancer": 3}}, "experiments.cancer: 3: Input should be a valid dictionary"),
    ({"run": "a/b", "experiments": {"cancer": None}}, "run: 'a/b': String should match pattern"),
    ({"run": "..", "experiments": {"cancer": None}}, "run: '..': String should match pattern"),
    ({"run": "r", "sed": 1, "experiments": {"cancer": None}}, "sed: 1: unknown key; see docs/configuration.md"),
    ({"run": "r", "seed": -1, "experiments": {"cancer": None}}, "seed: -1: Input should be greater than or equal to 0"),
    ({"run": "r", "threads": 0, "experiments": {"cancer": None}}, "threads: 0: Input should be greater than or equal"),
    ({"run": "r", "device": "tpu", "experiments": {"cancer": None}}, "device: 'tpu': String should match pattern"),
    (
        {"run": "r", "dtype": "float16", "experiments": {"cancer": None}},
        "dtype: 'float16': Input should be 'float32' or 'float64'",
    ),
    (
        {"run": "r", "memory_mb": 1, "experiments": {"cancer": None}},
        "memory_mb: 1: Input should be greater than or equal to 256",
    ),
    ({"run": "r", "data": {"proxy": "x"}, "experiments": {"cancer": None}}, "data.proxy: 'x': unknown key"),
    (
        {"run": "r", "experiments": {"nope": None}},
        "experiments.nope: no such experiment: must be one of cancer, pairs, patients",
    ),
    (
        {"run": "r", "experiments": {"../experiments/cancer": None}},
        "experiments.../experiments/cancer: no such experiment: must be one of cancer, pairs, patients",
    ),
    ("run: [unclosed", "file: not YAML: while parsing a flow sequence"),
    ("- 1\n- 2\n", "file: list: must be a mapping of keys to values"),
    ("", "file: NoneType: must be a mapping of keys to values"),
]


@pytest.mark.parametrize(("content", "wanted"), RUN_KEYS, ids=lambda value: str(value)[:50])
def test_a_wrong_run_file_is_one_line_that_names_it(root, content, wanted):
    assert message(root, content).startswith(f"{root}/config/run.yaml: {wanted}")


def test_a_missing_file_is_named(root):
    with pytest.raises(ConfigError, match=r"none\.yaml: file: missing: must be a readable YAML file"):
        load(root / "none.yaml", root)
    with pytest.raises(ConfigError, match=r"config: file: missing: must be a readable YAML file"):
        load(root / "config", root)


def test_bytes_that_are_no_text_are_named(root):
    path = root / "config" / "run.yaml"
    path.write_bytes(b"\xff\xfe\x00run")
    with pytest.raises(ConfigError, match=r"run\.yaml: file: not YAML"):
        load(path, root)


def test_several_mistakes_are_counted(root):
    text = message(root, overriding(epsilons=[0, -1], trials=0))
    assert text.endswith("epsilons[0]: 0: Input should be greater than 0 (and 2 more)")


def test_a_scheme_that_needs_a_count_says_so(root):
    assert "silos.count: None: must be given for iid" in message(root, overriding(silos={"scheme": "iid"}))


def test_a_long_value_is_cut(root):
    text = message(root, overriding(title=[1] * 500))
    assert len(text) < 300
    assert "..." in text


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


def test_a_section_that_is_replaced_is_the_run_files(root):
    text = message(root, overriding(model={"name": "perceptron"}))
    assert text.startswith(f"{root}/config/run.yaml: experiments.cancer.model.hidden: missing")


# What overrides do


def test_overrides_merge_sections_and_replace_lists(root):
    path = write(
        root,
        overriding(
            epsilons=[5.0],
            silos={"train_share": 0.5},
            trials_per_job=1,
            algorithms={"fed_spider": None, "local_sgd": {"private": "private"}},
        ),
    )
    found = load(path, root).experiments["cancer"]
    assert found.epsilons == [5.0]
    assert (found.silos.scheme, found.silos.train_share) == ("by_class", 0.5)
    assert found.trials_per_job == 1
    assert set(found.algorithms) == set(ALGORITHMS) - {"fed_spider"}
    assert found.algorithms["local_sgd"].private == "private"
    assert found.clips == [0.5, 5.0]


def test_an_override_of_null_takes_the_key_away(root):
    assert "epsilons: missing: this key must be given" in message(root, overriding(epsilons=None))
    found = load(write(root, overriding(phase_lengths=None)), root).experiments["cancer"]
    assert found.phase_lengths == [1]


def test_grids_and_models_are_replaced_as_a_whole(root):
    path = write(root, overriding("pairs", stepsizes={"low": -1, "high": 1, "points": 3}, model={"name": "softmax"}))
    found = load(path, root).experiments["pairs"]
    assert found.stepsizes == Grid(low=-1, high=1, points=3)
    assert found.model.name == "softmax"


def test_experiments_keep_the_run_files_order(root):
    path = write(root, {"run": "r", "experiments": {"patients": None, "cancer": {}, "pairs": None}})
    assert list(load(path, root).experiments) == ["patients", "cancer", "pairs"]


def test_what_is_recorded_can_be_loaded_again(root):
    resolved = load(write(root, overriding(clips=[1.0, math.inf])), root)
    text = json.dumps(resolved.dump())
    back = json.loads(text)
    again = Experiment.model_validate(back["experiments"]["cancer"])
    assert again == resolved.experiments["cancer"]
    assert back["run"] == "r"


def test_a_configuration_does_not_change_once_made():
    with pytest.raises(ValidationError):
        experiment().trials = 9
    with pytest.raises(ValidationError):
        Readings().batch = "per_eps"


# Values


def test_step_sizes():
    grid = Grid(low=-9, high=0, points=5)
    np.testing.assert_allclose(grid.values(), np.exp([-9, -6.75, -4.5, -2.25, 0]))
    np.testing.assert_allclose(grid.values("linear"), np.exp(-9) + (1 - np.exp(-9)) * np.arange(5) / 4)
    assert Grid(low=-9, high=0, points=5, spacing="linear").values() == grid.values("linear")
    assert Grid(low=-2, high=-2, points=1).values() == [pytest.approx(math.exp(-2))]
    assert sorted(grid.values()) == grid.values()


def test_readings_are_labelled_by_what_differs():
    config = experiment(
        readings={"output": "mean_of_last_8"},
        alternatives=[{"batch": "per_eps"}, {"resample": True, "standardise": "all"}, {"output": "mean_of_last_8"}],
    )
    found = config.variants()
    assert list(found) == ["", "batch=per_eps", "resample=true;standardise=all"]
    assert found["batch=per_eps"].output == "mean_of_last_8"
    assert found["resample=true;standardise=all"].resample


def test_a_reading_that_does_not_speak_to_an_algorithm_is_its_default():
    config = experiment(
        alternatives=[{"spider_q1_noise": "minibatch"}, {"fed_spider_releases": "2R-1"}, {"batch": "per_eps"}]
    )
    for label, trained in {
        "spider_q1_noise=minibatch": {"fedprox_spider"},
        "fed_spider_releases=2R-1": {"fed_spider"},
        "batch=per_eps": set(ALGORITHMS),
    }.items():
        assert {name for name in ALGORITHMS if config.trained_as(name, label) == label} == trained
        assert {config.trained_as(name, label) for name in set(ALGORITHMS) - trained} <= {""}
    assert all(config.trained_as(name, "") == "" for name in ALGORITHMS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_reading_is_trained_again_where_it_changes_a_plan_or_an_algorithm(name):
    """The list of whom a reading speaks to, held against what algorithms and plans do with it."""
    from silodp.training import Task

    choices = {
        "spider_q1_noise": "minibatch",
        "fed_spider_releases": "2R-1",
        "log_term": "1/delta",
        "batch": "per_eps",
        "records": "own",
    }
    for key, value in choices.items():
        config = experiment(alternatives=[{key: value}])
        (label,) = set(config.variants()) - {""}
        default, other = (Task("e", config, name, config.settings[0], one) for one in ("", label))
        for q in (1, 2):
            changes = default.plans(2.0, q, [169, 285]) != other.plans(2.0, q, [169, 285])
            assert not changes or config.trained_as(name, label) == label, (key, q)


# Files that are checked in


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_experiment_loads(path, tmp_path):
    found = load(write_run(tmp_path, path.stem)).experiments[path.stem]
    assert found.title
    assert found.paper
    assert path.read_text().splitlines()[0] == "# yaml-language-server: $schema=../schema.json"


def write_run(folder: Path, name: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({"run": "r", "experiments": {name: None}}))
    return path


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_run_file_loads(path):
    found = load(path)
    assert found.run.run == path.stem
    assert path.read_text().splitlines()[0] == "# yaml-language-server: $schema=schema.json"


def test_the_default_run_is_embedded():
    for name in ("smoke", "default"):
        for found in load(ROOT / "config" / f"{name}.yaml").experiments.values():
            assert DATASETS[found.dataset].embedded


def test_the_papers_breast_cancer_protocol():
    """Non-convex paper, Figure 8: 15 step sizes × 4 clips × 7 ε × q in 1..10, 10 trials, N = M = 2, R = 25."""
    found = load(ROOT / "config" / "default.yaml").experiments["wbcd_mlp"]
    np.testing.assert_allclose(found.stepsizes.values(), np.exp(np.linspace(-9, 0, 15)))
    assert found.clips == [0.1, 1, 5, 10]
    assert found.epsilons == [0.75, 1, 1.5, 3, 6, 12, 18]
    assert found.phase_lengths == list(range(1, 11))
    assert found.trials == 10
    assert [(s.M, s.R) for s in found.settings] == [(2, 25)]
    assert (found.batch_epsilon, found.log_term, found.delta) == (24, "2/delta", "1/n^2")
    assert set(found.algorithms) == {"minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider"}


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("config/schema.json", schema_text, "schema"),
        ("docs/configuration.md", reference_text, "reference"),
    ],
)
def test_generated_pages_have_not_drifted(file, text, command):
    path = ROOT / file
    assert path.is_file(), f"run `make docs`: {file} is missing"
    assert path.read_text(encoding="utf-8") == text(), (
        f"run `make docs`: {file} is not what `silodp config {command}` says"
    )


def test_the_schema_allows_the_checked_in_files_and_no_unknown_key():
    """With the validator that Snakemake brings along."""
    import jsonschema

    schema = json.loads(schema_text())
    validator = jsonschema.Draft202012Validator(schema)
    for path in EXPERIMENTS + RUNS:
        content = yaml.safe_load(path.read_text())
        assert validator.is_valid(content), path
        assert not validator.is_valid(content | {"epsilom": [1]}), path


def test_the_reference_names_every_key_with_its_meaning():
    text = reference_text()
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    keys = {line.split("`")[1] for line in lines}
    assert set(Experiment.model_fields) | set(Readings.model_fields) <= keys
    for line in lines:
        assert line.count("|") - line.count("\\|") == 5, line
    assert not os.path.isabs(text.split()[0])


def test_an_experiment_may_extend_another(root):
    """Keys are laid over the other's; None removes one."""
    text = "extends: cancer\nmodel: {name: logistic}\nphase_lengths: [3]\nalgorithms: {fed_spider: null}\n"
    (root / "config" / "experiments" / "again.yaml").write_text(text)
    found = load(write(root, {"run": "r", "experiments": {"cancer": None, "again": {"trials": 7}}}), root).experiments
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
