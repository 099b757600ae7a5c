"""A name comes in; checked arrays of records go out: `DATASETS["mnist"].load()`, a file for each data set.

A data set is one file that declares `DATASET`, with its rows in `config/datasets.csv` where it must be downloaded;
or a plug-in (silodp.extending.plugins). Read `base.py` first, then `fetch.py`.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from silodp.datasets.base import Data, Dataset

__all__ = ["DATASETS", "Data", "Dataset", "label_classes", "labels"]

# Files of this folder that declare no dataset; those that download are slow to import.
_MACHINERY = frozenset({"base", "bundled", "cache", "fetch", "own", "rdatasets", "sources"})


def _scan() -> dict[str, Dataset]:
    """Every `DATASET` that a module of this folder declares, by name."""
    found: dict[str, Dataset] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name in _MACHINERY:
            continue
        dataset: Dataset = importlib.import_module(f"{__name__}.{module.name}").DATASET
        if dataset.name != module.name:
            raise ValueError(f"silodp/datasets/{module.name}.py declares {dataset.name!r}; it must be {module.name!r}")
        found[dataset.name] = dataset
    return dict(sorted(found.items()))


def labels(data: Data, kind: str) -> np.ndarray:
    """What a model is to predict, shape (n,): 0 (even) or 1 (odd) for the kind "parity", else `data.y` itself."""
    return data.y % 2 if kind == "parity" else data.y


def label_classes(data: Data, kind: str) -> int | None:
    """The number of different values `labels` gives, None for a target."""
    return 2 if kind == "parity" else data.classes


# Plug-ins enter theirs in the first; everything else reads the second.
REGISTERED = _scan()
DATASETS: Mapping[str, Dataset] = MappingProxyType(REGISTERED)
