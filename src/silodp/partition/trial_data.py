"""The records of a trial: cut into silos, preprocessed, and handed over as tensors.

They are kept beside the silos, so that training jobs need not make them again. Cutting loads no PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from silodp.config.experiment import Experiment
from silodp.config.readings import Readings
from silodp.config.run_keys import Run
from silodp.datasets import Data, label_classes, labels
from silodp.files import reading, write_atomically
from silodp.partition.experiment_data import dataset_of, number_of_silos
from silodp.partition.heterogeneity import Heterogeneity, heterogeneity
from silodp.partition.partition import Partition, partition, read_partition
from silodp.streams import Streams

if TYPE_CHECKING:
    from torch import Tensor

    from silodp.models.base import Model
    from silodp.partition.preprocessing import Standardise

FILE = "records.npz"
# Numbers of a trial up to which its features are kept (16 MB); wide records and images are made again in each job.
STORED = 2**21
# Largest absolute value of a preprocessed feature.
LARGEST_FEATURE = 1e9
# Weights of a softmax up to which heterogeneity is measured on the features as they are, and parts of wider records.
WIDEST, PARTS = 1024, 49


@dataclass(frozen=True)
class Records:
    """The records in use in one trial, by ascending number: `x` float64 (n, k) or images; a target has no `classes`."""

    x: np.ndarray
    y: np.ndarray
    classes: int | None

    @property
    def small(self) -> bool:
        return self.x.ndim == 2 and self.x.size <= STORED


@dataclass(frozen=True)
class TrialData:
    """The records of one trial, silo by silo, on the device and in the precision of training."""

    train: list[tuple[Tensor, Tensor]]
    test: list[tuple[Tensor, Tensor]]
    features: int
    classes: int | None

    @property
    def sizes(self) -> list[int]:
        return [len(y) for _, y in self.train]

    def for_silos(self, silos: list[int]) -> TrialData:
        return replace(self, train=[self.train[silo] for silo in silos], test=[self.test[silo] for silo in silos])


def load_dataset(config: Experiment, run: Run) -> Data:
    """The experiment's data set, from the cache where it is not embedded."""
    return dataset_of(config).load(run.data.cache)


def partition_and_measure(
    name: str, config: Experiment, readings: Readings, run: Run, data: Data
) -> tuple[list[Partition], list[Heterogeneity], list[Records | None]]:
    """The silos of every trial, υ*² of the linear model on their preprocessed records, and the records if small."""
    parts, measured = [], []
    kept: list[Records | None] = []
    for trial in range(config.trials):
        part = draw_partition(name, config, readings, run, data, trial)
        records = fitted_records(data, config, readings, part)
        local = part.compact()[1]
        x = _windows(records.x) if records.x.ndim > 2 else _narrow(records.x, records.classes)
        parts.append(part)
        xs, ys = ([values[i] for i in local.train] for values in (x, records.y))
        measured.append(heterogeneity(xs, ys, dataset_of(config).task, records.classes))
        # Records of a user's file stay in it.
        kept.append(records if records.small and not config.is_own else None)
    return parts, measured, kept


def draw_partition(name: str, config: Experiment, readings: Readings, run: Run, data: Data, trial: int) -> Partition:
    """The silos of one trial, whose number need not be below `config.trials`.

    ValueError where persons who train leave a silo without a test record.
    """
    plan = config.silos
    part = partition(
        data.y,
        scheme=plan.scheme,
        silos=number_of_silos(config),
        train_share=plan.train_share,
        mixed=plan.mixed,
        per_class=plan.per_class,
        resample=readings.resample,
        split=readings.split,
        official_test=data.official_test if plan.official_test else None,
        assigned=data.silo if len(data.silo) else None,
        person=data.person,
        generator=Streams(run.seed).generator(name, trial, "partition"),
    )
    empty = [silo for silo, test in enumerate(part.test) if not len(test)]
    if empty and len(data.person):
        silo = data.silo_names[empty[0]] if data.silo_names and plan.scheme == "column" else f"number {empty[0] + 1}"
        allowed = "must be a smaller silos.train_share, or silos of more persons (silos.least, silos.count)"
        raise ValueError(f"{name}: split {trial + 1}: silo {silo}: all its persons train, and none tests: {allowed}")
    return part


