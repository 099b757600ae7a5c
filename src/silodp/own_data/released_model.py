"""A released model: one file that knows its columns and how to read them, and predicts.

model = silodp.load_model("model.npz")
predictions = model.predict(pandas.read_csv("new.csv", dtype=str))   # text: a column of types has lost its zeros
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from silodp.config.loading import composed
from silodp.datasets.own.encoding import encode_features, is_missing
from silodp.datasets.own.parsing import UNKNOWN, parse_column, read_table, records_of
from silodp.datasets.own.schema import Schema, TableError, schema_from
from silodp.files import reading, write_atomically
from silodp.models import MODELS
from silodp.partition.preprocessing import scale_to_bounds

FORMAT = 2


@dataclass(frozen=True)
class ReleasedModel:
    """A model with what its columns mean.

    Attributes:
        weights: float64 (d,), in the order of `schema.feature_values`.
        about: `model` (name and options), `bounds` by column, `constant_column`, and what the card says of privacy.
    """

    weights: np.ndarray
    about: Mapping[str, Any]
    schema: Schema

    def save(self, path: Path) -> None:
        stored = {**self.about, "format": FORMAT, "schema": self.schema.as_json()}
        with write_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(handle, weights=self.weights, about=np.array(json.dumps(stored, ensure_ascii=False)))

    def in_form(self, **form: Any) -> "ReleasedModel":
        """The model for files that are written otherwise: keys of `Form`."""
        return replace(self, schema=replace(self.schema, form=replace(self.schema.form, **form)))

    def read_records(self, path: Path) -> pd.DataFrame:
        """The rows of a file by the schema; other columns than features may be there or not."""
        schema = replace(self.schema, form=replace(self.schema.form, last_row=None))
        return records_of(path, read_table(path, schema.form, least=1), schema)

    def predict(self, frame: pd.DataFrame, unknown: str = "empty", source: Path = Path("records")) -> pd.DataFrame:
        """A row a record: `predicted`, and for classes the probability of each.

        A row with a word that the schema does not have is empty; with `unknown` "zero" a category that it does not
        have is 0 in all columns of a feature with more than two values. `attrs["unknown"]`: how many rows, by column.
        A number beyond its bounds takes the nearer one; `attrs["cut"]`: its rows, by column.
        TableError without a cell for a column that does not fit.
        """
        frame = frame.rename(columns=composed).reset_index(drop=True)
        schema, empty = self.schema, np.zeros(len(frame), dtype=bool)
        parsed: dict[str, np.ndarray] = {}
        counts: dict[str, int] = {}
        cut: dict[str, list[int]] = {}
        for name, column in schema.features.items():
            if name not in frame:
                allowed = ", ".join(map(str, frame)) + " (or --separator be given)" * (frame.shape[1] == 1)
                raise TableError(f"{source}: column {name!r}: missing: must be one of {allowed}")
            values = parse_column(frame, name, schema, source)
            absent, strange = is_missing(values), (values == UNKNOWN) & (column.type != "number")
            if absent.any() and schema.missing != "mean":
                raise TableError(f"{source}: row {int(np.argmax(absent)) + 1}, column {name!r}: missing: must be given")
            counts |= {name: int(strange.sum())} if strange.any() else {}
            empty |= strange & (unknown == "empty" or len(column.values) <= 2)
            parsed[name] = values
        x = encode_features(parsed, schema)
        for place, (name, _) in enumerate(schema.feature_values):
            if name in self.about["bounds"]:
                low, high = self.about["bounds"][name]
                if (outside := (x[:, place] < low) | (x[:, place] > high)).any():
                    cut[name] = (np.flatnonzero(outside) + 1).tolist()
                x[:, place] = scale_to_bounds(x[:, place], low, high)
        x = np.where(np.isnan(x), 0.0, x)
        table = self._outputs(np.column_stack([x, *[np.ones(len(x))] * self.about["constant_column"]]))
        table.loc[empty] = None
        table.attrs |= {"unknown": counts, "cut": cut}
        return table

    def _outputs(self, x: np.ndarray) -> pd.DataFrame:
        classes, options = self.schema.classes, dict(self.about["model"])
        model = MODELS[options.pop("name")](x.shape[1], len(classes) or None, **options)
        outputs = model.outputs(torch.from_numpy(self.weights)[None], torch.from_numpy(x))[0]
        if not classes:
            values, bounds = outputs.numpy(), self.about["bounds"].get(self.schema.target)
            return pd.DataFrame({"predicted": values if not bounds else _outside(values, *bounds)})
        chances = torch.softmax(outputs, 1) if outputs.ndim == 2 else torch.stack([-outputs, outputs], 1).sigmoid()
        table = pd.DataFrame({f"P({name})": chances[:, place].numpy() for place, name in enumerate(classes)})
        return pd.concat([pd.Series(np.array(classes)[chances.argmax(1).numpy()], name="predicted"), table], axis=1)


def _outside(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """From [−1, 1] to a target's bounds."""
    return low + (values + 1) / 2 * (high - low)


def load_model(path: Path | str) -> ReleasedModel:
    """The model of a file that `silodp federate` wrote; ValueError for any other file."""
    try:
        with reading(path), np.load(path, allow_pickle=False) as file:
            weights, about = file["weights"], json.loads(str(file["about"]))
            if (version := about.pop("format")) == FORMAT:
                return ReleasedModel(weights, about, schema_from(about.pop("schema")))
    except (ValueError, KeyError, EOFError, OSError, TypeError) as error:
        raise ValueError(f"{path}: not a model of silodp ({type(error.__cause__ or error).__name__})") from None
    raise ValueError(f"{path}: format: {version}: must be {FORMAT}")
