"""Wisconsin breast cancer, diagnostic: 569 records, 30 features; label 0 is malignant (212), 1 benign (357)."""

from pathlib import Path

import numpy as np

from silodp.datasets.base import Data, Dataset


def _load(files: dict[str, Path]) -> Data:
    from sklearn.datasets import load_breast_cancer  # slow to import, and needed here only

    bunch = load_breast_cancer()
    return Data(
        x=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.int64),
        classes=2,
        feature_names=tuple(str(name) for name in bunch.feature_names),
        class_names=tuple(str(name) for name in bunch.target_names),
    )


DATASET = Dataset(
    name="wbcd",
    title="Breast Cancer Wisconsin (Diagnostic)",
    task="classification",
    embedded=True,
    licence="CC BY 4.0",
    citation="W. Wolberg, O. Mangasarian, N. Street, W. Street (1993), doi:10.24432/C5DW2B",
    records=569,
    features=30,
    class_counts=(212, 357),
    loader=_load,
)
