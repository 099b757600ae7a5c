"""Jobs forked from one process: the same words, answers and ends as jobs that start by themselves."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from silodp.cli import warm
from silodp.workflow.engine import JOB_VARIABLE

JOB = [sys.executable, "-m", "silodp.cli"]


@pytest.fixture(scope="module")
def environment():
    one = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    with warm.jobs_from_one(one) as found:
        # As Snakemake does for a job of one thread.
        yield {**found, **warm.ONE_THREAD, JOB_VARIABLE: str(os.getpid())}


def run(environment, *words, **options):
    return subprocess.run([*JOB, *words], env=environment, capture_output=True, text=True, timeout=60, **options)


def forks():
    """Jobs at work, as children of the process that they are forked from."""
    servers = [one for one in psutil.Process().children() if "silodp.cli.forks" in one.cmdline()]
    return [job for one in servers for job in one.children()]


def until(ready):
    ends = time.monotonic() + 30
    while not (found := ready()):
        assert time.monotonic() < ends
        time.sleep(0.02)
    return found


@pytest.fixture
def at_work(environment):
    """A command that waits for its job, and the job."""
    command = [*JOB, "cost", "config/smoke.yaml"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as waiting:
        (job,) = until(forks)
        yield waiting, job
        waiting.kill()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["list", "algorithms"], 0),
        (["config", "check", "no/such.yaml"], 2),
        (["nosuch"], 2),
        (["--version"], 0),
    ],
)
def test_a_job_says_and_ends_as_one_by_itself(environment, words, code, tmp_path):
    handed, alone = run(environment, *words, cwd=tmp_path), run(dict(os.environ), *words, cwd=tmp_path)
    assert handed.returncode == code
    assert (handed.returncode, handed.stdout, handed.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_a_job_that_read_other_variables_at_its_start_is_not_handed_over(environment, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert warm.handed_over(environment[warm.VARIABLE], ["--version"]) is None
    assert run({**environment, "OMP_NUM_THREADS": "2"}, "--version").stdout == run(environment, "--version").stdout


def test_without_the_process_a_job_runs_by_itself(environment):
    assert run({**environment, warm.VARIABLE: "/no/such/socket"}, "--version").returncode == 0


def test_a_job_ends_with_the_command_that_waits_for_it(at_work):
    waiting, job = at_work
    waiting.kill()
    until(lambda: not job.is_running())


def test_the_command_of_a_killed_job_says_so_and_fails(at_work):
    waiting, job = at_work
    job.kill()
    assert waiting.wait(timeout=30) == 137
    assert b"killed" in waiting.stderr.read()


REBUILD = """
import os, time
from silodp.cli import warm
with warm.jobs_from_one(dict(os.environ)):
    time.sleep(60)
"""


def test_it_ends_with_a_parent_that_is_killed_while_it_imports():
    with subprocess.Popen([sys.executable, "-c", REBUILD]) as parent:
        (server,) = until(psutil.Process(parent.pid).children)
        parent.kill()
    until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
