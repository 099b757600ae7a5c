"""A silo's records in the agreed form, and what of them is told to their owner."""

import numpy as np
import pytest
import yaml
from three_silos import federation_keys

from silodp.config.errors import ConfigError
from silodp.silos.federation_file import read_federation, read_silo
from silodp.silos.silo_records import read_silo_records

HEAD = "age,bmi,ward,ill\n"
ROWS = ["130,30,a,yes", "-1,10,b,no", "60,,a,yes", "0,50,,no", "120,20,c,yes"]


def owned(folder, rows, target="ill", **changes):
    schema = federation_keys()["schema"]
    ward = {"type": "category", "values": ["a", "b"]}
    schema |= {"columns": schema["columns"] | {"ward": ward}, "missing": "mean", "target": target}
    keys = federation_keys() | {"schema": schema} | changes
    keys["silos"]["north"]["records"] = 5
    (folder / "federation.yaml").write_text(yaml.safe_dump(keys))
    (folder / "north.csv").write_text(HEAD + "\n".join(rows) + "\n")
    silo = folder / "silo.yaml"
    silo.write_text(yaml.safe_dump({"name": "north", "file": "north.csv", "budget": 5.0, "delta": 1e-4}))
    return read_silo_records(read_silo(silo), read_federation(folder / "federation.yaml"))


def test_records_are_cut_to_the_agreed_bounds_and_their_owner_is_told(tmp_path):
    (x, y), told = owned(tmp_path, ROWS)
    # Bounds 0 to 120 and 10 to 50; a ward that is neither of two; the constant.
    wanted = [[1, 0, 1, 0, 1], [-1, -1, 0, 1, 1], [0, 0, 1, 0, 1], [-1, 1, 0, 0, 1], [1, -0.5, 0, 0, 1]]
    np.testing.assert_allclose(x, wanted)
    assert y.tolist() == [1.0, 0.0, 1.0, 0.0, 1.0]
    assert told == [
        "column 'age': 2 of 5 values are beyond its bounds, and are cut",
        "column 'bmi': 1 of 5 values are missing, and are the middle of its bounds",
        "column 'ward': 2 of 5 values are no category of the schema, and count as none",
    ]
    assert owned(tmp_path, ["120,50,a,yes", "0,10,b,no"] * 3)[1] == []


def test_a_target_of_numbers_is_scaled_to_its_bounds(tmp_path):
    (x, y), told = owned(tmp_path, ROWS, target="age", model={"name": "linear"})
    assert y.tolist() == [1.0, -1.0, 0.0, -1.0, 1.0]
    assert x.shape == (5, 1 + 2 + 2 + 1)
    assert told[-1] != told[0] == "column 'bmi': 1 of 5 values are missing, and are the middle of its bounds"
    assert "column 'age': 2 of 5 values are beyond its bounds, and are cut" in told


def test_a_file_with_fewer_records_than_declared_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"north\.csv: fewer records than silos\.north\.records = 5: must have"):
        owned(tmp_path, ROWS[:4])
