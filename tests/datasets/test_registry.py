"""What every registered dataset must be, and the facts of each."""

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from silodp.datasets import DATASETS, label_classes, labels
from silodp.datasets.cifar10 import read_batch
from silodp.datasets.sources import sources

DOWNLOADED = sorted(name for name, dataset in DATASETS.items() if not dataset.embedded)


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_loaded_data_are_as_declared(name: str, needs_data: Callable[[str], Path]) -> None:
    dataset = DATASETS[name]
    data = dataset.load(None if dataset.embedded else needs_data(name))
    assert len(data.x) == len(data.y) == len(data.official_test) == dataset.records
    assert data.x.dtype in (np.float32, np.float64)
    assert np.isfinite(data.x).all()
    if dataset.task == "classification":
        assert data.y.dtype == np.int64
        assert tuple(np.bincount(data.y)) == dataset.class_counts
        classes = len(data.class_names)
        assert tuple(np.bincount(data.y[data.official_test], minlength=classes)) == (
            dataset.test_counts or (0,) * classes
        )
        assert tuple(np.bincount(data.y[~data.official_test])) == dataset.counts(official_test=True)
        assert data.classes == len(data.class_names) == len(np.bincount(data.y))
    else:
        assert data.y.dtype == np.float64
        assert data.classes is None is dataset.class_counts
    if data.x.ndim == 2:
        assert len(data.feature_names) == data.x.shape[1]
        assert len(data.columns(dataset.standardise_columns or data.feature_names)) >= 1


def test_insurance(needs_data: Callable[[str], Path]) -> None:
    data = DATASETS["insurance"].load(needs_data("insurance"))
    # First row of the file: 19, female, 27.9, 0, yes, southwest, 16884.924.
    assert data.x[0].tolist() == [19, 0, 27.9, 0, 1, 3]
    assert data.y[0] == 16884.924
    assert data.y.mean() == pytest.approx(13270.42, abs=0.005)
    assert data.x[:, data.columns(["smoker"])].sum() == 274
    assert data.columns(DATASETS["insurance"].standardise_columns or ()) == [0, 2]


def test_mnist(needs_data: Callable[[str], Path]) -> None:
    data = DATASETS["mnist"].load(needs_data("mnist"))
    assert data.x.shape == (70_000, 784)
    assert (data.x.min(), data.x.max()) == (0.0, 1.0)
    assert data.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.flatnonzero(data.official_test).tolist() == list(range(60_000, 70_000))
    assert np.bincount(data.y[data.official_test])[5] == 892
    assert labels(data, "parity")[:5].tolist() == [1, 0, 0, 1, 1]


def test_cifar10(needs_data: Callable[[str], Path]) -> None:
    data = DATASETS["cifar10"].load(needs_data("cifar10"))
    assert data.x.shape == (60_000, 3, 32, 32)
    training = data.x[~data.official_test]
    assert len(training) == 50_000
    assert training.mean(axis=(0, 2, 3), dtype=np.float64) == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)
    assert np.bincount(data.y[data.official_test]).tolist() == [1000] * 10
    assert data.class_names[0] == "airplane"


@pytest.mark.parametrize("name", DOWNLOADED)
def test_table_and_dataset_state_the_same_licence(name: str) -> None:
    known = sources(name)
    assert {source.licence for source in (*known.files, *known.archives.values())} == {DATASETS[name].licence}


def test_labels_are_classes_parities_or_targets() -> None:
    digits, diabetes = DATASETS["digits"].load(), DATASETS["diabetes"].load()
    assert label_classes(digits, "class") == 10
    assert label_classes(digits, "parity") == 2
    assert label_classes(diabetes, "target") is None
    np.testing.assert_array_equal(labels(digits, "parity"), digits.y % 2)
    np.testing.assert_array_equal(labels(diabetes, "target"), diabetes.y)


class _Harmful:
    def __reduce__(self) -> tuple:
        return os.mkdir, ("harm",)


@pytest.mark.parametrize("content", [_Harmful(), sys.exit, np.int64])
def test_unpickler_refuses_what_a_batch_does_not_need(content: object, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "batch").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(ValueError, match="is not allowed in a CIFAR-10 batch"):
        read_batch(tmp_path / "batch")
    assert not (tmp_path / "harm").exists()
