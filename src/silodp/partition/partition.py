"""Records into silos: who holds what, and which of it is for training. A partition holds record numbers only."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from silodp.config.errors import ConfigError
from silodp.files import read_parquet, write_csv, write_parquet

if TYPE_CHECKING:
    from silodp.partition.heterogeneity import Heterogeneity

Scheme = Literal["digit_pairs", "by_class", "sorted_target", "iid", "column", "dirichlet"]

DIGIT_PAIRS = tuple(itertools.product((0, 2, 4, 6, 8), (1, 3, 5, 7, 9)))

PARTS = ("train", "test")
Split = Literal["by_record", "per_silo"]
# Training and test records.
Sides = tuple[np.ndarray, np.ndarray]
# Draws of Dirichlet shares until every silo has a record to train and one to test.
ATTEMPTS = 1000


@dataclass(frozen=True)
class Partition:
    """The (train, test) records of every silo: sorted int64 numbers, repeated only where drawn with replacement."""

    silos: tuple[Sides, ...]

    def __len__(self) -> int:
        return len(self.silos)

    @property
    def train(self) -> list[np.ndarray]:
        return [train for train, _ in self.silos]

    @property
    def test(self) -> list[np.ndarray]:
        return [test for _, test in self.silos]

    def train_records(self) -> np.ndarray:
        """The training records of all silos, each once, sorted."""
        return np.unique(np.concatenate(self.train))

    def records(self) -> np.ndarray:
        return np.unique(np.concatenate([part for silo in self.silos for part in silo]))

    def compact(self) -> tuple[np.ndarray, "Partition"]:
        """The records in use, and this partition with each record renumbered to its place among them."""
        used = self.records()
        return used, Partition(tuple((np.searchsorted(used, a), np.searchsorted(used, b)) for a, b in self.silos))


def partition(
    y: np.ndarray,
    *,
    scheme: Scheme,
    silos: int,
    generator: np.random.Generator,
    train_share: float = 0.8,
    mixed: float = 0.0,
    per_class: int | None = None,
    resample: bool = False,
    split: Split = "by_record",
    official_test: np.ndarray | None = None,
    assigned: np.ndarray | None = None,
    person: np.ndarray | None = None,
) -> Partition:
    """Cut records into silos and split each silo into training and test records.

    A record that several silos hold is on the same side in all of them, unless `split` is "per_silo". That the options
    fit the scheme and the labels is checked with the configuration (`silodp.experiments.validation`).

    Args:
        y: labels (integers 0..C-1) or targets, (n,).
        scheme: "digit_pairs", (0,1), (0,3), …, (8,9), each digit in five silos; "by_class"; "sorted_target", nearly
            equal runs by `y`; "iid", nearly equal random parts; "column" and "dirichlet", as `assigned` (n,) says.
        mixed: share of a silo's records that is drawn from the same side of all digits; "digit_pairs" only.
        per_class: use the first records of each class only, this many.
        resample: draw each silo's records with replacement before the split, as the released programs do; privacy is
            then that of a group of `multiplicity(partition)` records.
        official_test: (n,) the test side where given; `train_share` of each silo's other records train.
        person: (n,) whom a record is about; who trains in any silo is tested in none.
    """
    y = np.asarray(y)
    # A split takes persons in one order in all silos, and so cuts few of them.
    rank = generator.permutation(int(person.max()) + 1)[person] if person is not None and len(person) else None

    def cut(order: np.ndarray) -> Sides:
        return _split(order if rank is None else order[np.argsort(rank[order], kind="stable")], train_share)

    def whole(sides: Iterable[Sides]) -> Partition:
        part = Partition(tuple((np.sort(train), np.sort(test)) for train, test in sides))
        if person is None or rank is None:
            return part
        trained = np.unique(person[part.train_records()])
        return Partition(tuple((train, test[~np.isin(person[test], trained)]) for train, test in part.silos))

    if assigned is not None and scheme in ("column", "dirichlet"):
        order = generator.permutation(len(assigned))
        order = order[np.argsort(assigned[order], kind="stable")]
        return whole(map(cut, np.split(order, np.cumsum(np.bincount(assigned, minlength=silos))[:-1])))
    pool = np.arange(len(y)) if official_test is None else np.flatnonzero(~official_test)
    groups = _groups(y, pool, scheme, silos, per_class, generator)
    # Which groups make up a silo: two digits, or the one group cut for it.
    held = DIGIT_PAIRS if scheme == "digit_pairs" else tuple((silo,) for silo in range(silos))
    if resample:
        return whole(cut(_resampled(groups, pair, mixed, generator)) for pair in held)
    if split == "per_silo":
        return whole(cut(generator.permutation(_mix(groups, pair, mixed, generator))) for pair in held)

    sides = [cut(generator.permutation(group)) for group in groups]
    train, test = [first for first, _ in sides], [second for _, second in sides]
    if official_test is not None:
        test = _groups(y, np.flatnonzero(official_test), scheme, silos, None, generator)
    return whole((_mix(train, pair, mixed, generator), _mix(test, pair, mixed, generator)) for pair in held)


def dirichlet(y: np.ndarray, classes: int | None, silos: int, alpha: float) -> np.ndarray:
    """Silo of every record, (n,), by Dir(alpha) shares of each class, or of each tenth of a target; always the same.

    Drawn again until every silo has two records; ConfigError if no draw does.
    """
    generator = np.random.default_rng(0)
    labels = y if classes else np.searchsorted(np.quantile(y, np.linspace(0, 1, 11)[1:-1]), y)
    for _ in range(ATTEMPTS):
        assigned = np.empty(len(y), dtype=np.int64)
        for label in np.unique(labels):
            members = generator.permutation(np.flatnonzero(labels == label))
            ends = (np.cumsum(generator.dirichlet(np.full(silos, alpha)))[:-1] * len(members)).astype(int)
            for silo, part in enumerate(np.split(members, ends)):
                assigned[part] = silo
        if np.bincount(assigned, minlength=silos).min() >= 2:
            return assigned
    raise ConfigError(
        f"silos: dirichlet with alpha = {alpha:g} leaves one of {silos} silos without records: "
        "must be fewer silos, or a larger alpha"
    )


def sharing(partition: Partition) -> int:
    """In how many silos' training parts a record occurs at most; a guarantee is for one silo's copy of a record."""
    return int(np.unique(np.concatenate([np.unique(train) for train in partition.train]), return_counts=True)[1].max())


def multiplicity(partition: Partition) -> int:
    """How often one record occurs at most in one silo's training part: 1 unless records were resampled."""
    return max(int(np.unique(train, return_counts=True)[1].max()) for train in partition.train)


