"""Stored records have a format: files from before it had a number are read, those of a later one are refused."""

import json
from pathlib import Path

import pytest

from silodp.experiments.validation import load
from silodp.files import read_json
from silodp.workflow import provenance

# Written before formats had numbers.
FORMER = Path(__file__).parent / "format_1"
CONFIG, RECORD = "config.json", "provenance.json"


@pytest.fixture
def written(tmp_path):
    """The folder with both records of the same run as they are written now."""
    provenance.record(load(FORMER / CONFIG), [], tmp_path / RECORD)
    return tmp_path


def test_records_are_read_with_and_without_a_number(written):
    assert [json.loads((written / name).read_text())["format"] for name in (CONFIG, RECORD)] == [1, 1]
    assert load(FORMER / CONFIG).dump() == load(written / CONFIG).dump()
    former, now = (provenance.runs_of(read_json(folder / RECORD)) for folder in (FORMER, written))
    assert set(former) == set(now) == {"one"}
    assert set(former["one"]) == set(now["one"])


@pytest.mark.parametrize(("name", "read"), [(CONFIG, load), (CONFIG, read_json), (RECORD, read_json)])
def test_a_later_format_is_refused_in_one_line(written, name, read):
    path = written / name
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(ValueError, match="json: format: 2: must be 1: another version of silodp wrote it"):
        read(path)
