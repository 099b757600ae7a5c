"""Wisconsin breast cancer, diagnostic: 569 records, 30 features; label 0 is malignant (212), 1 benign (357)."""

from silodp.datasets.base import Dataset
from silodp.datasets.bundled import from_sklearn

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
    loader=from_sklearn("load_breast_cancer", 2),
)
