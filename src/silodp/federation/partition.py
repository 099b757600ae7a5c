"""Records into silos: who holds what, and which of it is for training.

A partition is made of record numbers only, from the labels and a generator, so it can be written down, read back and
checked. The schemes are those of the papers' experiments: pairs of an even and an odd digit (the MNIST problems), one
class a silo (CIFAR-10, breast cancer), records sorted by their target (insurance); and equal random parts to compare.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pandas as pd

from silodp.files import read_parquet, write_csv, write_parquet

if TYPE_CHECKING:
    from silodp.federation.heterogeneity import Heterogeneity

Scheme = Literal["digit_pairs", "by_class", "sorted_target", "iid", "column", "dirichlet"]

DIGIT_PAIRS = tuple(itertools.product((0, 2, 4, 6, 8), (1, 3, 5, 7, 9)))

PARTS = ("train", "test")
Split = Literal["by_record", "per_silo"]


@dataclass(frozen=True)
class Partition:
    """The records of every silo.

    Attributes:
        silos: one (train, test) pair of sorted int64 record numbers for each silo. A number occurs twice in an array
            only when records were drawn with replacement.
    """

    silos: tuple[tuple[np.ndarray, np.ndarray], ...]

    def __len__(self) -> int:
        return len(self.silos)

    @property
    def train(self) -> list[np.ndarray]:
        """The training records of each silo."""
        return [train for train, _ in self.silos]

    @property
    def test(self) -> list[np.ndarray]:
        """The test records of each silo."""
        return [test for _, test in self.silos]

    def train_records(self) -> np.ndarray:
        """The training records of all silos, each once, sorted."""
        return np.unique(np.concatenate(self.train))

    def records(self) -> np.ndarray:
        """All records of all silos, each once, sorted."""
        return np.unique(np.concatenate([part for silo in self.silos for part in silo]))

    def compact(self) -> tuple[np.ndarray, "Partition"]:
        """The records in use, and this partition with each record renumbered to its place among them.

        `records, small = partition.compact()` makes `x[records]` with `small` stand for `x` with `partition`, so that
        a large dataset need not stay in memory when few of its records are used.
        """
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

    A record that several silos hold is on the same side in all of them, unless `split` says otherwise: with
    "digit_pairs" the images of each digit are split once, then handed to the five silos of that digit. With 774 images
    a digit, 619 go to training, 1,238 a silo.

    Args:
        y: labels (integers 0..C-1) or, for "sorted_target" and "iid", targets; shape (n,).
        scheme: "digit_pairs", silo by silo (0,1), (0,3), …, (8,9) with each digit in five silos; "by_class", silo i
            holds class i; "sorted_target", records sorted by `y` and cut into nearly equal runs; "iid", nearly equal
            random parts.
        silos: how many; 25 for "digit_pairs", the number of classes for "by_class".
        generator: the trial's stream; the same state gives the same partition.
        train_share: the share of a silo's records, rounded down, that is for training.
        mixed: p, the share of a silo's records, rounded to the nearest number, that is drawn without replacement from
            the same side of all digits in place of its own two; 0 for pure pairs. "digit_pairs" only.
        per_class: use the first so many records of each class only; None for all.
        resample: draw each silo's records with replacement before the split, as the released programs do. Then a record
            may be in training and test at once and several times in a silo's training part, test errors are optimistic,
            and a record's privacy is that of a group of `multiplicity(partition)` records.
        split: "per_silo" splits each silo's records by itself, as the papers' programs do: an image of a digit that
            five silos hold is then a test record in some of them and trains the model in others, which the mean test
            error over silos does not see.
        official_test: bool, shape (n,). Where given, these records are the test side and no other is;
            `train_share` of each silo's remaining records train, and what is left over is not used. (The released
            CIFAR-10 program: 0.2, for 1,000 training and 1,000 test images a silo.) Schemes by class only.
        assigned: silo 0 … silos−1 of every record, shape (n,), for "column" and "dirichlet".
        person: whom a record is about, as numbers, shape (n,). Then a person's records go to the same side as far as
            silos can be cut so: in each silo one person at most is on both.

    Raises:
        ValueError: an argument out of range, or a scheme that does not fit the labels.
    """
    y = np.asarray(y)
    _check(y, scheme, silos, train_share, mixed, per_class, resample, official_test)
    if scheme in ("column", "dirichlet"):
        if assigned is None or assigned.shape != y.shape or resample:
            raise ValueError(f"scheme {scheme} needs the silo of each of the {len(y)} records, and no resample")
        return _as_assigned(assigned, person, silos, train_share, generator)
    pool = np.arange(len(y)) if official_test is None else np.flatnonzero(~official_test)
    groups = _groups(y, pool, scheme, silos, per_class, generator)
    # Which groups make up a silo: two digits, or the one group cut for it.
    held = DIGIT_PAIRS if scheme == "digit_pairs" else tuple((silo,) for silo in range(silos))
    if resample:
        return Partition(tuple(_resample(groups, own, mixed, train_share, generator) for own in held))
    if split == "per_silo":
        return Partition(tuple(_alone(groups, own, mixed, train_share, generator) for own in held))

    train, test = [], []
    for group in groups:
        shuffled = generator.permutation(group)
        cut = _floor(train_share * len(group))
        train.append(shuffled[:cut])
        test.append(shuffled[cut:])
    if official_test is not None:
        test = _groups(y, np.flatnonzero(official_test), scheme, silos, None, generator)
    return Partition(tuple((_mix(train, own, mixed, generator), _mix(test, own, mixed, generator)) for own in held))


