"""A file that is not what its job wrote is named, and nothing else is."""

import os

from silodp import files
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
