"""Partitions: who holds what, disjoint training and test records, and files that read back."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.datasets import DATASETS
from silodp.partition.heterogeneity import Heterogeneity
from silodp.partition.partition import (
    DIGIT_PAIRS,
    Partition,
    label_counts,
    multiplicity,
    partition,
    read_partition,
    sharing,
    write_partition,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def digits(each: int, seed: int = 1) -> np.ndarray:
    """Labels 0..9 in a random order, at least `each` of every digit."""
    extra = rng(seed).integers(0, 10, 37)
    return rng(seed).permutation(np.concatenate([np.repeat(np.arange(10), each), extra]))


@pytest.mark.parametrize("silos", [3, 12])
def test_by_class_each_silo_has_the_records_of_one_class(silos: int) -> None:
    y = np.arange(20 * silos) % silos
    result = partition(y, scheme="by_class", silos=silos, generator=rng())
    assert [set(y[part]) for part in result.train] == [{number} for number in range(silos)]


def test_digit_pairs_of_the_papers() -> None:
    y = digits(774)
    result = partition(y, scheme="digit_pairs", silos=25, per_class=774, generator=rng())
    assert DIGIT_PAIRS[:2] == ((0, 1), (0, 3))
    assert DIGIT_PAIRS[-1] == (8, 9)
    assert len(result) == 25
    for pair, (train, test) in zip(DIGIT_PAIRS, result.silos, strict=True):
        assert (len(train), len(test)) == (1238, 310)
        assert [np.sum(y[train] == digit) for digit in pair] == [619, 619]
        assert set(y[test]) == set(pair)
        assert all((np.diff(side) > 0).all() for side in (train, test)), "as in the data's order"
    assert not np.intersect1d(result.train_records(), np.concatenate(result.test)).size
    assert sharing(result) == 5
    assert multiplicity(result) == 1
    assert len(result.records()) == 7740


def test_mixed_silos_are_uniform_at_one_and_keep_their_size() -> None:
    y = digits(200)
    pure, half, uniform = (
        partition(y, scheme="digit_pairs", silos=25, per_class=200, mixed=p, generator=rng()) for p in (0.0, 0.5, 1.0)
    )
    own = {}
    for name, result in (("half", half), ("uniform", uniform)):
        assert multiplicity(result) == 1
        assert [len(train) for train in result.train] == [len(train) for train in pure.train]
        shares = [np.isin(y[train], pair).mean() for pair, train in zip(DIGIT_PAIRS, result.train, strict=True)]
        own[name] = np.mean(shares)
    # 320 records a silo, 25 silos: the standard error of the mean share is below 0.005.
    assert own["half"] == pytest.approx(0.5 + 0.5 * 0.2, abs=0.02)
    assert own["uniform"] == pytest.approx(0.2, abs=0.02)
    assert sharing(uniform) > 5


def test_by_class_gives_a_class_to_each_silo() -> None:
    y = DATASETS["wbcd"].load().y
    result = partition(y, scheme="by_class", silos=2, generator=rng())
    assert [(len(a), len(b)) for a, b in result.silos] == [(169, 43), (285, 72)]
    assert all(set(y[np.concatenate(parts)]) == {silo} for silo, parts in enumerate(result.silos))
    assert sharing(result) == 1


def test_sorted_target_cuts_runs() -> None:
    y = DATASETS["diabetes"].load().y
    result = partition(y, scheme="sorted_target", silos=5, generator=rng())
    assert [len(a) + len(b) for a, b in result.silos] == [89, 89, 88, 88, 88]
    assert [len(a) for a, _ in result.silos] == [71, 71, 70, 70, 70]
    values = [y[np.concatenate(parts)] for parts in result.silos]
    assert all(low.max() <= high.min() for low, high in itertools.pairwise(values))


def test_resampling_overlaps_training_and_test() -> None:
    y = digits(100)
    result = partition(y, scheme="digit_pairs", silos=25, per_class=100, resample=True, generator=rng())
    assert [(len(a), len(b)) for a, b in result.silos] == [(160, 40)] * 25
    shared = [np.isin(test, train).mean() for train, test in result.silos]
    # A test draw is missed by all 160 training draws from 200 records with probability (1 - 1/200)^160 = 0.448.
    assert np.mean(shared) == pytest.approx(0.552, abs=0.06)
    assert multiplicity(result) > 1
    assert all(set(y[train]) == set(pair) for pair, train in zip(DIGIT_PAIRS, result.train, strict=True))
    mixed = partition(y, scheme="digit_pairs", silos=25, per_class=100, resample=True, mixed=0.5, generator=rng())
    assert [(len(a), len(b)) for a, b in mixed.silos] == [(160, 40)] * 25
    own = [np.isin(y[train], pair).mean() for pair, train in zip(DIGIT_PAIRS, mixed.train, strict=True)]
    assert np.mean(own) == pytest.approx(0.5 + 0.5 * 0.2, abs=0.03)


@pytest.mark.parametrize("mixed", [0.0, 0.3])
def test_silos_that_split_by_themselves_test_on_what_trains_others_and_never_on_their_own(mixed) -> None:
    y = digits(100)
    options = {"scheme": "digit_pairs", "silos": 25, "per_class": 100, "mixed": mixed}
    result = partition(y, **options, split="per_silo", generator=rng())
    assert [(len(a), len(b)) for a, b in result.silos] == [(160, 40)] * 25
    for train, test in result.silos:
        assert len(np.unique(np.concatenate([train, test]))) == 200
    # Four other silos hold a test record of a pure pair, each trains on it with probability .8.
    seen = np.mean([np.isin(test, result.train_records()).mean() for test in result.test])
    assert seen == pytest.approx(1 - 0.2**4, abs=0.02)


def test_official_test_records_are_the_test_side() -> None:
    y = np.concatenate([np.repeat(np.arange(10), 50), np.repeat(np.arange(10), 10)])
    official = np.arange(len(y)) >= 500
    result = partition(y, scheme="by_class", silos=10, train_share=0.2, official_test=official, generator=rng())
    assert [(len(a), len(b)) for a, b in result.silos] == [(10, 10)] * 10
    assert not official[result.train_records()].any()
    assert official[np.concatenate(result.test)].all()


@settings(deadline=None, max_examples=40)
@given(
    scheme=st.sampled_from(["digit_pairs", "by_class", "sorted_target", "iid"]),
    each=st.integers(4, 30),
    share=st.floats(0.3, 0.9),
    p=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_partition_properties(scheme: str, each: int, share: float, p: float, seed: int) -> None:
    y = digits(each, seed)
    options = {"scheme": scheme, "silos": 25 if scheme == "digit_pairs" else 10, "train_share": share}
    options |= {"mixed": p} if scheme == "digit_pairs" else {}
    result = partition(y, generator=rng(seed), **options)  # type: ignore[arg-type]
    again = partition(y, generator=rng(seed), **options)  # type: ignore[arg-type]
    assert not np.intersect1d(result.train_records(), np.concatenate(result.test)).size
    for parts, same in zip(result.silos, again.silos, strict=True):
        for records, others in zip(parts, same, strict=True):
            np.testing.assert_array_equal(records, others)
            assert records.dtype == np.int64
            assert (np.diff(records) > 0).all()
    if scheme != "digit_pairs":
        np.testing.assert_array_equal(result.records(), np.arange(len(y)))
        for train, test in result.silos:
            assert len(train) == int(share * (len(train) + len(test)) + 1e-9)


def test_share_is_rounded_down_despite_rounding_of_products() -> None:
    # 0.29 · 100 is 28.999999999999996 in binary.
    result = partition(np.zeros(100), scheme="iid", silos=1, train_share=0.29, generator=rng())
    assert len(result.train[0]) == 29


@pytest.mark.parametrize("resample", [False, True])
def test_files_read_back(tmp_path: Path, resample: bool) -> None:
    y = digits(20)
    trials = [partition(y, scheme="digit_pairs", silos=25, resample=resample, generator=rng(t)) for t in range(3)]
    write_partition(tmp_path, trials, y=y, heterogeneity=[Heterogeneity(0.1 + t, 1e-12, t < 2) for t in range(3)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heterogeneity.csv", "indices.parquet", "labels.csv"]
    for trial, written in enumerate(trials):
        for parts, same in zip(written.silos, read_partition(tmp_path, trial).silos, strict=True):
            for records, others in zip(parts, same, strict=True):
                np.testing.assert_array_equal(records, others)
                assert others.dtype == np.int64
    spread = pd.read_csv(tmp_path / "heterogeneity.csv")
    assert spread["value"].tolist() == [0.1, 1.1, 2.1]
    assert spread["converged"].tolist() == [True, True, False]
    counts = pd.read_csv(tmp_path / "labels.csv")
    assert list(counts.columns) == ["trial", "silo", "part", "label", "count"]
    assert counts["count"].sum() == sum(len(records) for one in trials for parts in one.silos for records in parts)


def test_missing_partitions_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"indices.parquet: no such file"):
        read_partition(tmp_path, 0)
    y = digits(5)
    write_partition(tmp_path, [partition(y, scheme="by_class", silos=10, generator=rng())], y=y)
    with pytest.raises(ValueError, match="trial is 4"):
        read_partition(tmp_path, 4)


def test_insurance_has_the_papers_sizes(needs_data: Callable[[str], Path]) -> None:
    y = DATASETS["insurance"].load(needs_data("insurance")).y
    sizes = {
        silos: {len(train) for train in partition(y, scheme="sorted_target", silos=silos, generator=rng()).train}
        for silos in (3, 5, 10)
    }
    # The paper's n = 1070/N, rounded down or up.
    assert sizes == {3: {356}, 5: {213, 214}, 10: {106, 107}}


def as_given(assigned: np.ndarray, share: float, seed: int = 0, person: np.ndarray | None = None) -> Partition:
    y, silos = np.zeros(len(assigned)), int(assigned.max()) + 1
    how = {"scheme": "column", "silos": silos, "train_share": share, "generator": rng(seed)}
    return partition(y, **how, assigned=assigned, person=person)


def test_silos_that_are_given_are_split_each_by_itself() -> None:
    assigned = np.array([1, 0, 2, 1, 0, 1, 2, 1, 0, 1, 2, 2])
    found = as_given(assigned, 0.6)
    for silo, (train, test) in enumerate(found.silos):
        assert sorted([*train, *test]) == np.flatnonzero(assigned == silo).tolist()
        assert len(train) == int(0.6 * (assigned == silo).sum() + 1e-9)
    again = as_given(assigned, 0.6, 1)
    assert any(not np.array_equal(one, other) for one, other in zip(found.train, again.train, strict=True))


CUTS: list[dict] = [
    *({"scheme": scheme, "silos": 3} for scheme in ("iid", "sorted_target", "by_class", "column", "dirichlet")),
    *({"scheme": "iid", "silos": 3, "split": "per_silo"}, {"scheme": "iid", "silos": 3, "resample": True}),
    {"scheme": "by_class", "silos": 3, "official_test": rng(3).random(360) < 0.2},
    {"scheme": "digit_pairs", "silos": 25, "mixed": 0.3},
]


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: "-".join(cut) + cut["scheme"])
@pytest.mark.parametrize("seed", range(5))
def test_who_trains_in_any_silo_is_tested_in_none_and_training_sides_keep_their_size(cut: dict, seed: int) -> None:
    person = rng(seed).integers(0, 60, 360)
    y = np.arange(360) % (10 if cut["scheme"] == "digit_pairs" else 3)
    assigned = rng(seed).integers(0, 3, 360) if cut["scheme"] in ("column", "dirichlet") else None
    apart, free = (partition(y, **cut, assigned=assigned, person=one, generator=rng(seed)) for one in (person, None))
    assert [len(train) for train in apart.train] == [len(train) for train in free.train]
    assert not {*person[np.concatenate(apart.train)]} & {*person[np.concatenate(apart.test)]}
    assert len(np.concatenate(apart.test))


def test_persons_who_train_take_few_test_records_away() -> None:
    """One order of persons in all silos: those at the cut are lost, and not everybody who is in two silos."""
    person = np.arange(480) // 8
    for scheme, assigned in (("iid", None), ("column", rng(1).integers(0, 4, 480)), ("column", person % 4)):
        cut = partition(np.zeros(480), scheme=scheme, silos=4, assigned=assigned, person=person, generator=rng(2))
        assert sum(map(len, cut.test)) >= 0.5 * 96


def test_silos_of_targets_are_described_by_count_mean_and_ends() -> None:
    y = np.array([4.0, 1.0, 7.0, 2.0, 9.0, 3.0])
    silos = Partition(((np.array([0, 1]), np.array([2])), (np.array([3, 4]), np.array([5]))))
    wanted = [[0, "train", 2, 1, 2.5, 4], [0, "test", 1, 7, 7, 7], [1, "train", 2, 2, 5.5, 9], [1, "test", 1, 3, 3, 3]]
    assert label_counts(silos, y).to_numpy().tolist() == wanted
    assert label_counts(silos, None)["count"].tolist() == [2, 1, 2, 1]
    labels = label_counts(silos, np.array([0, 1, 1, 1, 1, 0])).to_numpy().tolist()
    assert labels == [[0, "train", 0, 1], [0, "train", 1, 1], [0, "test", 1, 1], [1, "train", 1, 2], [1, "test", 0, 1]]