def sharing(partition: Partition) -> int:
    """In how many silos' training parts a record occurs at most: 1 when silos are disjoint, 5 for pure digit pairs.

    The guarantee of a silo-level protocol is for one silo's copy of a record. A person whose record lies in s silos is
    protected by the composition of s silos' guarantees (at worst s·ε), which is what a user-level claim must state.
    """
    occurrences = np.concatenate([np.unique(train) for train in partition.train])
    return int(np.unique(occurrences, return_counts=True)[1].max())


def multiplicity(partition: Partition) -> int:
    """How often one record occurs at most in one silo's training part: 1 unless records were resampled."""
    return max(int(np.unique(train, return_counts=True)[1].max()) for train in partition.train)


def label_counts(partition: Partition, y: np.ndarray | None) -> pd.DataFrame:
    """What each silo holds, as a table.

    Returns:
        Without `y` the columns silo, part, count. For integer labels the columns silo, part, label, count, one row for
        each label that occurs; for targets the columns silo, part, count, min, mean, max.
    """
    rows: list[dict[str, object]] = []
    for silo, parts in enumerate(partition.silos):
        for part, records in zip(PARTS, parts, strict=True):
            where: dict[str, object] = {"silo": silo, "part": part}
            if y is None:
                rows.append(where | {"count": len(records)})
                continue
            values = y[records]
            if np.issubdtype(y.dtype, np.integer):
                labels, counts = np.unique(values, return_counts=True)
                rows += [where | {"label": int(a), "count": int(b)} for a, b in zip(labels, counts, strict=True)]
            else:
                rows.append(
                    where | {"count": len(values), "min": values.min(), "mean": values.mean(), "max": values.max()}
                )
    return pd.DataFrame(rows)


def write_partition(
    folder: Path | str,
    partitions: Sequence[Partition],
    *,
    y: np.ndarray | None,
    heterogeneity: "Sequence[Heterogeneity] | None" = None,
) -> None:
    """Write the partitions of all trials, each file whole or not at all.

    Files: `indices.parquet` (trial, silo, part, record), one row for each record held; `labels.csv`, `label_counts` of
    each trial (sizes alone without `y`); `heterogeneity.csv` (trial, value, gradient_norm, converged), where
    heterogeneity is given.
    """
    if heterogeneity is not None and len(heterogeneity) != len(partitions):
        raise ValueError(
            f"heterogeneity has {len(heterogeneity)} trials, the partition {len(partitions)}; they must agree"
        )
    folder = Path(folder)
    counts = [label_counts(one, y).assign(trial=trial) for trial, one in enumerate(partitions)]
    labels = pd.concat(counts, ignore_index=True)
    write_csv(labels[["trial", *labels.columns.drop("trial")]], folder / "labels.csv")
    if heterogeneity is not None:
        rows = [
            {"trial": trial, "value": one.value, "gradient_norm": one.gradient_norm, "converged": one.converged}
            for trial, one in enumerate(heterogeneity)
        ]
        write_csv(pd.DataFrame(rows), folder / "heterogeneity.csv")
    # Last: where the indices are, the rest is too.
    write_parquet(_indices(partitions), folder / "indices.parquet")


def read_partition(folder: Path | str, trial: int) -> Partition:
    """Read one trial's partition; ValueError when the folder holds no such trial."""
    path = Path(folder) / "indices.parquet"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; a partition is written by `silodp partition`")
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


def _indices(partitions: Sequence[Partition]) -> pd.DataFrame:
    cells = [
        (trial, silo, part, records)
        for trial, one in enumerate(partitions)
        for silo, parts in enumerate(one.silos)
        for part, records in enumerate(parts)
    ]
    sizes = [len(records) for *_, records in cells]
    return pd.DataFrame(
        {
            "trial": np.repeat(np.array([cell[0] for cell in cells], dtype=np.int32), sizes),
            "silo": np.repeat(np.array([cell[1] for cell in cells], dtype=np.int32), sizes),
            "part": pd.Categorical.from_codes(np.repeat([cell[2] for cell in cells], sizes), list(PARTS)),
            "record": np.concatenate([cell[3] for cell in cells]).astype(np.int32),
        }
    )


