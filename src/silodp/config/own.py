"""The keys of your own data file."""

from typing import Literal

from pydantic import Field

from silodp.config.types import Count, Strict


class OwnData(Strict):
    """A CSV or Parquet file with one record a row."""

    file: str = Field(min_length=1, max_length=1000, description="its path, relative to the run file")
    target: str = Field(description="column that is predicted")
    silo: str | None = Field(None, description="column that names a record's silo; default: silos cut by `silos`")
    person: str | None = Field(None, description="column that names a record's person; default: a record a person")
    person_limit: Count = Field(
        20,
        description="records of a person in all silos; of more records this many are drawn",
    )
    categories: dict[str, list[str]] = Field(
        default={}, description="column of words -> its categories, known beforehand; default: read off the records"
    )
    classes: list[str] | None = Field(
        None, min_length=2, description="classes of the target, known beforehand; default: read off the records"
    )
    sizes: dict[str, Count] = Field(
        default={}, description="silo -> number of records, drawn anew, that a release trains on; default: all"
    )
    ignore: list[str] = Field(default=[], description="columns that are not used")
    missing: Literal["refuse", "drop", "mean"] = Field(
        "refuse", description="a missing value: refuse the file, drop the record, or take the training mean"
    )
    encoding: str | None = Field(None, description="of a text file, as in latin-1; default: UTF-8")
    task: Literal["classification", "regression"] | None = Field(None, description="default: inferred from the target")
