"""MNIST: 60,000 training and 10,000 test images of handwritten digits, 28×28 grey values scaled to 0..1.

Records 0..59,999 are the training images in the order of their file; experiments cut silos from these.
"""

import gzip
from pathlib import Path

import numpy as np

from silodp.datasets.base import Data, Dataset


def read_idx(path: Path) -> np.ndarray:
    """Read a gzip-compressed IDX file of unsigned bytes: two zero bytes, type, rank, big-endian sizes, values."""
    with gzip.open(path, "rb") as stream:
        content = stream.read()
    rank = content[3]
    shape = tuple(np.frombuffer(content, dtype=">u4", count=rank, offset=4).tolist())
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)


def _load(files: dict[str, Path]) -> Data:
    images = [read_idx(files[f"mnist/{part}-images-idx3-ubyte.gz"]) for part in ("train", "t10k")]
    digits = [read_idx(files[f"mnist/{part}-labels-idx1-ubyte.gz"]) for part in ("train", "t10k")]
    pixels = np.concatenate(images).reshape(-1, 28 * 28)
    return Data(
        x=pixels.astype(np.float32) / np.float32(255),
        y=np.concatenate(digits).astype(np.int64),
        classes=10,
        feature_names=tuple(f"pixel_{row}_{column}" for row in range(28) for column in range(28)),
        official_test=np.repeat([False, True], [len(part) for part in images]),
        class_names=tuple(str(digit) for digit in range(10)),
    )


DATASET = Dataset(
    name="mnist",
    title="MNIST handwritten digits",
    task="classification",
    embedded=False,
    licence="CC BY-SA 3.0",
    citation="Y. LeCun, C. Cortes, C. J. C. Burges, The MNIST database of handwritten digits (1998)",
    records=70_000,
    features=784,
    class_counts=(6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
    test_counts=(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    loader=_load,
)
