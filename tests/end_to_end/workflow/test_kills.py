"""Killing a rebuild at several moments and starting it again ends in the files of an undisturbed one."""

import os
import signal
import subprocess
import time

import pandas as pd
import pytest
from runs import TINY, checkout, contents, environment, rebuild


def _kill_when(folder, ready, timeout=300.0):
    """Start a rebuild and SIGKILL its process group as soon as `ready()`; returns whether it was still running."""
    process = subprocess.Popen(
        rebuild(),
        cwd=folder,
        env=environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + timeout
    while process.poll() is None and not ready():
        assert time.monotonic() < deadline, "the rebuild did not get to the moment of the kill"
        time.sleep(0.02)
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return alive


def _finish(folder):
    result = subprocess.run(rebuild(), cwd=folder, env=environment(), capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.slow
def test_a_killed_rebuild_ends_in_the_same_files(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for folder in (undisturbed, killed):
        folder.mkdir()
        checkout(folder)
        (folder / "config" / "tiny.yaml").write_text(TINY.format(trials_per_job=2))
    _finish(undisturbed)

    results = killed / "results" / "tiny"
    moments = [
        lambda: (results / "logs").exists(),
        lambda: len(list(results.glob("trials/*/*/*/*.parquet"))) >= 2,
        lambda: len(list(results.glob("trials/*/*/*/*_fresh.parquet"))) >= 1,
        lambda: (results / "tables").exists(),
        lambda: len(list(results.glob("figures/*.png"))) >= 1,
    ]
    kills = 0
    for ready in moments:
        kills += _kill_when(killed, ready)
        # Whatever stands under its own name is whole: a killed job leaves nothing that looks finished.
        for name in results.rglob("*.parquet"):
            if not name.name.startswith("."):
                assert len(pd.read_parquet(name))
    assert kills >= 3
    _finish(killed)
    assert contents(results) == contents(undisturbed / "results" / "tiny")
