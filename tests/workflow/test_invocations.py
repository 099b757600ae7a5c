"""The log of invocations: what a person typed, and which jobs were done when."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from silodp.workflow import invocations


def job(folder, name, when):
    """The log of a job that ended at `when`."""
    path = folder / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    os.utime(path, (when.timestamp(), when.timestamp()))


def test_what_a_killed_invocation_did_is_counted_and_what_was_done_again_counts_once(tmp_path, monkeypatch):
    monkeypatch.setenv(invocations.COMMAND_VARIABLE, "make paper")
    before = datetime.now(UTC)
    job(tmp_path, "fetch/mnist.log", before - timedelta(days=1))  # before anything was noted
    invocations.begin(tmp_path, {"commit": "a", "dirty": False})
    first = datetime.now(UTC)
    for name in ("train/a.log", "train/b.log", "table/a.log", "claims.log"):
        job(tmp_path, name, first)
    monkeypatch.setenv(invocations.COMMAND_VARIABLE, "silodp rebuild config/paper.yaml")
    invocations.begin(tmp_path, {"commit": "b", "dirty": True})  # the first one was killed: it has no end
    second = datetime.now(UTC)
    job(tmp_path, "table/a.log", second)
    invocations.end(tmp_path, completed=True)
    invocations.begin(tmp_path, {"commit": "c", "dirty": False})  # and a third finds nothing to do
    one, two = invocations.done(tmp_path)
    assert (one["command"], one["commit"], one["jobs"]) == ("make paper", "a", {"claims": 1, "train": 2})
    assert (two["command"], two["commit"], two["jobs"]) == ("silodp rebuild config/paper.yaml", "b", {"table": 1})
    assert before <= one["started"] <= one["finished"] == pytest.approx(first, abs=timedelta(milliseconds=1))
    assert two["finished"] >= second
    assert (one["completed"], two["completed"], two["dirty"]) == (None, True, True)


def test_without_a_command_handed_on_it_is_that_of_this_process(tmp_path, monkeypatch):
    monkeypatch.delenv(invocations.COMMAND_VARIABLE, raising=False)
    monkeypatch.setattr("sys.argv", ["/x/bin/snakemake", "--configfile", "config/my run.yaml"])
    invocations.begin(tmp_path, {"commit": None, "dirty": None})
    job(tmp_path, "claims.log", datetime.now(UTC))
    assert [one["command"] for one in invocations.done(tmp_path)] == ["snakemake --configfile 'config/my run.yaml'"]


def test_an_end_without_a_beginning_is_no_invocation(tmp_path):
    invocations.end(tmp_path, completed=False)
    assert invocations.done(tmp_path) == []
