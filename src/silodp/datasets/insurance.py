"""Medical insurance charges: 1,338 records, 6 features, target the yearly charges in US dollars.

Sex, smoker and region are label-encoded in alphabetical order (female 0, male 1; no 0, yes 1; northeast 0 .. southwest
3), as in the convex paper's experiment; age and body mass index are the columns it standardises.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from silodp.datasets.base import Data, Dataset

FEATURES = ("age", "sex", "bmi", "children", "smoker", "region")
_ENCODED = {
    "sex": ("female", "male"),
    "smoker": ("no", "yes"),
    "region": ("northeast", "northwest", "southeast", "southwest"),
}


def _load(files: dict[str, Path]) -> Data:
    frame = pd.read_csv(files["insurance/insurance.csv"])
    for column, categories in _ENCODED.items():
        frame[column] = pd.Categorical(frame[column], categories=list(categories)).codes
    return Data(
        x=frame[list(FEATURES)].to_numpy(dtype=np.float64),
        y=frame["charges"].to_numpy(dtype=np.float64),
        classes=None,
        feature_names=FEATURES,
    )


DATASET = Dataset(
    name="insurance",
    title="Medical insurance charges",
    task="regression",
    embedded=False,
    licence="DbCL 1.0",
    citation="B. Lantz, Machine Learning with R, 1st edition, Packt (2013), chapter 6",
    records=1338,
    features=6,
    loader=_load,
    standardise_columns=("age", "bmi"),
)
