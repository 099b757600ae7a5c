"""The names in Python that other programs call."""

import importlib

import pytest

DOORS = {
    "silodp.privacy.accounting": "delivered_epsilon",
    "silodp.theory": "THEOREMS",
    "silodp.algorithms": "ALGORITHMS",
    "silodp.datasets": "DATASETS",
}


@pytest.mark.parametrize(("module", "name"), DOORS.items())
def test_a_door_opens(module, name):
    assert hasattr(importlib.import_module(module), name)


def test_entries_are_found_by_their_names():
    from silodp.algorithms import ALGORITHMS
    from silodp.datasets import DATASETS
    from silodp.theory import THEOREMS

    assert ALGORITHMS["fedprox_spider"].name == "fedprox_spider"
    assert DATASETS["mnist"].name == "mnist"
    assert THEOREMS["convex-2.1"].key == "convex-2.1"
