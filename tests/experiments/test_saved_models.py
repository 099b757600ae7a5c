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


def write_own(path):
    """150 records of two silos, 75 persons, one number that is missing."""
    generator = np.random.default_rng(5)
    frame = pd.DataFrame({"silo": ["a"] * 60 + ["b"] * 90, "u": generator.normal(50, 20, 150)})
    frame["v"], frame["who"] = generator.choice(["x", "y"], 150), np.arange(150) // 2
    frame["w = z"] = generator.choice(["one", "two = 2", "three"], 150)
    frame["t"] = generator.normal(0, 1, 150) + 0.02 * frame["u"]
    frame["y"] = np.where(frame["u"] + 20 * (frame["v"] == "x") + generator.normal(0, 9, 150) > 60, "ill", "well")
    frame["cost"] = 3 * frame["u"] + generator.normal(0, 9, 150)
    frame.loc[7, "t"] = np.nan
    frame.to_csv(path, index=False)
    return frame


BOUNDS = {"standardise": "bounds", "bounds": {"u": [-50, 150], "t": [-5, 5]}, "constant_column": True}


def save_own(folder, preprocess, model="logistic", target="y"):
    """Models of an experiment on the file of `write_own`, trained in a moment."""
    frame = write_own(folder / "own.csv")
    own = {"file": str(folder / "own.csv"), "target": target, "silo": "silo", "person": "who", "missing": "mean"}
    config = Experiment.model_validate(
        {
            "title": "Own",
            "dataset": own | {"ignore": ["cost" if target == "y" else "y"]},
            "preprocess": preprocess,
            "model": {"name": model},
            "label": "class" if target == "y" else "target",
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


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save_own(tmp_path_factory.mktemp("own"), BOUNDS)


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
    rows = pd.read_csv(config.dataset.file)
    errors = []
    for silo, test in enumerate(part.test):
        found = predict(path, rows.iloc[test], silo if name == "silo_only" else None)
        errors.append(np.mean(found != rows["y"].iloc[test]))
    assert np.mean(errors) == pytest.approx(trained["test_error"][0], abs=1e-12)
    if name == "silo_only":
        with pytest.raises(TypeError):
            predict(path, rows)


WAYS = [
    ({"standardise": "none"}, "logistic", "y", "fill"),
    ({"standardise": "train", "constant_column": True}, "logistic", "y", "centre, scale, fill"),
    ({"standardise": "silo"}, "softmax", "y", "centre, scale, fill; centre and scale silo by silo"),
    ({"standardise": "silo", "pca": 3, "constant_column": True}, "linear", "cost", "centre, scale, fill, projection; "),
    ({"pca": 2}, "softmax", "y", "centre, scale, fill, projection"),
    (
        BOUNDS | {"bounds_from": "file", "bounds": BOUNDS["bounds"] | {"cost": [-99, 400]}},
        "linear",
        "cost",
        "low, high, ",
    ),
]


@pytest.mark.parametrize(("steps", "model", "target", "told"), WAYS, ids=lambda value: str(value)[:40])
def test_a_model_does_to_new_rows_what_was_done_in_training_and_its_card_says_what_that_tells(
    tmp_path, steps, model, target, told
):
    folder, config, data, part, _ = save_own(tmp_path, steps, model, target)
    trained, predict = prepare(data, config, config.readings, part, RUN), loader()
    rows = pd.read_csv(config.dataset.file, dtype={"who": str})[::-1].drop(columns=[target])
    for name, silo in ((name, silo) for name in config.algorithms for silo in range(2)):
        path = folder / f"{name}_M2_R4_eps2.npz"
        with np.load(path) as file:
            alone = name == "silo_only"
            weight, bias = (file[one][silo] if alone else file[one] for one in ("weight", "bias"))
        scores = trained.test[silo][0].numpy() @ weight.T + bias
        found = predict(path, rows.loc[part.test[silo]], silo)
        if target == "cost":
            wanted = scores * 249.5 + 150.5 if steps["standardise"] == "bounds" else scores
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        else:
            wanted = scores.argmax(1) if model == "softmax" else (scores > 0) * 1
            assert (found == np.array(["ill", "well"])[wanted]).all()
        text = path.with_suffix(".md").read_text()
        assert f"The model's file holds them ({told}" in " ".join(text.split())
        assert "not private" in text or "Not so what fills" in text


def test_bounds_that_were_known_tell_nothing(saved):
    assert "The model's file holds them" not in (saved[0] / "silo_only_M2_R4_eps2.md").read_text()


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
