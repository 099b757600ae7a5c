"""A job's command line: its words, the digest that it is held to, and how it ends."""

from pathlib import Path

import pandas as pd

from silodp.jobs.__main__ import arguments, main
from silodp.jobs.select import select
from silodp.workflow.engine import JOB_VARIABLE


def test_a_list_takes_every_word_up_to_the_next_argument():
    words = ["trials=a=b", "experiment", "c=d", "run_file=r=s", "experiment=e", "output=o"]
    trials = [Path("a=b"), Path("experiment"), Path("c=d")]
    wanted = {"trials": trials, "run_file": Path("r=s"), "experiment": "e", "output": Path("o")}
    assert arguments(select, words) == wanted


def test_a_job_that_takes_no_run_file_is_held_to_the_digest_before_it_starts(tmp_path, monkeypatch):
    held, output = [], tmp_path / "formulas.csv"
    monkeypatch.setattr("silodp.workflow.job_digest.hold", lambda *words: held.append((*words[:3], words[3]["output"])))
    monkeypatch.setattr("silodp.jobs.formulas.formula_rows", lambda: pd.DataFrame({"held": [len(held)]}))
    assert main(["formulas", f"output={output}", "run_file=run.yaml", "digest=00"]) == 0
    assert held == [("00", Path("run.yaml"), "formulas", output)]
    assert output.read_text() == "held\n1\n"


def test_a_job_ends_with_the_process_that_its_rule_names_and_says_that_it_was_interrupted(monkeypatch, capsys):
    def stop():
        raise KeyboardInterrupt

    parents: list[int] = []
    monkeypatch.setenv(JOB_VARIABLE, "4711")
    monkeypatch.setattr("silodp.jobs.__main__.end_with_parent", parents.append)
    monkeypatch.setattr("silodp.jobs.formulas.formula_rows", stop)
    assert main(["formulas", "output=nothing.csv"]) == 130
    assert parents == [4711]
    assert capsys.readouterr().err == "silodp: interrupted\n"
