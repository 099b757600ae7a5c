"""Project STAR: 5,621 pupils of grade K in 74 schools; class: whether the mathematics score is at least 484.

484 is the median. Pupils with a score, whose features are all known, in schools with at least 50 of them.
Reading scores are left out.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from silodp.datasets.base import Data, Dataset
from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.parsing import read_table
from silodp.datasets.own.schema import Column, Schema
from silodp.datasets.rdatasets import to_csv

MEDIAN = 484
SCHEMA = Schema(
    target="math",
    silo="sch",
    columns={
        "sch": Column("name"),
        "math": Column("category", ("0", "1")),
        "cltype": Column("category", ("reg", "reg+A", "small")),
        "hdeg": Column("category", ("BS/BA", "Ed.S", "MA+", "MS/MA/MEd")),
        "exp": Column("number"),
        "ses": Column("boolean", ("F", "N")),
        "schtype": Column("category", ("inner", "rural", "suburb", "urban")),
        "sx": Column("boolean", ("F", "M")),
        "eth": Column("category", ("A", "B", "W")),
    },
)


def _load(files: dict[str, Path]) -> Data:
    (path,) = files.values()
    frame = read_table(path, SCHEMA.form)
    frame["math"] = (frame["math"].astype(int) >= MEDIAN).astype(int).astype(str)
    data = read_records(path, SCHEMA, frame)[0]
    return replace(data, x=data.x.astype(np.float32))


# Records of each silo.
_SIZES = (
    "66 52 95 58 59 54 117 100 119 51 56 56 58 55 105 72 79 99 78 71 130 87 63 58 50 135 130 52 59 50 108 103 "
    "69 60 64 93 60 66 66 71 69 75 60 55 55 68 58 71 137 53 53 76 96 61 96 55 67 72 53 112 91 89 97 55 94 78 "
    "108 64 75 82 97 59 62 54"
)

DATASET = Dataset(
    name="star",
    title="Project STAR, grade K",
    task="classification",
    embedded=False,
    licence="GPL (>= 2), of the R package mlmRev",
    citation="C. Achilles et al., Tennessee's Student Teacher Achievement Ratio project, 1985-1989; R package mlmRev",
    records=5621,
    features=17,
    class_counts=(2816, 2805),
    standardise_columns=("exp",),
    silo_records=tuple(map(int, _SIZES.split())),
    loader=_load,
    converted=partial(to_csv, columns=tuple(SCHEMA.columns), rows="gr == 'K'", least=50),
)
