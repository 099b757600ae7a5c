"""A file that is not what its job wrote is named, and nothing else is."""

import os
import shutil

import pytest
from finished import finished

from silodp import files
from silodp.workflow.outputs import MANIFEST
from silodp.workflow.written import changed_files, note_written


def test_what_was_edited_or_exchanged_is_found_and_what_was_written_again_is_not(tmp_path, monkeypatch):
    run = tmp_path / "run"
    monkeypatch.setattr(files, "after_rename", [lambda path: note_written(run, path)])
    names = ("privacy/a.csv", "privacy/b.csv", "tables/a.csv", "config.json")
    for name in names:
        files.write_text(name, run / name)
    files.write_text("elsewhere", tmp_path / "other.txt")
    assert changed_files(run) == []
    (run / "privacy/a.csv").write_text("an epsilon by hand")
    os.replace(run / "privacy/b.csv", run / "tables/a.csv")
    os.utime(run / "config.json", (1, 1))
    assert changed_files(run) == [run / "privacy/a.csv", run / "tables/a.csv"]
    files.write_text("by its job", run / "privacy/a.csv")
    assert changed_files(run) == [run / "tables/a.csv"]


def test_without_its_logs_a_run_is_held_to_its_manifest(tmp_path):
    finished(tmp_path / "run", "run", {"diabetes_linear": {}})
    shutil.rmtree(tmp_path / "run/logs")
    assert changed_files(tmp_path / "run") == []
    (tmp_path / "run/privacy.csv").write_text("an epsilon by hand")
    assert changed_files(tmp_path / "run") == [tmp_path / "run/privacy.csv"]
    (tmp_path / "run" / MANIFEST).write_text("half")
    with pytest.raises(ValueError, match=MANIFEST):
        changed_files(tmp_path / "run")
