"""Features as the experiments use them: standardised, reduced by PCA, with a constant column, by training records."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

Standardise = Literal["train", "all", "none", "silo", "bounds"]


def fitted(
    x: np.ndarray,
    train: np.ndarray,
    *,
    standardise: Standardise = "train",
    pca: int | None = None,
    columns: Sequence[int] | None = None,
    constant_column: bool = False,
    silos: Sequence[tuple[np.ndarray, np.ndarray]] = (),
    bounds: Sequence[Sequence[float]] = (),
    fill: bool = False,
) -> np.ndarray:
    """Prepare the features of one trial.

    Args:
        x: features (n, features), or images (n, channels, height, width).
        train: the numbers of the training records; a repeated number counts once.
        standardise: mean and variance of the "train" records, of "all" rows, of each "silo"'s training records, or
            "none"; "bounds" cuts values to given bounds and moves them to [−1, 1]. PCA is fitted on the same records.
        pca: the number of components, by variance and with the largest entry of each positive; None for no PCA.
        columns: the columns to standardise, None for all.
        silos: (training, test) records of each silo, for "silo"; no record in two of them.
        bounds: lowest and highest value of each of the columns, for "bounds".
        fill: a missing value, NaN, becomes the column's training mean, or the middle of given bounds.

    Returns float64 features (n, k); images keep shape and dtype, and each channel gets mean 0 and variance 1. Only
    "none" and "bounds" without PCA are private.
    """
    train = np.unique(train)
    learnt = np.arange(len(x)) if standardise == "all" else train
    if x.ndim > 2:
        return x.copy() if standardise == "none" else _channels(x, learnt)

    # With room for the constant column: a second copy of a million records would need their memory once more.
    whole = np.ones((len(x), x.shape[1] + constant_column))
    features = whole[:, : x.shape[1]]
    features[:] = x
    chosen = np.array(list(range(features.shape[1]) if columns is None else columns), dtype=np.int64)
    if standardise == "bounds":
        for place, (low, high) in zip(chosen, bounds, strict=True):
            features[:, place] = scale_to_bounds(features[:, place], low, high)
    for place in np.flatnonzero(np.isnan(features).any(axis=0)) if fill else ():
        column = features[:, place]
        column[np.isnan(column)] = 0.0 if standardise == "bounds" else np.nanmean(column[train])
    if standardise == "silo":
        for silo in silos:
            scaler = StandardScaler().fit(features[np.ix_(np.unique(silo[0]), chosen)])
            own = np.ix_(np.unique(np.concatenate(silo)), chosen)
            features[own] = scaler.transform(features[own])
    elif standardise in ("train", "all"):
        scaler = StandardScaler().fit(features[learnt][:, chosen])
        features[:, chosen] = scaler.transform(features[:, chosen])
    if pca is not None:
        # An eigendecomposition of the covariance: exact, without random starts, quick where records outnumber features.
        model = PCA(pca, svd_solver="covariance_eigh").fit(features[learnt])
        largest = np.abs(model.components_).argmax(axis=1)
        components = model.transform(features) * np.sign(model.components_[np.arange(pca), largest])
        return np.column_stack([components, np.ones((len(components), int(constant_column)))])
    return whole


def scale_to_bounds(values: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    """Values cut to [low, high] and moved to [−1, 1]; NaN stays."""
    return 2 * (np.clip(values, low, high) - low) / (np.asarray(high) - low) - 1


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
