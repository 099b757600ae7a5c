"""Files appear whole or not at all, and read back as they were written."""

import os
import stat
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silodp.experiments.columns import PRIVACY_COLUMNS, TABLE_COLUMNS
from silodp.files import experiments_of, write_atomically, write_csv, write_parquet, write_text


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_whole_and_alone(tmp_path):
    path = tmp_path / "deep" / "er" / "a.txt"
    write_text("häl\n", path)
    assert path.read_bytes() == "häl\n".encode()
    assert listing(path.parent) == ["a.txt"]


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_the_users_umask_decides_who_may_read_a_file(tmp_path, umask, mode):
    """A run file holds a secret seed."""
    before = os.umask(umask)
    try:
        write_text("seed: 1", tmp_path / "a.yaml")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.yaml").stat().st_mode) == mode


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("before", [{}, {"a.csv": "old"}])
def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path, before, error):
    for name, text in before.items():
        write_text(text, tmp_path / name)
    with pytest.raises(error, match="stop"), write_atomically(tmp_path / "a.csv") as temporary:  # noqa: PT012
        temporary.write_text("new, but half")
        assert (temporary.suffix, temporary.parent) == (".csv", tmp_path)
        raise error("stop")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_nothing_is_seen_under_the_name_before_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    with write_atomically(path) as temporary:
        temporary.write_text("part")
        assert not path.exists()
        temporary.write_text("whole")
    assert path.read_text() == "whole"


def test_a_reader_never_sees_a_half_file(tmp_path):
    path, seen, done = tmp_path / "a.txt", set(), threading.Event()
    texts = {letter * 200_000 for letter in "xy"}
    write_text("x" * 200_000, path)

    def read():
        while not done.is_set():
            seen.add(path.read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(20):
        write_text("xy"[k % 2] * 200_000, path)
    done.set()
    reader.join()
    assert seen <= texts


def test_a_failing_writer_of_tables_leaves_nothing(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": [1.5]})

    def fail(self, path, **_):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    monkeypatch.setattr(pd.DataFrame, "to_parquet", fail)
    for write in (write_csv, write_parquet):
        with pytest.raises(OSError, match="No space"):
            write(frame, tmp_path / "table")
    assert listing(tmp_path) == []


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=8))
def test_floats_read_back_exactly(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("floats")
    frame = pd.DataFrame({"value": np.array(values, dtype=float)})
    write_csv(frame, folder / "a.csv")
    write_parquet(frame, folder / "a.parquet")
    pd.testing.assert_frame_equal(pd.read_csv(folder / "a.csv", float_precision="round_trip"), frame, check_exact=True)
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "a.parquet"), frame, check_exact=True)


def test_a_run_names_its_experiments_or_nothing_is_known_of_them(tmp_path):
    assert experiments_of(tmp_path) is None
    for config, named in (("{}", None), ('{"experiments": {}}', None), ('{"experiments": {"a": {}}}', {"a"})):
        (tmp_path / "config.json").write_text(config)
        assert experiments_of(tmp_path) == named


def test_the_same_table_is_the_same_file(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [0.1, float("nan")], "c": ["x", ""]})
    for name in ("one", "two"):
        write_csv(frame, tmp_path / f"{name}.csv")
        write_parquet(frame, tmp_path / f"{name}.parquet")
    for suffix in ("csv", "parquet"):
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()
    assert (tmp_path / "one.csv").read_bytes() == b"a,b,c\n1,0.1,x\n2,,\n"


def test_tables_have_the_columns_that_other_programs_read():
    assert ",".join(TABLE_COLUMNS) == (
        "experiment,algorithm,reading,private,M,R,N,n,K,delta,epsilon,delivered_epsilon,selection,evaluation,stepsize,"
        "clip,phase_length,trials,diverged,train_loss_mean,test_error_mean,test_error_p05,test_error_p95,seconds,proven"
    )
    assert ",".join(PRIVACY_COLUMNS) == (
        "experiment,algorithm,reading,M,R,epsilon,"
        "claimed_epsilon,delivered_epsilon,delta,accountant,adjacency,sampling,noise_multiplier,holds"
    )


def test_a_path_that_is_a_folder_is_an_error_that_leaves_nothing(tmp_path):
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(OSError, match=r"a\.txt"):
        write_text("x", tmp_path / "a.txt")
    assert listing(tmp_path) == ["a.txt"]
    assert os.listdir(tmp_path / "a.txt") == []


def test_a_copy_of_a_temporary_file_that_somebody_made_is_left_and_in_nobodys_way(tmp_path):
    with write_atomically(tmp_path / "x.csv") as temporary:
        temporary.write_text("1")
        machine = temporary.name.split(".")[3]
        dead = tmp_path / temporary.name.replace(f".{os.getpid()}.", ".4194305.")
        dead.touch()
    copies = [f".x.csv.{machine}.{word}.csv" for word in ("backup", "²", "", "1e3")]
    for name in copies:
        (tmp_path / name).write_text("kept")
    write_text("2", tmp_path / "x.csv")
    assert listing(tmp_path) == sorted(["x.csv", *copies])
