"""One rebuild at a time in a folder, and none of its processes left behind, whoever is stopped and how."""

import fcntl
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from silodp.workflow import engine

# Stands for `silodp rebuild`; its Snakemake starts a job, as a rule's shell would, and waits for it.
PARENT = """
import os, pathlib, sys
from silodp.workflow import engine
sys.exit(engine.run([sys.executable, "child.py"], dict(os.environ)))
"""
CHILD = """
import os, pathlib, signal, subprocess, sys
from silodp.workflow.snakemake_child import fall_silent
signal.signal(signal.SIGINT, fall_silent)
from silodp.workflow import engine
held = engine.lock()
job = subprocess.Popen([sys.executable, "-c", pathlib.Path("job.py").read_text()])
pathlib.Path("pids.new").write_text(f"{os.getpid()} {job.pid}")
pathlib.Path("pids.new").rename("pids")
job.wait()
"""
JOB = """
import os, time
from silodp.workflow.engine import end_with_parent
end_with_parent(os.getppid())
open("job", "w").close()
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("parent.py", PARENT), ("child.py", CHILD), ("job.py", JOB)):
        (tmp_path / name).write_text(text)
    return tmp_path


def until(ready, seconds=60.0):
    ends = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < ends
        time.sleep(0.02)


def start(folder):
    """A rebuild at work: its process, those of Snakemake and of a job."""
    with (folder / "said").open("w") as said:
        parent = subprocess.Popen([sys.executable, "parent.py"], cwd=folder, start_new_session=True, stderr=said)
    until(lambda: (folder / "pids").exists() and (folder / "job").exists())
    child, job = (psutil.Process(int(pid)) for pid in (folder / "pids").read_text().split())
    return parent, child, job


def gone(*processes):
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_rebuild_ends_snakemake_and_its_jobs(folder, number):
    parent, child, job = start(folder)
    parent.send_signal(number)
    assert parent.wait(timeout=60) == 128 + number
    assert (folder / "said").read_text() == "silodp: interrupted: the same command goes on where it was\n"
    assert gone(child, job)
    os.close(engine.lock())


@pytest.mark.parametrize("victim", ["parent", "group", "child", "job"])
def test_after_a_kill_nothing_runs_on_and_the_next_rebuild_starts(folder, victim):
    parent, child, job = start(folder)
    with pytest.raises(engine.BusyError, match="another rebuild is running in this folder"):
        engine.lock()
    if victim == "group":
        os.killpg(parent.pid, signal.SIGKILL)
    else:
        {"parent": parent, "child": child, "job": job}[victim].kill()
    parent.wait(timeout=60)
    until(lambda: gone(child, job))
    os.close(engine.lock())


def test_a_rebuild_refuses_while_another_works(folder):
    held = engine.lock()
    with pytest.raises(engine.BusyError):
        engine.run([sys.executable, "-c", "open('started', 'w')"], dict(os.environ))
    assert not (folder / "started").exists()
    os.close(held)
    assert engine.run([sys.executable, "-c", "raise SystemExit(3)"], dict(os.environ)) == 3


@pytest.mark.parametrize("again", [False, True])
def test_a_lock_whose_file_another_removed_meanwhile_is_taken_at_the_new_file(again, folder, monkeypatch):
    """Also where a third has made it again."""
    path, flock = folder / ".r.lock", fcntl.flock

    def removed_first(file, how):
        monkeypatch.undo()
        path.unlink()
        if again:
            path.touch()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    held = engine.lock_results(folder / "r")
    with pytest.raises(engine.BusyError, match="r: another command works on this folder"):
        engine.lock_results(folder / "r")
    os.close(held)


def test_variables_that_would_change_results_are_refused_and_others_ignored(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    engine.set_environment()
    assert os.environ["MPLBACKEND"] == "agg"
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(ValueError, match="environment: NUMBA_DISABLE_JIT: '1': must be 0 or not set"):
        engine.set_environment()


def test_a_job_whose_parent_died_before_it_started_ends_at_once():
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    text = f"from silodp.workflow.engine import end_with_parent; end_with_parent({dead.pid}); print('runs on')"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
