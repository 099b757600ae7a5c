"""The live lines of a run: counts, trials, time left, failures, and the words at the end."""

import io
import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest
import small
import yaml
from rich.console import Console
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_silodp import LogHandler
from snakemake_logger_plugin_silodp.progress import Job, Progress, span

PROFILES = sorted((small.ROOT / "workflow" / "profiles").glob("*/config.yaml"))


def job(number, tmp_path, trials="2-4", rule="train"):
    places = {"experiment": "e", "algorithm": "spider", "setting": "M2_R25", "reading": "default"}
    record = SimpleNamespace(
        jobid=number,
        rule_name=rule,
        wildcards=places | {"trials": trials},
        log=[tmp_path / f"{number}.log"],
        output=["out"],
    )
    return Job.from_record(record)


def test_a_job_is_named_by_what_it_trains_and_says_which_trial_it_is_at(tmp_path):
    one = job(1, tmp_path)
    assert one.name == "train e spider M2_R25 trials 2-4"
    assert one.trial() == ""
    (tmp_path / "1.log").write_text("12:00 INFO e spider M2_R25 default: trial 2\n12:01 INFO e spider: trial 3\n")
    assert one.trial() == "trial 2 of 3"
    (tmp_path / "1.log").write_text("x\n" * 9000 + "12:02 INFO e spider: trial 4\n")
    assert one.trial() == "trial 3 of 3"


def test_the_time_left_follows_what_jobs_of_each_rule_took(tmp_path, monkeypatch):
    progress, clock = Progress(), [1000.0]
    monkeypatch.setattr("snakemake_logger_plugin_silodp.progress.time.time", lambda: clock[0])
    progress.planned({"train": 3, "table": 1})
    assert progress.seconds_left(clock[0]) is None
    for number in (1, 2):
        progress.described(job(number, tmp_path))
    clock[0] += 10
    done = progress.finished(1)
    assert (done.seconds, progress.counted) == (10, "[1/4]")
    # Two trainings of 10 s, one of them 10 s old, and a table that nobody has seen yet: two at once.
    assert progress.seconds_left(clock[0]) == pytest.approx((10 + 10 + 10 - 10) / 2)
    assert progress.finished(99) is None
    progress.planned({"train": 9})  # said again at the end
    assert progress.total == 4


@pytest.mark.parametrize("profile", PROFILES, ids=[path.parent.name for path in PROFILES])
def test_every_profile_shows_lines_of_jobs(profile):
    assert len(PROFILES) == 5
    assert yaml.safe_load(profile.read_text(encoding="utf-8"))["logger"] == "silodp"


def test_times_in_words():
    assert [span(s) for s in (0.4, 59.4, 60, 200, 7500)] == ["0 s", "59 s", "1 min 0 s", "3 min 20 s", "2 h 5 min"]
    assert [span(s) for s in (3599.6, 6837.5, 7180)] == ["1 h 0 min", "1 h 54 min", "2 h 0 min"]


def handler(**more):
    settings = SimpleNamespace(
        dryrun=False, quiet=None, show_failed_logs=True, debug_dag=False, verbose=False, printshellcmds=False, **more
    )
    made = LogHandler(settings, None)
    made.console = Console(file=io.StringIO(), width=100)
    return made


def record(event=None, msg="", level=logging.INFO, **fields):
    made = logging.LogRecord("snakemake", level, "", 0, msg, None, None)
    made.__dict__.update(fields | ({"event": event} if event else {}))
    return made


def test_events_become_plain_lines_with_the_end_of_a_failed_log_and_a_summary(tmp_path):
    one = handler()
    (tmp_path / "2.log").write_text("".join(f"line {i}\n" for i in range(30)) + "ValueError: bad\n")
    one.emit(record(LogEvent.RUN_INFO, stats={"train": 2, "total": 2}))
    for number in (1, 2):
        fields = {
            "jobid": number,
            "rule_name": "train",
            "wildcards": {"experiment": "e"},
            "output": ["results/x/report.html"],
        }
        one.emit(record(LogEvent.JOB_INFO, **fields, log=[str(tmp_path / f"{number}.log")]))
    one.emit(record(LogEvent.JOB_FINISHED, job_id=1))
    one.emit(record(LogEvent.JOB_ERROR, jobid=2, rule_name="train"))
    one.emit(record(msg="Select jobs to execute..."))
    one.emit(record(msg="Nothing to be done (all files are there)."))
    one.emit(record(msg="careful", level=logging.WARNING))
    one.close()
    said = one.console.file.getvalue()
    assert "2 jobs: 2 train\n" in said
    assert "[1/2]  train e  0 s\n" in said
    assert "failed: train e" in said
    assert "    ValueError: bad" in said
    assert "line 3\n" not in said
    assert f"whole log: {tmp_path / '2.log'}" in said
    assert "Select jobs" not in said
    assert "Nothing to be done" in said
    assert "careful" in said
    assert "1 of 2 jobs done" in said
    assert "page: results/x/report.html" in said


def test_snakemake_takes_the_plugin_and_says_a_line_a_job(tmp_path):
    (tmp_path / "Snakefile").write_text(
        'rule all:\n    input: "a.out"\n\n\nrule make:\n    output: "{name}.out"\n    shell: "touch {output}"\n'
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--logger", "silodp"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0
    assert len(ran.stderr.splitlines()) <= 6
    assert "[1/2]  make a" in ran.stderr
    assert "2 of 2 jobs done" in ran.stderr
    dry = subprocess.run([*command, "-n", "-F"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "rule make:" in dry.stdout
