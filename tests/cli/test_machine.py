"""Faults of the machine: one line and an exit code, no traceback, nothing half written."""

import errno
import os
import resource
import stat
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from example_table import results_table
from small import ROOT

from silodp import cli
from silodp.cli import main
from silodp.federation.partition import Partition, write_partition
from silodp.federation.stored_records import Records, write_records
from silodp.files import write_csv, write_parquet, write_text
from silodp.report.figures import error_vs_epsilon, save
from silodp.workflow import engine

SMOKE = ROOT / "config" / "smoke.yaml"


def said(capsys) -> str:
    """The one line on the error stream."""
    (line,) = capsys.readouterr().err.splitlines()
    return line


@contextmanager
def full_disk(most=300):
    """As on a full disk no file can grow beyond some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("where", ["make_parser", "theory"])
def test_ctrl_c_is_one_line_at_any_moment(where, monkeypatch, capsys):
    """Also while libraries are loading, which takes a second."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        *((cli, "make_parser") if where == "make_parser" else ("silodp.cli.theory.theory",)), interrupted
    )
    assert main(["theory", "list"]) == 130
    assert said(capsys) == "silodp: interrupted"


def _figure(folder: Path) -> None:
    save(error_vs_epsilon(results_table(), title="t"), folder / "a", ["svg"])


def _silos(folder: Path) -> None:
    part = np.arange(100)
    write_partition(folder, [Partition(((part, part + 100), (part + 200, part + 300)))], y=np.arange(400) % 2)


FRAME = pd.DataFrame({"a": np.arange(5000.0)})
WRITERS = {
    "text": lambda folder: write_text("x" * 5000, folder / "a.txt"),
    "table": lambda folder: write_csv(FRAME, folder / "a.csv"),
    "trials": lambda folder: write_parquet(FRAME, folder / "a.parquet"),
    "records": lambda folder: write_records(folder, [Records(np.ones((50, 20)), np.zeros(50), 20)]),
    "silos": _silos,
    "figure": _figure,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk_leaves_no_half_file(kind, tmp_path):
    with full_disk(), pytest.raises(OSError, match="too large") as caught:
        WRITERS[kind](tmp_path)
    assert caught.value.errno in (errno.EFBIG, None)
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    WRITERS[kind](tmp_path)
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    # One that was small enough is there, and whole.
    assert left.items() < whole.items()


def test_a_full_disk_is_one_line(tmp_path, capsys):
    with full_disk():
        assert main(["-q", "provenance", str(SMOKE), "--output", str(tmp_path / "provenance.json")]) == 1
    assert "File too large" in said(capsys)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_checkout_that_cannot_be_written_is_one_line_before_any_job(number, tmp_path, monkeypatch, capsys):
    def refused(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "mkdir", refused)
    monkeypatch.setattr(engine, "_give_caches", lambda: None)
    assert main(["-q", "rebuild", str(SMOKE)]) == 1
    assert said(capsys) == f"silodp rebuild: .snakemake: {os.strerror(number)}"


def test_without_a_home_caches_are_this_users_alone_and_data_stay_where_they_were(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    home = tmp_path / "file" / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "SILODP_DATA_CACHE", "MPLCONFIGDIR", "SILODP_DATA_MIRROR"):
        # Set first, so that what the command sets is taken back after the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    assert main(["-q", "fetch", "insurance"]) == 2
    assert said(capsys) == f"silodp fetch: insurance: cache folder, {home}/.cache/silodp: Not a directory"
    made = Path(os.environ["XDG_CACHE_HOME"])
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert os.environ["MPLCONFIGDIR"] == str(made)
    # A job inherits it and makes none of its own.
    engine.set_environment()
    assert os.environ["XDG_CACHE_HOME"] == str(made)