def label_counts(partition: Partition, y: np.ndarray | None) -> pd.DataFrame:
    """What each silo holds: a row (silo, part, count), or (silo, part, label, count) for each integer label in `y`.

    For targets the columns are silo, part, count, min, mean, max.
    """
    rows: list[dict[str, object]] = []
    for (silo, parts), place in itertools.product(enumerate(partition.silos), range(len(PARTS))):
        where: dict[str, object] = {"silo": silo, "part": PARTS[place]}
        if y is None:
            rows.append(where | {"count": len(parts[place])})
            continue
        values = y[parts[place]]
        if np.issubdtype(y.dtype, np.integer):
            labels, counts = np.unique(values, return_counts=True)
            pairs = zip(labels.tolist(), counts.tolist(), strict=True)
            rows += [where | {"label": label, "count": count} for label, count in pairs]
        else:
            rows.append(where | {"count": len(values), "min": values.min(), "mean": values.mean(), "max": values.max()})
    return pd.DataFrame(rows)


def write_partition(
    folder: Path | str,
    partitions: Sequence[Partition],
    *,
    y: np.ndarray | None,
    heterogeneity: "Sequence[Heterogeneity] | None" = None,
) -> None:
    """Write all trials' index, label counts (sizes without `y`) and heterogeneity, each file whole or not at all."""
    folder = Path(folder)
    counts = [label_counts(silos, y).assign(trial=trial) for trial, silos in enumerate(partitions)]
    labels = pd.concat(counts, ignore_index=True)
    write_csv(labels[["trial", *labels.columns.drop("trial")]], folder / "labels.csv")
    if heterogeneity is not None:
        measured = pd.DataFrame(heterogeneity)[["value", "gradient_norm", "converged"]]
        write_csv(measured.rename_axis("trial").reset_index(), folder / "heterogeneity.csv")
    # Last: where the indices are, the rest is too.
    cells = [
        (trial, silo, part) for trial, silos in enumerate(partitions) for silo in range(len(silos)) for part in PARTS
    ]
    records = [part for silos in partitions for silo in silos.silos for part in silo]
    frame = pd.DataFrame(cells, columns=["trial", "silo", "part"])
    frame = frame.astype({"trial": np.int32, "silo": np.int32, "part": pd.CategoricalDtype(list(PARTS))})
    frame = frame.loc[frame.index.repeat([len(part) for part in records])].reset_index(drop=True)
    frame["record"] = np.concatenate(records).astype(np.int32)
    write_parquet(frame, folder / "indices.parquet")


