"""Killing a rebuild at several moments and starting it again ends in the files of an undisturbed one."""

import os
import random
import signal
import subprocess
import time
from collections import Counter

import pandas as pd
import pytest
from measured import Tried
from runs import TINY, checkout, contents, environment, rebuild
from storm import Storm

SEED = int(os.environ.get("SILODP_SEED", random.SystemRandom().randrange(10**6)))
KILLS = int(os.environ.get("SILODP_KILLS", "200"))
MINUTES = float(os.environ.get("SILODP_SOAK_MINUTES", "60"))
# Kills before a rebuild is let finish and its results are compared.
ROUND = 10


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


@pytest.mark.slow
def test_random_kills_of_a_rebuild_end_in_the_same_tables(tmp_path, tried):
    """`SILODP_KILLS` kills (200) of parent, Snakemake, group or a job, at moments from `SILODP_SEED`."""
    print(f"seed {SEED}")
    storm, done, survived = Storm(tmp_path, SEED, "tables"), 0, 0
    while done < KILLS:
        storm.wipe()
        before = storm.kills.total()
        while storm.kills.total() < min(before + ROUND, KILLS):
            if storm.kill() is None:
                storm.wipe()
        storm.finish()
        number = storm.kills.total() - before
        done += number
        survived += number * storm.equal()
        print(f"{done} kills, {survived} in rounds that ended equal", flush=True)
    storm.finish("all")
    assert storm.verified()
    victims = ", ".join(f"{number} {victim}" for victim, number in sorted(storm.kills.items()))
    ended = (
        f"{victims}; each {ROUND} then compared: tables equal, verified; {len(storm.left)} processes left; seed {SEED}"
    )
    tried.append(Tried("kill of a rebuild at a random moment", done, survived, ended))
    assert storm.left == []
    assert survived == done


@pytest.mark.slow
def test_a_soak_of_random_faults_ends_in_the_same_files(tmp_path, tried):
    """Kills, spoiled and removed files, for `SILODP_SOAK_MINUTES` (60); after each a rebuild must mend what is wrong.

    A file that was changed by hand is not made again by itself, as its date is as good as any: `silodp verify` must
    name it, and once it is removed the rebuild makes it.
    """
    print(f"seed {SEED}")
    storm = Storm(tmp_path, SEED)
    ends, faults, survived = time.monotonic() + 60 * MINUTES, Counter(), 0
    while time.monotonic() < ends:
        if storm.rng.random() < 0.5:
            storm.wipe()
            fault, found = "kills", storm.kill() is not None
            if not found:
                continue
        else:
            fault = "files spoiled or removed"
            name = storm.spoil()
            found = name in storm.wrong()
            (storm.results / name).unlink(missing_ok=True)
        storm.finish()
        faults[fault] += 1
        survived += found and storm.verified() and storm.equal()
    words = ", ".join(f"{number} {fault}" for fault, number in sorted(faults.items()))
    ended = f"{words}, mended by a rebuild each; {len(storm.left)} processes left; seed {SEED}"
    tried.append(Tried(f"soak of {MINUTES:g} minutes", faults.total(), survived, ended))
    assert storm.left == []
    assert survived == faults.total() > 0
