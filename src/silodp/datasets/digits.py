"""Optical recognition of handwritten digits: 1,797 grey 8×8 images with values 0..16, 10 classes."""

from silodp.datasets.base import Dataset
from silodp.datasets.bundled import from_sklearn

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
    loader=from_sklearn("load_digits", 10),
)
