"""The bench runs from end to end at a small size, and its table says what was measured."""

import argparse
import itertools

import pytest
import torch

import memory
import run
from timing import Clock, Figure, Work, interleaved


@pytest.fixture
def options():
    before = torch.get_num_threads()
    yield argparse.Namespace(device="cpu", threads=1, clock="cpu", quick=True, repeats=2)
    torch.set_num_threads(before)


def test_ratios_are_taken_within_a_turn():
    first, second = Figure((1.0, 4.0, 9.0)), Figure((1.0, 2.0, 3.0))
    assert first.per(second).values == (1.0, 2.0, 3.0)
    assert (first.low, first.median, first.high) == (1.0, 4.0, 9.0)
    assert first.map(lambda v: -v).values == (-1.0, -4.0, -9.0)


def test_work_takes_turns_and_the_first_turn_is_not_counted(options):
    calls = []
    work = {name: Work(lambda name=name: calls.append(name), 1) for name in "ab"}
    seconds = interleaved(work, 3, Clock("wall", torch.device("cpu")))
    assert "".join(calls) == "abababab"
    assert all(len(figure.values) == 3 for figure in seconds.values())


def test_cpu_time_is_shared_among_threads(monkeypatch):
    """On a clock that says 6 s of the processor and 10 s by the wall for every call."""
    monkeypatch.setattr("time.process_time", itertools.count(0, 6).__next__)
    monkeypatch.setattr("time.perf_counter", itertools.count(0, 10).__next__)
    spent = [
        Clock(kind, torch.device("cpu")).seconds(Work(int, threads)) for kind in ("cpu", "wall") for threads in (1, 2)
    ]
    assert spent == [6, 3, 10, 10]


@pytest.mark.parametrize(("kind", "device"), [("sun", "cpu"), ("cpu", "cuda")])
def test_a_clock_that_would_not_show_the_work_is_refused(kind, device):
    with pytest.raises(ValueError, match="must be wall"):
        Clock(kind, torch.device(device))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_bench_measures_what_it_lists(options, threads):
    options.threads = threads
    try:
        rows, notes = run.speed(options)
    finally:
        run.use_threads(1)
    assert all(0 < row.figure.low <= row.figure.median <= row.figure.high for row in rows)
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


def test_peak_memory_is_the_jobs_own():
    """A command that only reads a run file stays far below this process, which has PyTorch loaded."""
    assert 5 < memory.peak(["config", "check", "config/smoke.yaml"]) < memory.own_peak()
    with pytest.raises(RuntimeError, match="exit code 2"):
        memory.peak(["config", "check", "no-such-file.yaml"])
