"""YAML that would take gigabytes, minutes or a traceback is refused in one line that names the file, at once."""

import itertools
import time

import pytest

from silodp.config.errors import ConfigError
from silodp.config.reading import read_yaml

BOMB = "a: &a [x, x]\n" + "".join(f"{new}: &{new} [*{old}, *{old}]\n" for old, new in itertools.pairwise("abcdefghi"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "more than 100 aliases, or one within an anchored part"),
        ("a: &a x\nb: [" + "*a, " * 200 + "*a]", "more than 100 aliases"),
        ("a: " + "[" * 100_000, "nested more than 30 deep"),
        ("a: " + "{b: " * 5_000, "nested more than 30 deep"),
        ("a: {" + ", ".join(f"k{number}: 1" for number in range(20_000)) + "}", "more than 10000 keys and values"),
        ("a: " + "x" * 400_000, "more than 300000 bytes"),
        ("a: " + "9" * 5_000, "a number of 5000 digits"),
        ("a: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        ("a: !!int x", "not YAML"),
        ("a: !!binary x", "could not determine a constructor"),
        ("? [a, b]\n: 1", "must be a name"),
        ("a: 1\na: 2", "key 'a' is given twice"),
        ("a: *b", "undefined alias"),
        ("<<: 1", "not YAML"),
        ("- a", "list: must be a mapping"),
        ("", "NoneType: must be a mapping"),
        ("a: \0", "not YAML"),
    ],
)
def test_what_is_no_run_file_is_one_line_and_at_once(tmp_path, text, said):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    begun = time.process_time()
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert time.process_time() - begun < 2
    line = str(caught.value)
    assert line.startswith(f"{path}: file: ")
    assert said in line
    assert "\n" not in line
    assert len(line) < 1000


def test_bytes_that_are_no_text_and_folders_are_one_line(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConfigError, match=r"a\.yaml: file: not YAML"):
        read_yaml(tmp_path / "a.yaml")
    with pytest.raises(ConfigError, match="missing: must be a readable YAML file"):
        read_yaml(tmp_path)
