"""The names in Python that other programs call."""

from silodp.algorithms import ALGORITHMS
from silodp.datasets import DATASETS
from silodp.privacy.accounting import delivered_epsilon
from silodp.theory import THEOREMS


def test_entries_are_found_by_their_names():
    assert callable(delivered_epsilon)
    assert ALGORITHMS["fedprox_spider"].name == "fedprox_spider"
    assert DATASETS["mnist"].name == "mnist"
    assert THEOREMS["convex-2.1"].key == "convex-2.1"
