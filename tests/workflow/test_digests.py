"""Paths as digests and rules have them."""

from silodp.workflow.digests import from_here


def test_paths_are_relative_to_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert from_here(tmp_path / "config" / "run.yaml") == "config/run.yaml"
    assert from_here("config/run.yaml") == "config/run.yaml"
    assert from_here("/elsewhere/run.yaml") == "/elsewhere/run.yaml"
