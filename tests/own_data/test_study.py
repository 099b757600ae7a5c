"""A study of one's own data: its baselines and models against errors that are worked out beside it."""

import numpy as np
import pandas as pd
import patients
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from silodp.experiments.validation import load
from silodp.own_data.study import study
from silodp.partition.experiment_data import dataset_of
from silodp.partition.trial_data import partition_and_measure, prepare

ALGORITHMS = ("minibatch_sgd", "silo_only", "mr_mtl")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """(the study, records of its trials) of two hospitals."""
    folder = tmp_path_factory.mktemp("study")
    patients.write_records(folder / "patients.csv", {"North": 90, "South": 60})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        path = patients.run_file(folder, trials=2, algorithms={name: {} for name in ALGORITHMS})
        resolved = load(path)
        config = resolved.experiments["patients"]
        data = dataset_of(config).load()
        parts = partition_and_measure("patients", config, config.readings, resolved.run, data)[0]
        prepared = [prepare(data, config, config.readings, part, resolved.run) for part in parts]
        run = {"experiment": "patients", "reading": "", "M": 2, "R": 4}
        point = {"stepsize": 0.5, "clip": 1.0, "phase_length": 1}
        rows = pd.DataFrame([run | point | {"algorithm": name, "epsilon": 4.0} for name in ALGORITHMS])
        table = rows.assign(train_loss_mean=0.5, edge="", diverged=0)
        return study("patients", config, resolved.run, data, table, rows, prepared.__getitem__), prepared


def model(found, name):
    (only,) = [one for one in found[0]["models"] if one["name"] == name]
    return only


def records(prepared, kind):
    x, y = zip(*((x.double().numpy(), y.double().numpy()) for x, y in getattr(prepared, kind)), strict=True)
    return list(x), list(y)


def test_guessing_says_the_most_frequent_class(found):
    errors = []
    for prepared in found[1]:
        most = np.bincount(np.concatenate(records(prepared, "train")[1]).astype(int)).argmax()
        errors.append(np.mean([(y != most).mean() for y in records(prepared, "test")[1]]))
    assert model(found, "guess")["errors"] == pytest.approx(errors)


def test_the_pooled_fit_is_that_of_scikit_learn_with_silos_that_count_alike(found):
    errors = []
    for prepared in found[1]:
        x, y = records(prepared, "train")
        weights = np.concatenate([np.full(len(one), sum(map(len, y)) / len(one) / 2) for one in y])
        made = make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000))
        made.fit(np.concatenate(x), np.concatenate(y), logisticregression__sample_weight=weights)
        pairs = zip(*records(prepared, "test"), strict=True)
        errors.append(np.mean([(made.predict(one) != said).mean() for one, said in pairs]))
    assert model(found, "pooled")["errors"] == pytest.approx(errors)


@pytest.mark.parametrize("name", ["guess", "pooled", "best silo", *ALGORITHMS])
def test_errors_of_silos_and_classes_say_the_same_as_the_error(found, name):
    one, tested = model(found, name), [[len(y) for y in records(p, "test")[1]] for p in found[1]]
    assert len(one["silos"]) == 2
    assert np.mean(one["silos"]) == pytest.approx(one["error"])
    table = np.array(one["confusion"])
    assert table.sum() == one["most"][1] == np.sum(tested)
    wrong = np.sum(table) - np.trace(table)
    assert wrong == pytest.approx(sum(np.multiply(one["silos"], np.sum(tested, axis=0))))
