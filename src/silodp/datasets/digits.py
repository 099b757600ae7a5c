"""Optical recognition of handwritten digits: 1,797 grey 8×8 images with values 0..16, 10 classes."""

from pathlib import Path

import numpy as np

from silodp.datasets.base import Data, Dataset


def _load(files: dict[str, Path]) -> Data:
    from sklearn.datasets import load_digits  # slow to import, and needed here only

    bunch = load_digits()
    return Data(
        x=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.int64),
        classes=10,
        feature_names=tuple(str(name) for name in bunch.feature_names),
        class_names=tuple(str(name) for name in bunch.target_names),
    )


DATASET = Dataset(
    name="digits",
    title="Optical recognition of handwritten digits (test part, 8×8)",
    task="classification",
    embedded=True,
    licence="CC BY 4.0",
    citation="E. Alpaydin, C. Kaynak (1998), doi:10.24432/C50P49",
    records=1797,
    features=64,
    class_counts=(178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
    loader=_load,
)
