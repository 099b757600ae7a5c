"""CIFAR-10: 50,000 training and 10,000 test colour images, shape (3, 32, 32), scaled to 0..1.

Records 0..49,999 are the training images in the order of their batches. The batches are pickles: they are read by an
unpickler that can rebuild an array and nothing else, so a file cannot run code even if its checksum were forged.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from silodp.datasets.base import Data, Dataset

_TRAINING = tuple(f"data_batch_{number}" for number in range(1, 6))


class _ArrayUnpickler(pickle.Unpickler):
    """Resolves the three names that a pickled array needs, under their old and new module, and refuses all others."""

    _ALLOWED = frozenset({("multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")})

    def find_class(self, module: str, name: str) -> Any:
        package, _, last = module.rpartition(".")
        if package not in ("", "numpy.core", "numpy._core") or (last, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a CIFAR-10 batch")
        # Under the old module name numpy 2 would warn.
        return super().find_class("numpy._core.multiarray" if name == "_reconstruct" else "numpy", name)


def read_batch(path: Path) -> dict[bytes, Any]:
    """Read one batch; ValueError when it holds anything but arrays, numbers, strings, lists and dictionaries."""
    try:
        with open(path, "rb") as stream:
            return _ArrayUnpickler(stream, encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError) as error:
        raise ValueError(f"{path}: not a CIFAR-10 batch: {error}") from error


def _load(files: dict[str, Path]) -> Data:
    folder = "cifar10/cifar-10-batches-py"
    names = read_batch(files[f"{folder}/batches.meta"])[b"label_names"]
    batches = [read_batch(files[f"{folder}/{name}"]) for name in (*_TRAINING, "test_batch")]
    x = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32).astype(np.float32)
    x /= 255  # in place: a second copy would take 737 MB
    sizes = [len(batch[b"labels"]) for batch in batches]
    return Data(
        x=x,
        y=np.concatenate([np.asarray(batch[b"labels"], dtype=np.int64) for batch in batches]),
        classes=10,
        official_test=np.repeat([False] * len(_TRAINING) + [True], sizes),
        class_names=tuple(name.decode("ascii") for name in names),
    )


DATASET = Dataset(
    name="cifar10",
    title="CIFAR-10",
    task="classification",
    embedded=False,
    licence="none stated; free for research with citation",
    citation="A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009)",
    records=60_000,
    features=3072,
    class_counts=(6_000,) * 10,
    test_counts=(1_000,) * 10,
    loader=_load,
    images=True,
)
