"""The bench runs from end to end at a small size, and its table says what was measured."""

import argparse

import pytest
import torch

import memory
import run
from marked import write_between
from timing import Figure, Work, interleaved


def test_ratios_are_taken_within_a_turn():
    first, second = Figure((1.0, 4.0, 9.0)), Figure((1.0, 2.0, 3.0))
    assert first.per(second).values == (1.0, 2.0, 3.0)
    assert first.median == 4.0
    assert first.map(lambda v: -v).values == (-1.0, -4.0, -9.0)


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


def test_a_target_is_held_against_the_median():
    figure = Figure((1.0, 2.0, 30.0))
    assert run._at_least("", "", figure, 2.0).met
    assert not run._at_least("", "", figure, 2.1).met
    assert run._at_most("", "", figure, 2.0).met
    assert "**no**" in run._at_most("", "", figure, 1.9).line()


def test_a_table_goes_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- b -->\nafter\n")
    write_between(page, "<!-- a -->", "<!-- b -->", "new")
    assert page.read_text() == "before\n<!-- a -->\nnew\n<!-- b -->\nafter\n"


@pytest.mark.slow
def test_peak_memory_is_the_jobs_own():
    """A command that only reads a run file stays far below this process, which has PyTorch loaded."""
    assert 5 < memory.peak(["config", "check", "config/smoke.yaml"]) < memory.own_peak()
    with pytest.raises(RuntimeError, match="exit code 2"):
        memory.peak(["config", "check", "no-such-file.yaml"])
