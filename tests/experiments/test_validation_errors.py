"""Every wrong input is one line that names file, key, value and what is allowed."""

import math

import pytest
import yaml
from runfiles import message, overriding, project

from silodp.config.errors import ConfigError
from silodp.datasets import DATASETS
from silodp.experiments.validation import load


@pytest.fixture
def root(tmp_path):
    return project(tmp_path)


# What stands after the file and "experiments.<name>.".
OVERRIDES = [
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
    ("cancer", {"delta": "1/n"}, "delta: '1/n': Input should be a valid number"),
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
    # What passes for a number elsewhere, and sizes far beyond any use or below what floats can hold.
    ("cancer", {"trials": True}, "trials: True: Input should be a valid integer"),
    ("cancer", {"trials": "3"}, "trials: '3': Input should be a valid integer"),
    ("cancer", {"silos": {"mixed": True}}, "silos.mixed: True: Input should be a valid number"),
    ("cancer", {"trials": 10**7}, "trials: 10000000: Input should be less than or equal to 1000000"),
    ("cancer", {"stepsizes": {"low": 0, "high": 1, "points": 10**9}}, "stepsizes.points: 1000000000: Input should be"),
    ("cancer", {"preprocess": {"pca": 10**6}}, "preprocess.pca: 1000000: must be at most 30, the features of wbcd"),
    ("cancer", {"silos": {"train_share": 1 - 1e-13}}, "must leave at least one test record in each silo"),
    ("cancer", {"epsilons": [1e4]}, "epsilons[0]: 10000.0: Input should be less than 10000"),
    ("cancer", {"epsilons": [1e-320]}, "epsilons[0]: 1e-320: must be at least 1e-06"),
    ("cancer", {"delta": 1e-320}, "delta: 1e-320: must be at least 1e-30"),
    ("cancer", {"clips": [1e-320]}, "clips[0]: 1e-320: must be at least 1e-30"),
    ("cancer", {"title": "a\0b"}, "title: 'a\\x00b': must hold no control characters"),
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
        "silos.scheme: 'even': Input should be 'digit_pairs', 'by_class', 'sorted_target', 'iid', 'column' or "
        "'dirichlet'",
    ),
    ("cancer", {"label": "colour"}, "label: 'colour': Input should be 'class', 'parity' or 'target'"),
    ("cancer", {"device": "gpu"}, "device: 'gpu': String should match pattern '^(cpu|cuda(:\\d+)?)$'"),
    (
        "cancer",
        {"alternatives": [{"batch": "per_eps", "algorithms": ["adam"]}]},
        "alternatives[0].algorithms: 'adam': must be one of the experiment's: ",
    ),
    ("cancer", {"readings": {"batch": "max"}}, "readings.batch: 'max': Input should be 'eps_max' or 'per_eps'"),
    (
        "cancer",
        {"readings": {"clipping": "per_layer"}},
        "readings.clipping: 'per_layer': Input should be 'record', ",
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
    ("pairs", {"silos": {"official_test": True}}, "silos.official_test: True: must be false: digits has no test part"),
    # Races.
    (
        "cancer",
        {"tuning": "race", "reports": [{"selection": "pooled", "evaluation": "same"}]},
        "tuning: 'race': must be full where reports are any but {selection: pooled, evaluation: fresh}",
    ),
    (
        "cancer",
        {"tuning": "race", "trials": 2, "reports": [{"selection": "pooled", "evaluation": "fresh"}]},
        "trials: 2: must be more than the 2 numbers of race.kept",
    ),
    # Readings of silos that share records, or do not.
    (
        "patients",
        {"readings": {"split": "per_silo"}},
        "readings.split: 'per_silo': must be by_record for sorted_target, whose silos share no record",
    ),
    (
        "pairs",
        {"readings": {"standardise": "silo"}},
        "readings.standardise: 'silo': must be train or all where silos share records",
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


def test_a_key_of_thousands_of_letters_is_cut_short(root):
    text = message(root, overriding(algorithms={"local_sgd": {"x" * 5000: 1}}))
    assert "experiments.cancer.algorithms.local_sgd.xxx" in text
    assert len(text) < 800


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


def test_a_section_that_is_replaced_is_the_run_files(root):
    text = message(root, overriding(model={"name": "perceptron"}))
    assert text.startswith(f"{root}/config/run.yaml: experiments.cancer.model.hidden: missing")
