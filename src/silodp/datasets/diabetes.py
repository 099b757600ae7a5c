"""Diabetes progression: 442 patients, 10 features in their own units, target a score of progression after one year."""

from silodp.datasets.base import Dataset
from silodp.datasets.bundled import from_sklearn

DATASET = Dataset(
    name="diabetes",
    title="Diabetes progression",
    task="regression",
    embedded=True,
    licence="none stated; distributed with scikit-learn",
    citation="B. Efron, T. Hastie, I. Johnstone, R. Tibshirani, Least Angle Regression, Annals of Statistics 32 (2004)",
    records=442,
    features=10,
    # The scaled version was centred over all patients, test records included.
    loader=from_sklearn("load_diabetes", None, scaled=False),
)
