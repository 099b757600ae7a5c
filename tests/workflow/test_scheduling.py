"""Snakemake's own limit of jobs in a time is off, one that somebody sets is not; jobs do not make it look oftener."""

import subprocess
import sys

import pytest
from small import ROOT

from silodp.workflow.scheduling import parsed


def test_the_default_limit_is_off():
    assert parsed(["--cores", "1"])[1].max_jobs_per_timespan is None


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_no_profile_brings_it_back(profile):
    assert parsed(["--profile", str(ROOT / "workflow" / "profiles" / profile)])[1].max_jobs_per_timespan is None


def test_a_limit_on_the_command_line_stays():
    limit = parsed(["--cores", "1", "--max-jobs-per-timespan", "5/2s"])[1].max_jobs_per_timespan
    assert (limit.max_jobs, limit.timespan) == (5, 2)


def test_a_limit_of_a_profile_stays(tmp_path):
    (tmp_path / "config.yaml").write_text("max-jobs-per-timespan: 7/1m\n")
    limit = parsed(["--profile", str(tmp_path), "--cores", "1"])[1].max_jobs_per_timespan
    assert (limit.max_jobs, limit.timespan) == (7, 60)


SNAKEFILE = """
from snakemake.scheduling.job_scheduler import JobScheduler

looks, look = [], JobScheduler.job_selector
JobScheduler.job_selector = lambda self, jobs: looks.append(1) or look(self, jobs)

rule all:
    input: expand("{i}.txt", i=range(20)), "last.txt"
rule short:
    output: "{i,[0-9]+}.txt"
    shell: "touch {output}"
rule long:
    input: "0.txt"
    output: "last.txt"
    shell: "sleep 3; touch {output}"
onsuccess:
    print("looks:", len(looks))
"""


def test_the_scheduler_looks_for_jobs_when_one_has_ended_and_not_by_the_clock(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "silodp.workflow.scheduling", "--cores", "1", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    looks = int(done.stdout.split("looks:")[1].split()[0])
    # 22 jobs, of which each is looked for once and ends once.
    assert 22 <= looks <= 44


def test_what_fails_and_what_cannot_be_read_ends_with_one(tmp_path):
    (tmp_path / "Snakefile").write_text("rule all:\n    output: 'a'\n    shell: 'exit 3'\n")
    command = [sys.executable, "-m", "silodp.workflow.scheduling", "--cores", "1"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120).returncode == 1
    (tmp_path / "Snakefile").write_text("rule all\n")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120).returncode == 1


def test_messages_on_options_are_those_of_snakemake(tmp_path):
    command = [sys.executable, "-m", "silodp.workflow.scheduling", "--core", "1", "--no-such-option"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "snakemake: error: unrecognized arguments: --no-such-option" in done.stderr
