"""The agreed file: what cannot be a federation is told in one line with its key."""

import re
import unicodedata

import pytest
import yaml
from three_silos import federation_keys

from silodp.config.errors import ConfigError
from silodp.silos.federation_file import read_federation


def with_schema(**changes):
    return {"schema": federation_keys()["schema"] | changes}


def with_silos(**certificates):
    silos = federation_keys()["silos"]
    return {"silos": {name: of | {"certificate": certificates.get(name, "")} for name, of in silos.items()}}


BOUNDS = {"age": [0, 120], "bmi": [10, 50]}
COLUMNS = federation_keys()["schema"]["columns"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithm": {"name": "minibatch_sdg"}}, "algorithm.name: 'minibatch_sdg': must be one of .*minibatch_sgd"),
        ({"algorithm": {"name": "silo_only"}}, "algorithm.name: 'silo_only': must train with other silos"),
        ({"algorithm": {"name": "sdp_prox_sgd"}}, "algorithm.name: 'sdp_prox_sgd': must train with other silos"),
        ({"participants": 4}, "participants: 4: must be at most the 3 silos"),
        ({"participants": 2, "at_least": 3}, "at_least: 3: must be at most participants = 2"),
        ({"clip": float("inf")}, "clip: inf: must be finite"),
        ({"reply_after": 0.5, "wait": 1.0}, "wait: 1.0: must be above twice reply_after = 0.5"),
        (with_silos(east="one", west="one"), "silos: 'certificate': must be another for every silo"),
        ({"model": {"name": "linear"}}, "model.name: 'linear': must be linear or absolute for a target of numbers"),
        ({"model": {"name": "convnet"}}, "model.name: 'convnet': must be a model of columns"),
        (with_schema(target="age", bounds=BOUNDS), "model.name: 'logistic': must be linear or absolute for a target"),
        (with_schema(target="sick"), "columns: must have the target 'sick'"),
        (with_schema(columns={"ill": COLUMNS["ill"]}, bounds={}), "columns: must have one of numbers, categories or"),
        (with_schema(bounds={"age": [0, 120]}), "bounds: must be given for every number, and for nothing else: 'bmi'"),
        (with_schema(bounds=BOUNDS | {"ill": [0, 1]}), "bounds: must be given for every number, .*: 'ill'"),
        (with_schema(bounds=BOUNDS | {"age": [5, 5]}), "bounds: 'age': the lowest value must be below the highest"),
        (with_schema(columns=COLUMNS | {"sex": {"type": "category"}}), "columns: 'sex': must have its values"),
        (with_schema(columns=COLUMNS | {"ill": {"type": "category", "values": ["no"]}}), "columns: 'ill': must have"),
    ],
)
def test_what_is_no_federation_is_refused_by_its_key(changes, said, tmp_path):
    path = tmp_path / "federation.yaml"
    path.write_text(yaml.safe_dump(federation_keys() | changes))
    with pytest.raises(ConfigError) as refused:
        read_federation(path)
    assert re.search(re.escape(f"{path}: ") + ".*" + said, str(refused.value))
    assert "\n" not in str(refused.value)


def test_columns_may_be_named_in_another_form_of_unicode(tmp_path):
    path, keys = tmp_path / "federation.yaml", yaml.safe_dump(federation_keys(), allow_unicode=True)
    for form in ("NFC", "NFD"):
        path.write_text(unicodedata.normalize(form, re.sub(r"\b(bmi|ill)\b", "\\1\u00e9", keys)))
        schema = read_federation(path).records
        assert (schema.target, "bmi\u00e9" in schema.bounds) == ("ill\u00e9", True)


@pytest.mark.parametrize(
    ("changes", "least"),
    [({}, 3), ({"at_least": 2}, 2), ({"participants": 1}, 1), (with_silos(east="a", west="b"), 3)],
)
def test_what_may_be_a_federation_is_read(changes, least, tmp_path):
    path = tmp_path / "federation.yaml"
    path.write_text(yaml.safe_dump(federation_keys() | changes))
    assert read_federation(path).least == least
    target = {"target": "age", "columns": COLUMNS, "bounds": BOUNDS}
    path.write_text(yaml.safe_dump(federation_keys() | {"schema": target, "model": {"name": "absolute"}}))
    assert read_federation(path).records.classes is None
    assert read_federation(path).records.features == 1 + 2 + 1
