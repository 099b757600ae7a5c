"""Features as the experiments use them: standardised, reduced by PCA, with a constant column, by training records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

Standardise = Literal["train", "all", "none", "silo", "bounds"]


@dataclass(frozen=True)
class Fitted:
    """What was done to flat features (n, k), so that it can be done to others.

    `(clip(filled, low, high) - centre) / scale`, times `projection`, beside `constant` columns of ones.

    Attributes:
        fill: (k,), what stands for a missing value; NaN where nothing does.
        low, high: (k,), what values are cut to; infinite where they are not.
        centre, scale: (k,), or (silos, k) where each silo has its own.
        projection: (k, components) to principal components, whose own centre is part of `centre`; None without them.
        constant: 1 or 0.
    """

    fill: np.ndarray
    low: np.ndarray
    high: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    projection: np.ndarray | None
    constant: int


def preprocess(x: np.ndarray, train: np.ndarray, **how: Any) -> np.ndarray:
    """Prepare the features of one trial: what `fitted` gives without how it was done."""
    return fitted(x, train, **how)[0]


def fitted(
    x: np.ndarray,
    train: np.ndarray,
    *,
    standardise: Standardise = "train",
    pca: int | None = None,
    columns: Sequence[int] | None = None,
    constant_column: bool = False,
    silos: Sequence[tuple[np.ndarray, np.ndarray]] = (),
    bounds: Sequence[tuple[float, ...]] = (),
    fill: bool = False,
) -> tuple[np.ndarray, Fitted | None]:
    """Prepare the features of one trial, and say how others are prepared alike.

    Args:
        x: features, shape (n, features), or images, shape (n, channels, height, width).
        train: the numbers of the training records; a repeated one counts once.
        standardise: where mean and variance are taken from: "train", the training records; "all", every row of `x`,
            which lets test records into what is trained on (a reading of the released programs, shown as such);
            "none", nowhere; "silo", in each silo from its own training records; "bounds", no mean and variance:
            values are cut to given bounds and moved to [−1, 1]. PCA is fitted on the same records, on the training
            records with the last three.
        pca: the number of principal components to keep, None for all features as they are. Components are ordered by
            variance and signed so that the largest entry of each is positive: the same data give the same features.
        columns: the columns to standardise, None for all; the others stay as they are.
        constant_column: append a column of ones.
        silos: (training, test) records of each silo, for "silo"; no record in two of them.
        bounds: lowest and highest value of each of the columns, for "bounds".
        fill: a missing value, NaN, becomes the column's mean over the training records, and the middle of given bounds.

    Returns:
        float64 features, shape (n, k), and what was done to them. Images keep shape and dtype; each of their channels
        gets mean 0 and variance 1, and nothing is said of it.

    Only "none" and "bounds" without PCA are private: else the released quantities are functions of the silos' records
    and are not accounted for, as in the papers' experiments.

    Raises:
        ValueError: an option out of range, or one that does not fit images.
    """
    if standardise not in get_args(Standardise):
        raise ValueError(f"standardise is {standardise!r}; it must be train, all, none, silo or bounds")
    train = np.unique(train)
    if train.size == 0 or train[0] < 0 or train[-1] >= len(x):
        raise ValueError(f"train must hold record numbers from 0 to {len(x) - 1}, at least one")
    learnt = np.arange(len(x)) if standardise == "all" else train
    if x.ndim > 2:
        if standardise in ("silo", "bounds"):
            raise ValueError(f"standardise is {standardise!r}; it needs flat features, these are images")
        if pca is not None or columns is not None or constant_column:
            raise ValueError("pca, columns and constant_column need flat features; these are images")
        return x.copy() if standardise == "none" else _channels(x, learnt), None

    # With room for the constant column: a second copy of a million records would need their memory once more.
    whole = np.ones((len(x), x.shape[1] + constant_column))
    features = whole[:, : x.shape[1]]
    features[:] = x
    chosen = np.array(list(range(features.shape[1]) if columns is None else columns), dtype=np.int64)
    k = features.shape[1]
    missing, low, high = np.full(k, np.nan), np.full(k, -np.inf), np.full(k, np.inf)
    centre, scale = np.zeros(k), np.ones(k)
    if standardise == "bounds":
        low[chosen], high[chosen] = np.reshape(np.asarray(bounds, dtype=np.float64), (-1, 2)).T
        for place in chosen:
            features[:, place] = within(features[:, place], low[place], high[place])
        centre[chosen] = missing[chosen] = (low[chosen] + high[chosen]) / 2
        scale[chosen] = (high[chosen] - low[chosen]) / 2
    for place in np.flatnonzero(np.isnan(features).any(axis=0)) if fill else ():
        column = features[:, place]
        middle = 0.0 if standardise == "bounds" else np.nanmean(column[train])
        column[np.isnan(column)] = middle
        missing[place] = missing[place] if standardise == "bounds" else middle
    if standardise == "silo":
        centre, scale = np.tile(centre, (len(silos), 1)), np.tile(scale, (len(silos), 1))
        for number, silo in enumerate(silos):
            scaler = StandardScaler().fit(features[np.ix_(np.unique(silo[0]), chosen)])
            own = np.ix_(np.unique(np.concatenate(silo)), chosen)
            features[own] = scaler.transform(features[own])
            centre[number, chosen], scale[number, chosen] = scaler.mean_, scaler.scale_
    elif standardise in ("train", "all"):
        scaler = StandardScaler().fit(features[learnt][:, chosen])
        features[:, chosen] = scaler.transform(features[:, chosen])
        centre[chosen], scale[chosen] = scaler.mean_, scaler.scale_
    projection = None
    if pca is not None:
        most = min(len(learnt), k)
        if not 1 <= pca <= most:
            raise ValueError(f"pca is {pca}; it must lie between 1 and {most}")
        features, projection, mean = _principal(features, learnt, pca)
        centre = centre + scale * mean
        whole = np.column_stack([features, np.ones((len(features), int(constant_column)))])
    return whole, Fitted(missing, low, high, centre, scale, projection, int(constant_column))


def within(values: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    """Values cut to [low, high] and moved to [−1, 1]; NaN stays."""
    return 2 * (np.clip(values, low, high) - low) / (np.asarray(high) - low) - 1


def _principal(features: np.ndarray, learnt: np.ndarray, components: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Principal components (n, components), what takes centred features to them, and their centre."""
    # An eigendecomposition of the covariance: exact, without random starts, and quick when records outnumber features.
    model = PCA(components, svd_solver="covariance_eigh").fit(features[learnt])
    largest = np.abs(model.components_).argmax(axis=1)
    signs = np.sign(model.components_[np.arange(components), largest])
    return model.transform(features) * signs, model.components_.T * signs, model.mean_


def _channels(x: np.ndarray, learnt: np.ndarray) -> np.ndarray:
    """Images with mean 0 and variance 1 in each channel over the fitted records."""
    axes = (0, *range(2, x.ndim))
    mean = x[learnt].mean(axis=axes, keepdims=True, dtype=np.float64)
    # As a mean of squares, since a centred copy would need the images' memory once more.
    square = np.square(x[learnt]).mean(axis=axes, keepdims=True, dtype=np.float64)
    variance = square - mean**2
    # A channel of one value everywhere: what is left is rounding, which must not be blown up.
    deviation = np.sqrt(np.where(variance > 1e-12 * square, variance, 1.0))
    return (x - mean.astype(x.dtype)) / deviation.astype(x.dtype)