def fitted_records(data: Data, config: Experiment, readings: Readings, part: Partition) -> Records:
    """The records in use, preprocessed."""
    from silodp.partition.preprocessing import fitted, scale_to_bounds  # loads scikit-learn, which most jobs do without

    used, local = part.compact()
    steps = config.preprocess
    mode: Standardise = readings.standardise if steps.standardise is True else steps.standardise or "none"
    named = dataset_of(config).standardise_columns
    bounds = [tuple(steps.bounds[name]) for name in named or ()] if mode == "bounds" else []
    y = labels(data, config.label)[used]
    if bounds and not isinstance(config.dataset, str) and config.dataset.target in steps.bounds:
        low, high = steps.bounds[config.dataset.target]
        y = scale_to_bounds(y, low, high)
    x = fitted(
        data.x if len(used) == len(data.x) else data.x[used],
        local.train_records(),
        standardise=mode,
        pca=steps.pca,
        columns=None if named is None else data.columns(named),
        constant_column=steps.constant_column,
        silos=local.silos if mode == "silo" else (),
        bounds=bounds,
        fill=not isinstance(config.dataset, str) and config.dataset.missing == "mean",
    )
    return Records(x, y, label_classes(data, config.label))


def _windows(x: np.ndarray) -> np.ndarray:
    """Means of every channel over a 4×4 grid of windows, (n, 16·channels) for images (n, channels, height, width)."""
    n, channels, height, width = x.shape
    height, width = height // 4, width // 4
    cut = x[:, :, : 4 * height, : 4 * width].reshape(n, channels, 4, height, 4, width)
    return cut.mean(axis=(3, 5), dtype=np.float64).reshape(n, -1)


def _narrow(x: np.ndarray, classes: int | None) -> np.ndarray:
    """Means of `PARTS` runs of neighbouring features, (n, PARTS), where softmax has more than `WIDEST` weights."""
    outputs = classes or 2
    if outputs < 3 or x.shape[1] * outputs <= WIDEST:
        return x
    return np.column_stack([part.mean(axis=1) for part in np.array_split(x, PARTS, axis=1)])


def prepare(data: Data, config: Experiment, readings: Readings, part: Partition, run: Run) -> TrialData:
    return to_tensors(fitted_records(data, config, readings, part), config, part, run)


def stored_trials(folder: Path | str, config: Experiment, readings: Readings, run: Run) -> Callable[[int], TrialData]:
    """Trial → its records, from a folder that the job `partition` wrote; made anew where they are not kept there."""

    @functools.cache
    def data() -> Data:
        return load_dataset(config, run)

    def load(trial: int) -> TrialData:
        part = read_partition(folder, trial)
        records = read_records(folder, trial) or fitted_records(data(), config, readings, part)
        return to_tensors(records, config, part, run)

    return load


def to_tensors(records: Records, config: Experiment, part: Partition, run: Run) -> TrialData:
    """Every silo's preprocessed records, on the device and in the precision of training."""
    import torch

    from silodp.models.gpu import forbid_tf32

    x, local = records.x, part.compact()[1]
    # Beyond this, squares leave the range of float32 and clipping fails.
    largest = np.abs(x).max()
    if not largest <= LARGEST_FEATURE:
        limit = f"features must be finite and at most {LARGEST_FEATURE:g}"
        raise ValueError(f"{config.data_name}: a preprocessed feature is {largest}; {limit}")
    forbid_tf32()
    device = torch.device(config.device or run.device)
    dtype = getattr(torch, run.dtype)
    y = torch.from_numpy(np.ascontiguousarray(records.y))
    y = (y if config.model.name in ("softmax", "perceptron", "convnet") else y.to(dtype)).to(device)
    features = torch.from_numpy(np.ascontiguousarray(x)).to(device=device, dtype=dtype)

    def silos(records: list[np.ndarray]) -> list[tuple[Tensor, Tensor]]:
        return [(features[index], y[index]) for index in (torch.from_numpy(r).to(device) for r in records)]

    return TrialData(silos(local.train), silos(local.test), features[0].numel(), records.classes)


def build_model(config: Experiment, trial: TrialData) -> Model:
    from silodp.models.registry import MODELS

    return MODELS[config.model.name](trial.features, trial.classes, **config.model.model_dump(exclude={"name"}))


def write_records(folder: Path | str, trials: Sequence[Records | None], made_for: str = "") -> None:
    """Write `records.npz` with the records of all trials but those given as None, and what they are made for."""
    arrays: dict[str, Any] = {"made_for": np.array(made_for)}
    for trial, records in enumerate(trials):
        if records is not None:
            arrays |= {f"x{trial}": records.x, f"y{trial}": records.y, f"classes{trial}": records.classes or 0}
    with write_atomically(Path(folder) / FILE) as temporary, temporary.open("wb") as handle:
        np.savez(handle, **arrays)


def read_records(folder: Path | str, trial: int) -> Records | None:
    """One trial's records; None where they were not kept."""
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    # Opened here, as NumPy leaves a damaged file open.
    with reading(path), open(path, "rb") as handle, np.load(handle) as file:
        if f"x{trial}" not in file:
            return None
        return Records(file[f"x{trial}"], file[f"y{trial}"], int(file[f"classes{trial}"]) or None)
