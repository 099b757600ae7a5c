"""The lines of a run: counts, times, failures, and the summary at the end."""

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


@pytest.mark.parametrize("profile", sorted((small.ROOT / "workflow" / "profiles").glob("*/config.yaml")))
def test_every_profile_shows_lines_of_jobs(profile):
    assert yaml.safe_load(profile.read_text(encoding="utf-8"))["logger"] == "silodp"


def record(event=None, msg="", level=logging.INFO, **fields):
    made = logging.LogRecord("snakemake", level, "", 0, msg, None, None)
    made.__dict__.update(fields | ({"event": event} if event else {}))
    return made


def test_events_become_lines_with_the_end_of_a_failed_log_and_a_summary(tmp_path, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("snakemake_logger_plugin_silodp.time.time", lambda: clock[0])
    names = ("dryrun", "quiet", "show_failed_logs", "debug_dag", "verbose", "printshellcmds")
    handler = LogHandler(SimpleNamespace(**dict.fromkeys(names, False)), None)
    handler.console = Console(file=io.StringIO(), width=100)
    (tmp_path / "2.log").write_text("".join(f"line {i}\n" for i in range(30)) + "ValueError: bad\n")
    handler.emit(record(LogEvent.RUN_INFO, stats={"train": 1, "evaluate_e_0": 1, "evaluate_e_1": 1, "total": 3}))
    for number in (1, 2):
        places = {"experiment": "e", "reading": "default", "trials": f"{number}-{number}"}
        files = {"output": ["results/x/report.html"], "log": [str(tmp_path / f"{number}.log")]}
        handler.emit(record(LogEvent.JOB_INFO, jobid=number, rule_name="train", wildcards=places, **files))
    clock[0] += 10
    handler.emit(record(LogEvent.JOB_FINISHED, job_id=1))
    assert str(handler.__rich__()) == "[1/3]  0:00:10 so far, about 0:00:20 left\n  train e 2-2  0:00:10"
    handler.emit(record(LogEvent.JOB_ERROR, jobid=2, rule_name="train"))
    handler.emit(record(LogEvent.JOB_FINISHED, job_id=99))
    handler.emit(record(LogEvent.RUN_INFO, stats={"train": 9, "total": 9}))  # repeated at the end
    handler.emit(record(msg="Select jobs to execute..."))
    handler.emit(record(msg="Nothing to be done (all files are there)."))
    handler.emit(record(msg="careful", level=logging.WARNING))
    handler.close()
    text = handler.console.file.getvalue()
    assert text.startswith(
        "3 jobs: 1 train, 2 evaluate\n[1/3]  train e 1-1  0:00:10\nfailed: train e 2-2\n    line 19\n"
    )
    assert f"    ValueError: bad\n    whole log: {tmp_path / '2.log'}\nNothing to be done" in text
    assert "Select jobs" not in text
    assert text.endswith("careful\n2 of 3 jobs done in 0:00:10\npage: results/x/report.html\nfailed: train e 2-2\n")


def test_snakemake_loads_the_plugin(tmp_path):
    rules = 'rule all:\n    input: "a.out"\n\n\nrule make:\n    output: "{name}.out"\n    shell: "touch {output}"\n'
    (tmp_path / "Snakefile").write_text(rules)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--logger", "silodp"]
    dry, done = (
        subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
        for words in (["--dry-run"], [])
    )
    assert "rule make:" in dry.stdout
    assert "[1/2]  make a" in done.stderr
    assert "2 of 2 jobs done" in done.stderr
    assert len(done.stderr.splitlines()) <= 6
