"""Features: fitted on training records, reproducible, and nothing of the test records in what is trained on."""

import numpy as np
import pytest

from silodp.datasets import DATASETS
from silodp.partition.preprocessing import fitted, scale_to_bounds

X = np.random.default_rng(3).normal(5.0, 2.0, size=(60, 6)) * np.arange(1, 7)
TRAIN = np.arange(40)


def test_training_records_are_standardised() -> None:
    out = fitted(X, TRAIN)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out[TRAIN].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(out[TRAIN].std(axis=0), 1)
    assert np.abs(out[40:].mean(axis=0)).max() > 0.01
    np.testing.assert_allclose(out[50], (X[50] - X[:40].mean(axis=0)) / X[:40].std(axis=0))


@pytest.mark.parametrize("pca", [None, 3])
def test_test_records_do_not_change_training_features(pca: int | None) -> None:
    changed = X.copy()
    changed[40:] *= 100
    np.testing.assert_array_equal(fitted(X, TRAIN, pca=pca)[:40], fitted(changed, TRAIN, pca=pca)[:40])
    with_all = [fitted(x, TRAIN, pca=pca, standardise="all")[:40] for x in (X, changed)]
    assert np.abs(with_all[0] - with_all[1]).max() > 0.1


def test_repeated_records_count_once() -> None:
    np.testing.assert_array_equal(fitted(X, np.concatenate([TRAIN, TRAIN[:9]])), fitted(X, TRAIN))


def test_columns_and_constant() -> None:
    out = fitted(X, TRAIN, columns=[0, 2], constant_column=True)
    assert out.shape == (60, 7)
    np.testing.assert_array_equal(out[:, [1, 3, 4, 5]], X[:, [1, 3, 4, 5]])
    np.testing.assert_allclose(out[TRAIN][:, [0, 2]].std(axis=0), 1)
    np.testing.assert_array_equal(out[:, 6], 1)


def test_constant_feature_is_finite() -> None:
    x = X.copy()
    x[:, 1] = 7
    assert not fitted(x, TRAIN)[:, 1].any()


def test_components_are_uncorrelated_ordered_and_signed() -> None:
    out = fitted(X, TRAIN, pca=4)
    covariance = np.cov(out[TRAIN].T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-12)
    assert (np.diff(np.diag(covariance)) < 0).all()
    standard = fitted(X, TRAIN)
    loadings = np.linalg.lstsq(standard[TRAIN], out[TRAIN], rcond=None)[0]
    largest = np.abs(loadings).argmax(axis=0)
    assert (loadings[largest, np.arange(4)] > 0).all()


def test_signs_do_not_depend_on_the_order_of_records() -> None:
    x = DATASETS["digits"].load().x
    order = np.random.default_rng(0).permutation(len(x))
    straight = fitted(x, np.arange(len(x)), pca=16)
    reordered = fitted(x[order], np.arange(len(x)), pca=16)
    np.testing.assert_allclose(reordered, straight[order], atol=1e-8)


def test_images_are_normalised_by_channel() -> None:
    x = np.random.default_rng(0).random((20, 3, 4, 4)).astype(np.float32) * np.array([1, 2, 5])[None, :, None, None]
    x = x.astype(np.float32)
    out = fitted(x, np.arange(15))
    assert (out.shape, out.dtype) == (x.shape, np.float32)
    np.testing.assert_allclose(out[:15].mean(axis=(0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(out[:15].std(axis=(0, 2, 3)), 1, atol=1e-5)
    np.testing.assert_array_equal(fitted(x, np.arange(15), standardise="none"), x)
    for value in (0, 7):
        x[:, 1] = value
        assert not fitted(x, np.arange(15))[:, 1].any(), "a channel of one value"


def test_given_bounds_cut_and_move_the_chosen_columns() -> None:
    x = np.array([[-3.0, 5.0, 7.0], [2.0, np.nan, 8.0], [9.0, 20.0, 9.0]])
    out = fitted(x, [0, 1], standardise="bounds", columns=[1, 0], bounds=[(10, 30), (0, 4)], constant_column=True)
    np.testing.assert_allclose(out, [[-1, -1, 7, 1], [0, np.nan, 8, 1], [1, 0, 9, 1]])
    filled = fitted(x, [0, 1], standardise="bounds", columns=[0, 1], bounds=[(0, 4), (10, 30)], fill=True)
    np.testing.assert_allclose(filled, [[-1, -1, 7], [0, 0, 8], [1, 0, 9]])
    np.testing.assert_allclose(scale_to_bounds(np.array([2.0, 3.0, 6.0]), 2.0, 5.0), [-1, -1 / 3, 1])
    with pytest.raises(ValueError, match="zip"):
        fitted(x, [0, 1], standardise="bounds", columns=[0, 1], bounds=[(0, 4)])


def test_missing_values_become_the_mean_of_the_training_records() -> None:
    x = np.array([[1.0, 5.0], [3.0, np.nan], [np.nan, 6.0], [100.0, 7.0]])
    out = fitted(x, [0, 1, 2], standardise="none", fill=True)
    np.testing.assert_array_equal(out, [[1, 5], [3, 5.5], [2, 6], [100, 7]])
    assert np.isnan(fitted(x, [0, 1, 2], standardise="none")).sum() == 2


def test_each_silo_is_standardised_by_its_training_records() -> None:
    silos = [(np.array([0, 1, 2, 2]), np.array([3, 4])), (np.array([10, 12, 14]), np.array([11]))]
    out = fitted(X, np.array([0, 1, 2, 10, 12, 14]), standardise="silo", columns=[1, 4], silos=silos)
    for train, test in silos:
        learnt = X[np.unique(train)]
        for column in (1, 4):
            mean, deviation = learnt[:, column].mean(), learnt[:, column].std()
            rows = np.concatenate([np.unique(train), test])
            np.testing.assert_allclose(out[rows, column], (X[rows, column] - mean) / deviation)
    np.testing.assert_array_equal(out[:, [0, 2, 3, 5]], X[:, [0, 2, 3, 5]])
