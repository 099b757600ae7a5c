"""Records kept beside the silos: what training reads is what it would have made."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import patients
import pytest
import small
import torch
from jobs import CASES, data

from silodp.experiments.validation import load
from silodp.partition.experiment_data import dataset_of
from silodp.partition.partition import Partition, write_partition
from silodp.partition.trial_data import (
    STORED,
    Records,
    _narrow,
    draw_partition,
    partition_and_measure,
    prepare,
    read_records,
    stored_trials,
    to_tensors,
    write_records,
)


@pytest.mark.parametrize("case", CASES)
def test_a_job_gets_the_same_records_kept_or_made_again(tmp_path: Path, case: str) -> None:
    config, run = small.experiment(trials=2, **CASES[case]), small.run()
    records = data(config.dataset)
    parts, _, kept = partition_and_measure("small", config, config.readings, run, records)
    write_records(tmp_path / "kept", kept)
    write_records(tmp_path / "anew", [None, None])
    for folder in ("kept", "anew"):
        write_partition(tmp_path / folder, parts, y=records.y)
    assert read_records(tmp_path / "kept", 1) is not None
    assert read_records(tmp_path / "anew", 1) is None
    for trial, part in enumerate(parts):
        wanted = prepare(records, config, config.readings, part, run)
        for folder in ("kept", "anew"):
            found = stored_trials(tmp_path / folder, config, config.readings, run)(trial)
            assert (found.features, found.classes) == (wanted.features, wanted.classes)
            for a, b in zip(found.train + found.test, wanted.train + wanted.test, strict=True):
                assert a[0].dtype == b[0].dtype
                assert a[1].dtype == b[1].dtype
                assert torch.equal(a[0], b[0])
                assert torch.equal(a[1], b[1])


def test_every_trial_has_silos_of_its_own() -> None:
    config = small.experiment(trials=2)
    parts = partition_and_measure("small", config, config.readings, small.run(), data(config.dataset))[0]
    assert not np.array_equal(parts[0].train[0], parts[1].train[0])


def test_trials_keep_their_numbers_and_files_their_bytes(tmp_path: Path) -> None:
    records = Records(np.arange(6.0).reshape(3, 2), np.array([0, 1, 1]), 2)
    for name in ("one", "two"):
        write_records(tmp_path / name, [None, records])
    found = read_records(tmp_path / "one", 1)
    assert found is not None
    assert found.classes == 2
    np.testing.assert_array_equal(found.x, records.x)
    assert read_records(tmp_path / "one", 0) is None
    assert read_records(tmp_path / "no folder", 0) is None
    assert (tmp_path / "one" / "records.npz").read_bytes() == (tmp_path / "two" / "records.npz").read_bytes()


def test_images_and_wide_records_are_not_kept() -> None:
    y = np.zeros(2)
    assert Records(np.empty((2, STORED // 2)), y, None).small
    assert not Records(np.empty((2, STORED // 2 + 1)), y, None).small
    assert not Records(np.empty((2, 3, 4, 4)), y, 2).small


@pytest.mark.parametrize(("classes", "widest"), [(2, None), (None, None), (3, 341), (4, 256), (5, 204)])
def test_softmax_gets_narrow_records_where_its_weights_are_many(classes, widest) -> None:
    for width in (widest or 0, (widest or 3000) + 1):
        x = np.random.default_rng(0).normal(size=(3, max(width, 1)))
        narrow = _narrow(x, classes)
        if widest is None or width <= widest:
            assert narrow is x
            continue
        assert narrow.shape == (3, 49)
        np.testing.assert_allclose(narrow[:, 0], x[:, : -(-width // 49)].mean(1))


def test_a_feature_is_a_billion_at_most_and_finite() -> None:
    def made(value: float) -> float:
        part = Partition(((np.array([0]), np.array([1])),))
        records = Records(np.array([[value], [0.0]]), np.zeros(2), 2)
        return to_tensors(records, small.experiment(), part, small.run(dtype="float64")).train[0][0].item()

    assert [made(value) for value in (1e9, -1e9)] == [1e9, -1e9]
    for value in (np.nextafter(1e9, 2e9), np.nextafter(-1e9, -2e9), np.inf, np.nan):
        with pytest.raises(ValueError, match="features must be finite and at most 1e\\+09"):
            made(value)


def own_trial(folder: Path, **keys: object) -> tuple:
    """(data, silos, what makes tensors of such data) of an own file's first trial."""
    resolved = load(patients.run_file(folder, **keys))
    config = resolved.experiments["patients"]
    data = dataset_of(config).load()
    part = draw_partition("patients", config, config.readings, resolved.run, data, 0)
    return data, part, lambda of: prepare(of, config, config.readings, part, resolved.run)


@pytest.mark.parametrize("steps", [{"standardise": True}, {"standardise": "silo"}, {"standardise": True, "pca": 1}])
def test_what_is_trained_on_does_not_know_the_test_records(steps, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ages = np.where(np.arange(100) % 7 == 0, np.nan, 20.0 + 7 * np.arange(100) % 60)
    patients.write_records(tmp_path / "patients.csv", age=ages)
    dataset = patients.experiment()["dataset"] | {"missing": "mean"}
    data, part, made = own_trial(tmp_path, preprocess=steps, dataset=dataset)
    x = data.x.copy()
    x[np.concatenate(part.test)] *= 1e4
    for one, two in zip(made(data).train, made(replace(data, x=x)).train, strict=True):
        assert torch.equal(one[0], two[0])


def test_a_target_with_bounds_is_trained_within_minus_one_and_one(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    patients.write_records(tmp_path / "patients.csv", cost=np.arange(100.0))
    columns = {"hospital": "name", "age": "number", "smoker": "ignored", "readmitted": "ignored", "cost": "number"}
    dataset = {"file": "patients.csv", "target": "cost", "silo": "hospital", "columns": columns}
    steps = {"standardise": "bounds", "bounds": {"age": [0, 120], "cost": [20, 60]}, "constant_column": True}
    how = {"dataset": dataset, "preprocess": steps, "model": {"name": "linear"}, "label": "target"}
    data, part, made = own_trial(tmp_path, **how)
    for (_, y), records in zip(made(data).train, part.train, strict=True):
        np.testing.assert_allclose(y, (np.clip(data.y[records], 20, 60) - 40) / 20, atol=1e-6)
