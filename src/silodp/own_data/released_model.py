"""A released model: one file that knows its columns, and predicts.

model = silodp.load_model("model.npz")
predictions = model.predict(pandas.read_csv("new.csv"))
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from silodp.datasets.own.tabular import TableError, is_number, numbers
from silodp.federation.preprocessing import scale_to_bounds
from silodp.files import DamagedError, reading, write_atomically
from silodp.models import MODELS


@dataclass(frozen=True)
class ReleasedModel:
    """A model with what its columns mean.

    Attributes:
        weights: float64 (d,).
        about: `model` (name and options), `features` ([column, category or None] in the order of the weights), `bounds`
            and `categories` by column, `classes` (None for a regression), `target`, `missing`, `constant_column`, the
            `encoding` of text files, and what the card says of privacy.
    """

    weights: np.ndarray
    about: Mapping[str, Any]

    def save(self, path: Path) -> None:
        with write_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(handle, weights=self.weights, about=np.array(json.dumps(dict(self.about), ensure_ascii=False)))

    def unseen(self, frame: pd.DataFrame) -> dict[str, int]:
        known = self.about["categories"]
        return {name: int((~frame[name].astype(str).isin(known[name])).sum()) for name in known}

    def encoded(self, frame: pd.DataFrame) -> np.ndarray:
        """Features as in training, float64 (n, k); TableError without a cell for a column that does not fit."""
        features = []
        for name, category in self.about["features"]:
            if name not in frame:
                raise TableError(f"column {name!r}: missing: must be one of {', '.join(map(str, frame))}")
            if category is not None:
                features.append((frame[name].astype(str) == category).to_numpy(np.float64))
                continue
            if not is_number(frame[name]):
                raise TableError(f"column {name!r}: not numbers: must be numbers, as in training")
            values, bounds = numbers(frame[name]), self.about["bounds"].get(name)
            if infinite := int(np.isinf(values).sum()):  # bounds would cut them to an ordinary value
                raise TableError(f"column {name!r}: {infinite} values infinite: must be finite, or missing")
            values = values if bounds is None else scale_to_bounds(values, *bounds)
            if self.about["missing"] == "mean":
                values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
            if not np.isfinite(values).all():
                raise TableError(f"column {name!r}: {int((~np.isfinite(values)).sum())} values missing or infinite")
            features.append(values)
        features += [np.ones(len(frame))] * self.about["constant_column"]
        return np.column_stack(features)

    def predict(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A row a record: `predicted`, and for classes the probability of each."""
        x, classes = torch.from_numpy(self.encoded(frame)), self.about["classes"]
        options = {key: value for key, value in self.about["model"].items() if key != "name"}
        model = MODELS[self.about["model"]["name"]](x.shape[1], None if classes is None else len(classes), **options)
        outputs = model.outputs(torch.from_numpy(self.weights)[None], x)[0]
        if classes is None:
            values, bounds = outputs.numpy(), self.about["bounds"].get(self.about["target"])
            if bounds is not None:
                values = bounds[0] + (values + 1) / 2 * (bounds[1] - bounds[0])
            return pd.DataFrame({"predicted": values})
        chances = torch.softmax(outputs, 1) if outputs.ndim == 2 else torch.stack([-outputs, outputs], 1).sigmoid()
        table = pd.DataFrame({f"P({name})": chances[:, place].numpy() for place, name in enumerate(classes)})
        return pd.concat([pd.Series(np.array(classes)[chances.argmax(1).numpy()], name="predicted"), table], axis=1)


def load_model(path: Path | str) -> ReleasedModel:
    """The model of a file that `silodp release` wrote; ValueError for any other file."""
    try:
        with reading(path), np.load(path, allow_pickle=False) as file:
            return ReleasedModel(file["weights"], json.loads(str(file["about"])))
    except DamagedError as error:
        raise ValueError(f"{path}: not a model of silodp release ({type(error.__cause__).__name__})") from None
