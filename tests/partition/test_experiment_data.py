"""A data set as an experiment reads it: what is declared is what is loaded, whatever is left out of it."""

from dataclasses import replace

import numpy as np
import pytest

from silodp.config.experiment import Partitioning
from silodp.datasets import DATASETS
from silodp.datasets.base import Data
from silodp.extending.contract import DATASET_CHECKS
from silodp.partition.experiment_data import _person_spread, _registered, limit_person_records
from silodp.partition.partition import dirichlet

SIZES = (30, 10, 20)
SILO = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], SIZES))
PEOPLE = np.repeat(np.arange(12), 5)


def of_silos(**more):
    n = sum(SIZES)
    data = Data(np.arange(2.0 * n).reshape(n, 2), np.arange(n) * 0.5, None, silo=SILO, silo_names=("A", "B", "C"))
    made = {"name": "toy", "embedded": True, "records": n, "features": 2, "silo_records": SIZES, **more}
    return replace(DATASETS["diabetes"], loader=lambda files: data, standardise_columns=(), **made)


def checked(dataset):
    for check in DATASET_CHECKS.values():
        check(dataset)
    return dataset.load()


@pytest.mark.parametrize("name", ["digits", "wbcd"])
@pytest.mark.parametrize("per_class", [None, 20, 180])
def test_dirichlet_silos_have_the_first_records_of_each_class_and_the_sizes_that_are_declared(name, per_class):
    whole = DATASETS[name]
    dataset = _registered(whole, Partitioning(scheme="dirichlet", count=4, alpha=1.0, per_class=per_class))
    data, every = checked(replace(dataset, test_counts=None)), whole.load()
    firsts = [np.flatnonzero(every.y == label)[:per_class] for label in range(every.classes)]
    np.testing.assert_array_equal(data.x, every.x[np.sort(np.concatenate(firsts))])
    assert tuple(np.bincount(data.silo)) == dataset.silo_records
    np.testing.assert_array_equal(data.silo, dirichlet(data.y, data.classes, 4, 1.0))


@pytest.mark.parametrize(("least", "kept"), [(None, [0, 1, 2]), (10, [0, 1, 2]), (11, [0, 2]), (30, [0]), (20, [0, 2])])
def test_silos_with_too_few_records_are_left_out_and_the_others_numbered_anew(least, kept):
    dataset = _registered(of_silos(), Partitioning(scheme="column", least=least))
    data = checked(dataset)
    assert data.silo_names == tuple("ABC"[silo] for silo in kept)
    assert dataset.silo_records == tuple(SIZES[silo] for silo in kept) == tuple(np.bincount(data.silo))
    for new, old in enumerate(kept):
        np.testing.assert_array_equal(data.y[data.silo == new], np.flatnonzero(old == SILO) * 0.5)


def test_another_scheme_does_not_see_the_silos_that_records_name():
    assert _registered(of_silos(), Partitioning(scheme="iid", count=3)).silo_records is None
    assert _registered(DATASETS["digits"], Partitioning(scheme="digit_pairs")) is DATASETS["digits"]


@pytest.mark.parametrize("classes", [3, None])
def test_dirichlet_silos_have_two_records_each_and_are_always_the_same(classes):
    y = np.arange(90) % 3 if classes else np.arange(90.0)
    for N in (2, 20):
        silo = dirichlet(y, classes, N, 0.5)
        assert np.bincount(silo, minlength=N).min() >= 2
        np.testing.assert_array_equal(silo, dirichlet(y, classes, N, 0.5))
    # Shares nearly alike: a class, or a tenth of a target, is in all silos.
    parts = y if classes else y // 9
    silo = dirichlet(y, classes, 2, 1e6)
    assert all(np.ptp(np.bincount(silo[parts == part], minlength=2)) <= 1 for part in np.unique(parts))
    with pytest.raises(ValueError, match="leaves one of 46 silos without records"):
        dirichlet(y, classes, 46, 0.5)


@pytest.mark.parametrize("limit", [1, 4, 5])
def test_a_person_keeps_as_many_records_as_the_limit_drawn_always_the_same(limit):
    data = Data(np.arange(60.0)[:, None], np.arange(60.0), None, person=PEOPLE)
    found = limit_person_records(data, limit)
    assert np.bincount(found.person).tolist() == [limit] * 12
    assert (found is data) == (limit == 5)
    np.testing.assert_array_equal(found.y, limit_person_records(data, limit).y)
    assert limit == 5 or set(found.y % 5) != set(range(limit)), "not the first of each"


def test_a_persons_records_lie_in_as_many_silos_as_the_spread_says():
    data = Data(np.zeros((60, 1)), np.zeros(60), None, person=PEOPLE)
    plan = Partitioning(scheme="column", count=3)
    assert _person_spread(plan, replace(data, person=np.zeros(0, dtype=int))) is None
    # Of silos that are cut anew any 3 may hold a person's 5 records, or any of 9 all in silos apart.
    assert _person_spread(plan, data) == (3, 5)
    assert _person_spread(Partitioning(scheme="column", count=9), data) == (5, 5)
    silo = np.where(np.arange(60) < 2, 1, 0)
    assert _person_spread(plan, replace(data, silo=silo)) == (2, 5)
    silo = np.arange(60) % 5
    assert _person_spread(plan, replace(data, silo=silo)) == (5, 1)
