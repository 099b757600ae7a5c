"""One rebuild at a time in a folder, and none of its processes left behind, whoever is stopped and how."""

import json
import os
import platform
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
with engine.only_one() as lock:
    sys.exit(engine.run([sys.executable, "-c", pathlib.Path("child.py").read_text()], dict(os.environ), lock,
                        pathlib.Path("profile")))
"""
CHILD = """
import pathlib, subprocess, sys
from silodp.workflow import engine
engine.note_holder()
locks = pathlib.Path(".snakemake/locks"); locks.mkdir(exist_ok=True); (locks / "0.output.lock").write_text("a")
job = subprocess.Popen([sys.executable, "-c", pathlib.Path("job.py").read_text()])
pathlib.Path("pids.new").write_text(f"{__import__('os').getpid()} {job.pid}")
pathlib.Path("pids.new").rename("pids")
try:
    job.wait()
finally:
    (locks / "0.output.lock").unlink()
"""
JOB = """
import time
from silodp.workflow.engine import end_with_parent
end_with_parent()
open("job", "w").close()
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("parent.py", PARENT), ("child.py", CHILD), ("job.py", JOB)):
        (tmp_path / name).write_text(text)
    return tmp_path


def until(ready, seconds=30.0):
    ends = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < ends
        time.sleep(0.02)


def start(folder):
    """A rebuild at work: its process, those of Snakemake and of a job."""
    for name in ("pids", "job"):
        (folder / name).unlink(missing_ok=True)
    parent = subprocess.Popen([sys.executable, "parent.py"], cwd=folder, start_new_session=True)
    until(lambda: (folder / "pids").exists() and (folder / "job").exists())
    child, job = (psutil.Process(int(pid)) for pid in (folder / "pids").read_text().split())
    return parent, child, job


def gone(*processes):
    return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_parent_ends_snakemake_and_its_jobs(folder, number):
    parent, child, job = start(folder)
    parent.send_signal(number)
    assert parent.wait(timeout=30) == 128 + number
    assert gone(child, job)
    with engine.only_one():
        pass


@pytest.mark.parametrize("victim", ["parent", "group", "child", "job"])
def test_after_a_kill_nothing_runs_on_and_the_next_rebuild_starts(folder, victim):
    parent, child, job = start(folder)
    if victim == "group":
        os.killpg(parent.pid, signal.SIGKILL)
    else:
        {"parent": parent, "child": child, "job": job}[victim].kill()
    parent.wait(timeout=30)
    until(lambda: gone(child, job))
    # Where Snakemake was killed its own lock stayed, and is released by the next.
    with engine.only_one():
        assert not (folder / ".snakemake/locks/0.output.lock").exists()


def test_two_rebuilds_are_kept_apart(folder):
    parent, _, _ = start(folder)
    with pytest.raises(engine.BusyError, match="another rebuild is running in this folder"), engine.only_one():
        pass
    parent.terminate()
    parent.wait(timeout=30)


def test_on_a_cluster_snakemake_is_asked_to_let_its_jobs_end_and_keeps_the_lock(folder):
    (folder / "profile").mkdir()
    (folder / "profile/config.yaml").write_text("executor: slurm\n")
    text = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: open('asked', 'w').close())\n"
    (folder / "child.py").write_text(text + CHILD)
    parent, child, job = start(folder)
    parent.kill()
    parent.wait()
    until(lambda: (folder / "asked").exists())
    assert child.is_running()
    with pytest.raises(engine.BusyError), engine.only_one():
        pass
    job.kill()
    until(lambda: gone(child))
    with engine.only_one():
        pass


def test_a_direct_snakemake_at_work_is_left_alone(folder):
    (folder / ".snakemake/locks").mkdir(parents=True)
    lock = folder / ".snakemake/locks/0.input.lock"
    lock.write_text("a")
    engine.note_holder()
    with pytest.raises(engine.BusyError, match=f"process {os.getpid()}: wait for its end"), engine.only_one():
        pass
    holder = folder / ".snakemake/silodp-holder.json"
    here = json.loads(holder.read_text())
    # On another machine nobody can tell from here whether it lives.
    holder.write_text(json.dumps(here | {"host": "elsewhere"}))
    with pytest.raises(engine.BusyError, match="locked by Snakemake on elsewhere"), engine.only_one():
        pass
    assert lock.exists()
    # Its number went to another process since.
    holder.write_text(json.dumps({"host": platform.node(), "pid": os.getpid(), "began": here["began"] - 100}))
    with engine.only_one():
        assert not lock.exists()


@pytest.mark.parametrize("left", [None, "", "{", "[]", '{"host": "x"}', '{"pid": "x"}', "null"])
def test_a_damaged_record_of_the_holder_holds_nobody_up(folder, left):
    (folder / ".snakemake/locks").mkdir(parents=True)
    (folder / ".snakemake/locks/0.input.lock").write_text("a")
    if left is not None:
        (folder / ".snakemake/silodp-holder.json").write_text(left)
    with engine.only_one():
        assert not (folder / ".snakemake/locks").exists()


def test_variables_that_would_change_results_are_refused_and_others_ignored(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    engine.set_environment()
    assert os.environ["MPLBACKEND"] == "agg"
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(ValueError, match="environment: NUMBA_DISABLE_JIT: '1': must be 0 or not set"):
        engine.set_environment()


def test_a_process_whose_parent_died_before_it_could_say_so_ends_at_once():
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    text = f"from silodp.workflow.engine import end_with_parent; end_with_parent(parent={dead.pid}); print('runs on')"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (-signal.SIGKILL, "")


def test_a_job_that_a_command_between_started_runs_on():
    text = (
        f"from silodp.workflow.engine import end_with_parent; end_with_parent(parent={os.getpid()}); print('runs on')"
    )
    between = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {text!r}]))"
    found = subprocess.run([sys.executable, "-c", between], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (0, "runs on\n")