def _groups(
    y: np.ndarray, pool: np.ndarray, scheme: Scheme, silos: int, per_class: int | None, generator: np.random.Generator
) -> list[np.ndarray]:
    """The records of `pool` cut into the groups that silos are made of: classes, runs or random parts."""
    if scheme == "sorted_target":
        return np.array_split(pool[np.argsort(y[pool], kind="stable")], silos)
    if scheme == "iid":
        return np.array_split(generator.permutation(pool), silos)
    groups = []
    for label in range(10 if scheme == "digit_pairs" else silos):
        members = pool[y[pool] == label]
        wanted = len(members) if per_class is None else per_class
        if not 0 < wanted <= len(members):
            raise ValueError(f"class {label} has {len(members)} records; {max(wanted, 1)} are wanted")
        groups.append(members[:wanted])
    return groups


def _as_assigned(
    assigned: np.ndarray, person: np.ndarray | None, silos: int, train_share: float, generator: np.random.Generator
) -> Partition:
    """Silos as they are, each split by itself; a person's records side by side in the order that is cut."""
    order = generator.permutation(len(assigned))
    if person is not None and len(person):
        rank = generator.permutation(int(person.max()) + 1)
        order = order[np.argsort(rank[person[order]], kind="stable")]
    order = order[np.argsort(assigned[order], kind="stable")]
    ends = np.cumsum(np.bincount(assigned, minlength=silos))[:-1]
    cut = [(one, _floor(train_share * len(one))) for one in np.split(order, ends)]
    return Partition(tuple((np.sort(one[:place]), np.sort(one[place:])) for one, place in cut))


def _mix(groups: list[np.ndarray], own: tuple[int, ...], mixed: float, generator: np.random.Generator) -> np.ndarray:
    """One side of one silo: its own groups, with the share `mixed` replaced by draws from all groups."""
    mine = np.concatenate([groups[index] for index in own])
    foreign = round(mixed * len(mine))
    if not foreign:
        return np.sort(mine)
    # Drawn first, so that the mixed share is uniform over all groups; own records then fill up without a repetition.
    drawn = generator.choice(np.concatenate(groups), foreign, replace=False)
    kept = generator.choice(np.setdiff1d(mine, drawn), len(mine) - foreign, replace=False)
    return np.sort(np.concatenate([drawn, kept]))


def _alone(
    groups: list[np.ndarray], own: tuple[int, ...], mixed: float, train_share: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One silo's records, split without a look at the other silos."""
    shuffled = generator.permutation(_mix(groups, own, mixed, generator))
    cut = _floor(train_share * len(shuffled))
    return np.sort(shuffled[:cut]), np.sort(shuffled[cut:])


def _resample(
    groups: list[np.ndarray], own: tuple[int, ...], mixed: float, train_share: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One silo as the released programs make it: as many draws with replacement as it has records, then the split."""
    mine = np.concatenate([groups[index] for index in own])
    foreign = round(mixed * len(mine))
    draws = [generator.choice(mine, len(mine) - foreign), generator.choice(np.concatenate(groups), foreign)]
    shuffled = generator.permutation(np.concatenate(draws))
    cut = _floor(train_share * len(shuffled))
    return np.sort(shuffled[:cut]), np.sort(shuffled[cut:])


def _floor(value: float) -> int:
    """Round down, but not for the last bits of a product such as 0.29 · 100."""
    return int(np.floor(value + 1e-9))


def _check(
    y: np.ndarray,
    scheme: str,
    silos: int,
    train_share: float,
    mixed: float,
    per_class: int | None,
    resample: bool,
    official_test: np.ndarray | None,
) -> None:
    if scheme not in get_args(Scheme):
        raise ValueError(f"scheme is {scheme!r}; it must be one of {', '.join(get_args(Scheme))}")
    if not 0 < train_share < 1:
        raise ValueError(f"train_share is {train_share}; it must lie between 0 and 1, both excluded")
    if not 0 <= mixed <= 1:
        raise ValueError(f"mixed is {mixed}; it must lie between 0 and 1")
    by_class = scheme in ("digit_pairs", "by_class")
    if mixed and scheme != "digit_pairs":
        raise ValueError(f"mixed is {mixed} with scheme {scheme}; only digit_pairs can mix its silos")
    if not by_class and (per_class is not None or official_test is not None):
        raise ValueError(f"per_class and official_test need silos cut by class; scheme is {scheme}")
    if resample and official_test is not None:
        raise ValueError("resample is true with official_test; records are drawn anew only before a split")
    if official_test is not None and (official_test.shape != y.shape or official_test.dtype != bool):
        raise ValueError(f"official_test must hold a bool for each of the {len(y)} records")
    if by_class:
        if not np.issubdtype(y.dtype, np.integer):
            raise ValueError(f"scheme is {scheme}, but the labels are {y.dtype}; they must be integers")
        classes = int(y.max()) + 1
        needed = len(DIGIT_PAIRS) if scheme == "digit_pairs" else classes
        if scheme == "digit_pairs" and classes != 10:
            raise ValueError(f"scheme is digit_pairs with {classes} classes; it needs the 10 digits")
        if silos != needed:
            raise ValueError(f"silos is {silos}; scheme {scheme} makes {needed}")
    elif not 1 <= silos <= len(y) // 2:
        raise ValueError(f"silos is {silos}; it must lie between 1 and {len(y) // 2}, half the number of records")
