"""Datasets, one file each: `DATASETS["mnist"].load()`.

A dataset is added by adding one file that declares `DATASET`, and for one that must be downloaded its rows in
`config/datasets.csv`; or by a plug-in (silodp.experiments.plugins).
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from silodp.datasets.base import Data, Dataset

__all__ = ["DATASETS", "LABEL_KINDS", "Data", "Dataset", "label_classes", "labels"]

LABEL_KINDS = ("class", "parity", "target")

# Files of this folder that declare no dataset; those that download are slow to import.
_MACHINERY = frozenset({"addresses", "base", "cache", "download", "fetch", "own_file", "sources", "tabular"})


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
    """What a model is to predict, shape (n,).

    Args:
        data: the records; `data.y` keeps what silos are cut by, such as the digit.
        kind: "class" for `y` itself, "parity" for 0 (even) or 1 (odd), "target" for the target of a regression.
    """
    label_classes(data, kind)
    return data.y % 2 if kind == "parity" else data.y


def label_classes(data: Data, kind: str) -> int | None:
    """The number of different values `labels` gives, None for a target; ValueError when `kind` does not fit `data`."""
    if kind not in LABEL_KINDS:
        raise ValueError(f"label is {kind!r}; it must be one of {', '.join(LABEL_KINDS)}")
    if (kind == "target") != (data.classes is None):
        allowed = "target" if data.classes is None else "class or parity"
        raise ValueError(f"label is {kind!r}; this dataset allows {allowed}")
    return 2 if kind == "parity" else data.classes


# Plug-ins enter theirs in the first; everything else reads the second.
REGISTERED = _scan()
DATASETS: Mapping[str, Dataset] = MappingProxyType(REGISTERED)
