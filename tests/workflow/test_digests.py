"""Digests of values, and paths as they stand in them."""

import pytest

from silodp.workflow.digests import computed_by, from_here, keys_of


def test_paths_are_as_seen_from_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert from_here(tmp_path / "config" / "run.yaml") == "config/run.yaml"
    assert from_here("config/run.yaml") == "config/run.yaml"
    assert from_here("/elsewhere/run.yaml") == "/elsewhere/run.yaml"


def test_keys_of_a_registry_are_read_off_its_source():
    from silodp.report.figures import BOUNDS_FIGURES

    assert keys_of("silodp.report.figures:BOUNDS_FIGURES") == list(BOUNDS_FIGURES)
    with pytest.raises(ValueError, match=r"silodp\.files:TABLE_COLUMNS: must be a dict of strings"):
        keys_of("silodp.files:TABLE_COLUMNS")


def test_functions_that_do_jobs_must_be_there():
    with pytest.raises(ValueError, match=r"silodp\.cli\.train:trains: no such definition"):
        computed_by("silodp.cli.train:trains")
