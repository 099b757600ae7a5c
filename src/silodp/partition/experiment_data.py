"""The data behind an experiment: a registered data set, or a user's file with its silos."""

import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from silodp.config.errors import ConfigError
from silodp.config.experiment import Experiment, Partitioning
from silodp.config.types import OwnData
from silodp.datasets import DATASETS, Data, Dataset
from silodp.partition.partition import Partition, dirichlet, multiplicity, sharing

if TYPE_CHECKING:
    from silodp.datasets.own.schema import Schema


def dataset_of(config: Experiment) -> Dataset:
    """The experiment's data set, known but not loaded; a user's file is read; ValueError where it is unusable."""
    if isinstance(config.dataset, str):
        return _registered(DATASETS[config.dataset], config.silos)
    state = Path(config.dataset.file).stat() if Path(config.dataset.file).is_file() else None
    changed = (state.st_mtime_ns, state.st_size) if state else None
    return _own_dataset(config.dataset.model_dump_json(), config.silos.model_dump_json(), changed)


def number_of_silos(config: Experiment) -> int:
    """N, as the scheme, the config or the silos of the data fix it; known before records are read."""
    if config.silos.scheme == "digit_pairs":
        return 25
    dataset = dataset_of(config)
    if dataset.silo_records is not None:
        return len(dataset.silo_records)
    return config.silos.count or len(dataset.class_counts or ())


def _registered(dataset: Dataset, plan: Partitioning) -> Dataset:
    """A registered data set, with the silos that its records name, or with Dirichlet silos, where asked for."""
    counts, N, alpha = dataset.class_counts, plan.count, plan.alpha
    if plan.scheme == "dirichlet" and counts and N and alpha:
        cut = tuple(min(count, plan.per_class or count) for count in counts)
        sizes = np.bincount(dirichlet(np.repeat(np.arange(len(cut)), cut), len(cut), N, alpha), minlength=N).tolist()
        read = dataset.loader

        def loaded(files: dict[str, Path]) -> Data:
            data = read(files)
            place_in_class = pd.Series(data.y).groupby(data.y).cumcount().to_numpy()
            data = _records(data, place_in_class < (plan.per_class or len(data.y)))
            return replace(data, silo=dirichlet(data.y, data.classes, N, alpha))

        return replace(dataset, records=sum(cut), class_counts=cut, silo_records=tuple(sizes), loader=loaded)
    if dataset.silo_records is None:
        return dataset
    if plan.scheme != "column":
        return replace(dataset, silo_records=None)
    kept, every = tuple(n for n in dataset.silo_records if n >= (plan.least or 1)), dataset.loader
    return replace(dataset, records=sum(kept), silo_records=kept, loader=lambda files: _only(every(files), plan.least))


@functools.cache
def _own_dataset(source: str, silos: str, changed: tuple[int, int] | None) -> Dataset:
    """What is known of a file in the state `changed`; the records themselves are not kept."""
    own, plan = OwnData.model_validate_json(source), Partitioning.model_validate_json(silos)
    data, numbers = _load(own, plan)
    counted = np.bincount(data.y, minlength=data.classes) if data.classes else None
    return Dataset(
        name=Path(own.file).stem,
        title=Path(own.file).name,
        task="regression" if data.classes is None else "classification",
        embedded=True,
        licence="the owner's",
        citation="",
        records=len(data.y),
        features=data.x.shape[1],
        loader=lambda files: _load(own, plan)[0],
        class_counts=None if counted is None else tuple(counted.tolist()),
        standardise_columns=numbers,
        silo_records=tuple(np.bincount(data.silo).tolist()) if len(data.silo) else None,
        person_spread=_person_spread(plan, data),
    )


def _load(own: OwnData, plan: Partitioning) -> tuple[Data, tuple[str, ...]]:
    """Records and their features that are numbers; silos as the experiment has them."""
    from silodp.datasets.own.encoding import read_records  # pyarrow's readers are slow to import

    schema = schema_of(own)
    data, numbers = read_records(Path(own.file), schema)[0], schema.numbers
    data = limit_person_records(data, own.person_limit)
    if plan.scheme == "dirichlet":
        return replace(data, silo=dirichlet(data.y, data.classes, plan.count or 1, plan.alpha or 1.0)), numbers
    if plan.scheme != "column" or not len(data.silo):
        return replace(data, silo=np.zeros(0, dtype=np.int64)), numbers
    kept = _only(data, plan.least)
    if not len(kept.y):
        raise ConfigError(f"{own.file}: column {own.silo!r}: no silo has silos.least = {plan.least} records")
    return kept, numbers


def schema_of(own: OwnData) -> "Schema":
    """The schema of the run file."""
    from silodp.datasets.own.schema import Form, Schema, column_from

    columns = {name: column_from(**column.model_dump()) for name, column in own.columns.items()}
    return Schema(own.target, columns, Form(**own.form.model_dump()), own.silo, own.person, own.missing)


def _only(data: Data, least: int | None) -> Data:
    """The records of silos that have at least `least`, silos numbered anew."""
    large = np.bincount(data.silo) >= (least or 1)
    if large.all():
        return data
    found = _records(data, large[data.silo])
    names = tuple(name for name, one in zip(data.silo_names, large, strict=False) if one)
    return replace(found, silo=(np.cumsum(large) - 1)[found.silo], silo_names=names)


def _records(data: Data, kept: np.ndarray) -> Data:
    arrays = {name: getattr(data, name) for name in ("x", "y", "official_test", "silo", "person")}
    return replace(data, **{name: values[kept] for name, values in arrays.items() if len(values)})


def limit_person_records(data: Data, limit: int) -> Data:
    """At most `limit` records of each person, drawn by their places in the file alone, and so always the same."""
    if not len(data.person) or np.bincount(data.person).max() <= limit:
        return data
    order = np.random.default_rng(0).permutation(len(data.person))
    kept = np.empty(len(order), dtype=bool)
    kept[order] = pd.Series(data.person[order]).groupby(data.person[order]).cumcount().to_numpy() < limit
    return _records(data, kept)


def _person_spread(plan: Partitioning, data: Data) -> tuple[int, int] | None:
    """In how many silos a person's records lie at most, and how many in one."""
    if not len(data.person):
        return None
    most = int(np.bincount(data.person).max())
    if not len(data.silo):
        # Silos are cut anew in every trial.
        return min(most, plan.count or len(np.unique(data.y))), most
    pairs, counts = np.unique(np.stack([data.person, data.silo]), axis=1, return_counts=True)
    return int(np.bincount(pairs[0]).max()), int(counts.max())


def measure_person_spread(config: Experiment, part: Partition) -> tuple[int, int]:
    """In how many silos a person's records lie at most, and how many of them in one.

    As the data say; where they name nobody, a person is a record, which silos may share or draw again.
    """
    silos, records = dataset_of(config).person_spread or (1, 1)
    return max(sharing(part), silos), max(multiplicity(part), records)
