"""Data sets that ship with scikit-learn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from silodp.datasets.base import Data


def from_sklearn(function: str, classes: int | None, **options: Any) -> Callable[[dict[str, Path]], Data]:
    """A loader by a function of `sklearn.datasets`; `classes` is None for a regression."""

    def load(files: dict[str, Path]) -> Data:
        import sklearn.datasets  # slow to import, and needed here only

        bunch = getattr(sklearn.datasets, function)(**options)
        return Data(
            x=np.asarray(bunch.data, dtype=np.float64),
            y=np.asarray(bunch.target, dtype=np.int64 if classes else np.float64),
            classes=classes,
            feature_names=tuple(str(name) for name in bunch.feature_names),
            class_names=tuple(str(name) for name in bunch.target_names) if classes else (),
        )

    return load
