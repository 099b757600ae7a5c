"""Diabetes progression: 442 patients, 10 features in their own units, target a score of progression after one year."""

from pathlib import Path

import numpy as np

from silodp.datasets.base import Data, Dataset


def _load(files: dict[str, Path]) -> Data:
    from sklearn.datasets import load_diabetes  # slow to import, and needed here only

    # scikit-learn's scaled version was centred over all patients, test records included.
    bunch = load_diabetes(scaled=False)
    return Data(
        x=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.float64),
        classes=None,
        feature_names=tuple(str(name) for name in bunch.feature_names),
    )


DATASET = Dataset(
    name="diabetes",
    title="Diabetes progression",
    task="regression",
    embedded=True,
    licence="none stated; distributed with scikit-learn",
    citation="B. Efron, T. Hastie, I. Johnstone, R. Tibshirani, Least Angle Regression, Annals of Statistics 32 (2004)",
    records=442,
    features=10,
    loader=_load,
)