def read_partition(folder: Path | str, trial: int) -> Partition:
    """Read one trial's partition; ValueError when the folder holds no such trial."""
    path = Path(folder) / "indices.parquet"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; a partition is written by the job `partition`")
    frame = read_parquet(path, ("trial", "silo", "part", "record"), filters=[("trial", "==", trial)])
    if frame.empty:
        raise ValueError(f"{path}: trial is {trial}; the file does not hold it")
    record = frame["record"].to_numpy(dtype=np.int64)
    silo, part = frame["silo"].to_numpy(), frame["part"].to_numpy(dtype=str)
    return Partition(
        tuple(
            (record[(silo == number) & (part == "train")], record[(silo == number) & (part == "test")])
            for number in range(int(silo.max()) + 1)
        )
    )


def _groups(
    y: np.ndarray, pool: np.ndarray, scheme: Scheme, silos: int, per_class: int | None, generator: np.random.Generator
) -> list[np.ndarray]:
    """The records of `pool` cut into the groups that silos are made of: classes, runs or random parts."""
    if scheme == "sorted_target":
        return np.array_split(pool[np.argsort(y[pool], kind="stable")], silos)
    if scheme == "iid":
        return np.array_split(generator.permutation(pool), silos)
    return [pool[y[pool] == label][:per_class] for label in range(10 if scheme == "digit_pairs" else silos)]


def _mix(groups: list[np.ndarray], pair: tuple[int, ...], mixed: float, generator: np.random.Generator) -> np.ndarray:
    """One side of one silo: the groups of `pair`, with the share `mixed` replaced by draws from all groups."""
    mine = np.concatenate([groups[index] for index in pair])
    foreign = round(mixed * len(mine))
    if not foreign:
        return np.sort(mine)
    # Drawn first, so that the mixed share is uniform over all groups; the silo's records then fill up without repeats.
    drawn = generator.choice(np.concatenate(groups), foreign, replace=False)
    kept = generator.choice(np.setdiff1d(mine, drawn), len(mine) - foreign, replace=False)
    return np.sort(np.concatenate([drawn, kept]))


def _resampled(
    groups: list[np.ndarray], pair: tuple[int, ...], mixed: float, generator: np.random.Generator
) -> np.ndarray:
    """One silo as the released programs make it: as many draws with replacement as it has records, in random order."""
    mine = np.concatenate([groups[index] for index in pair])
    foreign = round(mixed * len(mine))
    draws = [generator.choice(mine, len(mine) - foreign), generator.choice(np.concatenate(groups), foreign)]
    return generator.permutation(np.concatenate(draws))


def _split(order: np.ndarray, train_share: float) -> Sides:
    # Rounded down, but not for the last bits of a product such as 0.29 · 100.
    size = int(np.floor(train_share * len(order) + 1e-9))
    return order[:size], order[size:]
