"""A silo's file as the run trains on it: read once by the agreed schema, drawn down to the declared size."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from silodp.config.errors import ConfigError
from silodp.datasets.base import Data
from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.schema import Schema
from silodp.federation.clipped_sums import Records
from silodp.partition.preprocessing import fitted, scale_to_bounds
from silodp.silos.federation_file import Federation, SiloFile


def read_silo_records(silo: SiloFile, federation: Federation) -> tuple[Records, list[str]]:
    """All records (x, y) in float64, in the file's order, and where they depart from the schema, counted.

    TableError, ConfigError: a line for each fault of a file, or one about too few records; none shows a cell.
    """
    schema, file = federation.records.in_form(silo.form), Path(silo.file)
    data, _ = read_records(file, schema)
    declared = federation.silos[silo.name].records
    if len(data.y) < declared:
        raise ConfigError(f"{file}: fewer records than silos.{silo.name}.records = {declared}: must have as many")
    bounds, places = federation.records.bounds, [data.feature_names.index(name) for name in schema.numbers]
    x = fitted(
        data.x,
        np.arange(len(data.y)),
        standardise="bounds",
        columns=places,
        bounds=[bounds[name] for name in schema.numbers],
        constant_column=federation.records.constant_column,
        fill=True,
    )
    y = torch.from_numpy(data.y if schema.classes else scale_to_bounds(data.y, *bounds[schema.target]))
    takes_classes = federation.model.name in ("softmax", "perceptron")
    return (torch.from_numpy(x), y if takes_classes else y.to(torch.float64)), list(_departures(data, schema, bounds))


def _departures(data: Data, schema: Schema, bounds: dict[str, list[float]]) -> Iterator[str]:
    values = {name: data.x[:, data.feature_names.index(name)] for name in schema.numbers}
    values |= {} if schema.classes else {schema.target: data.y}
    for name, column in values.items():
        if cut := int(((column < bounds[name][0]) | (column > bounds[name][1])).sum()):
            yield f"column {name!r}: {cut} of {len(column)} values are beyond its bounds, and are cut"
        if missing := int(np.isnan(column).sum()):
            yield f"column {name!r}: {missing} of {len(column)} values are missing, and are the middle of its bounds"
    for name, about in schema.features.items():
        values_of = about.values if about.type == "category" else ()
        places = [data.feature_names.index(f"{name}={value}") for value in values_of]
        if places and (unknown := int((data.x[:, places].sum(1) == 0).sum())):
            yield f"column {name!r}: {unknown} of {len(data.y)} values are no category of the schema, and count as none"
