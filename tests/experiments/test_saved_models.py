"""Saved models: the reported run's own, usable with the loader of the docs, with a card that says what holds."""

import re

import numpy as np
import pandas as pd
import pytest

from silodp.config.errors import project_root
from silodp.config.experiment import Experiment
from silodp.config.run import Run
from silodp.experiments.delivered import privacy_rows
from silodp.experiments.names import model_names
from silodp.experiments.other_epsilons import with_other_epsilons
from silodp.experiments.own_data import preprocessing_guarantee
from silodp.experiments.saved_models import save_models
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import run_trial
from silodp.federation.data_of import dataset_of, held_by_one
from silodp.federation.trial_data import partition_and_measure, prepare

RUN = Run.model_validate({"run": "own", "experiments": {"own": None}})


def loader():
    """`predict` as docs/owndata.md has it."""
    text = (project_root() / "docs" / "owndata.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len([line for line in code.splitlines() if line and not line.startswith("import")]) <= 10
    names: dict = {}
    exec(code, names)
    return names["predict"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    generator = np.random.default_rng(5)
    frame = pd.DataFrame({"silo": ["a"] * 60 + ["b"] * 90, "u": generator.normal(50, 20, 150)})
    frame["v"], frame["who"] = generator.choice(["x", "y"], 150), np.arange(150) // 2
    frame["y"] = np.where(frame["u"] + 20 * (frame["v"] == "x") + generator.normal(0, 9, 150) > 60, "ill", "well")
    frame.to_csv(folder / "own.csv", index=False)
    config = Experiment.model_validate(
        {
            "title": "Own",
            "dataset": {"file": str(folder / "own.csv"), "target": "y", "silo": "silo", "person": "who"},
            "preprocess": {"standardise": "bounds", "bounds": {"u": [-50, 150]}, "constant_column": True},
            "model": {"name": "logistic"},
            "settings": [{"M": 2, "R": 4}],
            "epsilons": [2.0],
            "trials": 1,
            "batch_share": 0.2,
            "stepsizes": {"low": 0, "high": 0, "points": 1},
            "clips": [1.0],
            "algorithms": {"minibatch_sgd": {}, "silo_only": {}},
            "readings": {"records": "own"},
            "allow_unproven": True,
        }
    )
    data = dataset_of(config).load()
    (part,), _, _ = partition_and_measure("own", config, config.readings, RUN, data)
    point = {"epsilon": 2.0, "stepsize": 1.0, "clip": 1.0, "phase_length": 1}
    about = {"experiment": "own", "reading": "", "M": 2, "R": 4, "trial": 0, "selection": "pooled"}
    chosen = pd.DataFrame([about | {"algorithm": name} | point for name in config.algorithms])
    sizes = [len(one) for one in part.train]
    privacy = with_other_epsilons(
        privacy_rows("own", config, chosen, sizes), "own", config, sizes, held_by_one(config, part)
    )
    save_models("own", config, RUN, data, part, chosen, privacy, folder / "models")
    return folder / "models", config, data, part, frame


def test_every_private_point_has_a_model_and_a_card(saved):
    folder, config, *_ = saved
    wanted = {f"{name}.{suffix}" for name in model_names(config) for suffix in ("npz", "md")}
    assert {path.name for path in folder.iterdir()} == wanted
    assert "minibatch_sgd_M2_R4_eps2.npz" in wanted


@pytest.mark.parametrize("name", ["minibatch_sgd", "silo_only"])
def test_the_loader_of_the_docs_has_the_reported_runs_error(saved, name):
    folder, config, data, part, _ = saved
    predict, path = loader(), folder / f"{name}_M2_R4_eps2.npz"
    task = Task("own", config, name, config.settings[0])
    points = pd.DataFrame([(2.0, 1.0, 1.0, 1)], columns=POINT)
    trained = run_trial(task, RUN, prepare(data, config, config.readings, part, RUN), 0, points, "fresh")
    errors = []
    for silo, test in enumerate(part.test):
        found = predict(path, data.x[test], silo if name == "silo_only" else ...)
        errors.append(np.mean(found != np.array(data.class_names)[data.y[test]]))
    assert np.mean(errors) == pytest.approx(trained["test_error"][0], abs=1e-12)


def test_the_card_says_what_is_guaranteed_to_whom_and_on_what_that_rests(saved):
    folder, *_ = saved
    text = (folder / "silo_only_M2_R4_eps2.md").read_text()
    assert "One model for each silo" in text
    assert "A person** with records in 2 silos at most, 2 in one" in text or "in 1 silo at most, 2 in one" in text
    assert "Preprocessing is private" in text
    assert "The seed of the run is secret" in text
    assert re.search(r"\(epsilon, delta\) = \([\d.]+, [\d.e-]+\)", text)
    assert "not proven" not in text
    assert "infinite" not in text


def test_no_cell_is_in_a_card(saved):
    folder, *_, frame = saved
    text = "".join(path.read_text() for path in folder.glob("*.md"))
    assert not [value for value in frame["u"] if f"{value:g}" in text or repr(value) in text]


@pytest.mark.parametrize(
    ("steps", "missing", "wanted"),
    [
        ({"standardise": "bounds", "bounds_from": "file"}, "refuse", "not private: bounds were read off"),
        ({"standardise": "bounds"}, "mean", "is private"),
        ({"standardise": "none"}, "mean", "Not so what fills in missing values"),
        ({"standardise": "train"}, "refuse", "not private: means and variances"),
        ({}, "refuse", "not private: means and variances"),
        ({"standardise": "none", "pca": 3}, "refuse", "not private: principal components"),
    ],
)
def test_preprocessing_is_called_what_it_is(steps, missing, wanted):
    assert wanted in preprocessing_guarantee(steps, missing)
