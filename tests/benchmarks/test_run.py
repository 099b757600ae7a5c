"""The bench runs from end to end at a small size, and its table says what was measured."""

import argparse
import os
import re
import subprocess
import sys

import pytest
import torch
from small import ROOT

import memory
import run
from timing import Work, interleaved

PAGES = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("program", sorted(set(re.findall(r"`python (benchmarks/\w+\.py)", PAGES))))
def test_a_program_of_the_docs_starts_as_printed_there(program):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, program, "--help"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_work_takes_turns_and_the_first_turn_is_not_counted():
    calls = []
    work = {name: Work(lambda name=name: calls.append(name)) for name in "ab"}
    seconds = interleaved(work, 3)
    assert "".join(calls) == "abababab"
    assert all(len(figure.values) == 3 for figure in seconds.values())


@pytest.mark.slow
def test_the_bench_measures_what_it_lists():
    before = torch.get_num_threads()
    try:
        rows, notes = run.speed(argparse.Namespace(threads=2, quick=True, repeats=2))
    finally:
        run.use_threads(1)
        torch.set_num_threads(before)
    assert all(0 < min(row.figure.values) <= row.figure.median for row in rows)
    targets = {row.target for row in rows if row.met is not None}
    assert targets == {"≥ 40", "≥ 45", "≤ 1", "≥ 15", "≥ 500"}
    text = run.page(rows, notes, ["--quick"])
    assert text.count("\n| ") == len(rows) + 2
    assert "benchmarks/run.py --quick" in text


@pytest.mark.slow
def test_peak_memory_is_the_jobs_own():
    """A command that only reads a run file stays far below this process, which has PyTorch loaded."""
    assert 5 < memory.peak(["fetch", "names=wbcd"]) < memory.own_peak()
    with pytest.raises(RuntimeError, match="exit code 2"):
        memory.peak(["fetch", "names=nope"])
