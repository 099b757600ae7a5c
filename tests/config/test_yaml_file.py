"""What is no plain mapping is refused in one line that names the file."""

import itertools

import pytest

from silodp.config.errors import ConfigError
from silodp.config.yaml_file import read_yaml

BOMB = "a: &a [x, x]\n" + "".join(f"{new}: &{new} [*{old}, *{old}]\n" for old, new in itertools.pairwise("abcdefghi"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (BOMB, "aliases are not allowed"),
        ("a: &a {b: *a}", "aliases are not allowed"),
        ("a: " + "[" * 100_000, "not YAML"),
        ("a: " + "9" * 5_000, "not YAML"),
        ("a: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        ("a: !!int x", "not YAML"),
        ("a: !!timestamp x", "not YAML"),
        ("? [a, b]\n: 1", "unhashable key"),
        ("a: 1\na: 2", "key 'a' is given twice"),
        ("b: {a: {}, a: {}}", "key 'a' is given twice"),
        ("a: *b", "aliases are not allowed"),
        ("<<: 1", "not YAML"),
        ("- a", "list: must be a mapping"),
        ("", "NoneType: must be a mapping"),
        ("a: \0", "not YAML"),
        (b"a: \xff\xfe", "not YAML"),
    ],
)
def test_what_is_no_mapping_of_plain_values_is_one_line(tmp_path, text, wanted):
    path = tmp_path / "run.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: file: ")
    assert wanted in line
    assert "\n" not in line
    assert len(line) < 1000


def test_a_file_that_is_missing_has_a_name_close_to_one_beside_it(tmp_path):
    (tmp_path / "nightly.yaml").touch()
    with pytest.raises(ConfigError, match=r"nigthly\.yaml: .*; did you mean nightly\.yaml\?$"):
        read_yaml(tmp_path / "nigthly.yaml")


def test_numbers_may_have_an_exponent_without_a_point(tmp_path):
    (tmp_path / "a.yaml").write_text("a: [1e-3, 1E3, 1.5e2, -2e+1, 3]")
    assert read_yaml(tmp_path / "a.yaml") == {"a": [0.001, 1000.0, 150.0, -20.0, 3]}


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
def test_a_file_has_a_hundred_collections_within_each_other_and_a_million_bytes(tmp_path, more, refused):
    deep = "[" * (99 + more) + "]" * (99 + more)
    for text, wanted in ((f"a: {deep}", "more than 100 collections"), ("a: 1".ljust(10**6 + more), "at most 1000000")):
        (tmp_path / "a.yaml").write_text(text)
        if refused:
            with pytest.raises(ConfigError, match=wanted):
                read_yaml(tmp_path / "a.yaml")
        else:
            assert set(read_yaml(tmp_path / "a.yaml")) == {"a"}
