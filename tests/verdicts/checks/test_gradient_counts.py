"""Gradients that a run computes are counted."""

import dataclasses

import pytest

from silodp.streams import Streams
from silodp.verdicts.checks import gradient_counts, run_check
from silodp.verdicts.checks.base import Context
from silodp.verdicts.checks.prescribed_runs import run_schedule

SMOKE = Context(Streams(7), "smoke")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(gradient_counts, "RUNS", {"n": [8, 16, 32], "M": [2, 4, 8]})


def ratios(found) -> tuple[set, set]:
    """Verdicts and values of the gradients of a run over its records."""
    rows = found[found["parameter"].str.startswith("gradients of a run")]
    return set(rows["verdict"]), set(rows["measured"])


def test_one_gradient_for_each_record():
    runs = run_check("gradient_counts", SMOKE)
    # One mean of all gradients passes as well.
    assert set(runs["verdict"]) == {"derivation"}
    assert runs[runs["parameter"].str.startswith("slope")]["measured"].tolist() == [1.0, 1.0]


def test_a_second_pass_a_repeated_record_and_a_square_number_of_gradients_are_found(monkeypatch):
    """Two runs in one; batches drawn with replacement, as many gradients but of fewer records; and n² a silo."""

    def twice(*arguments, **point):
        run_schedule(*arguments, **point)
        return run_schedule(*arguments, **point)

    monkeypatch.setattr(gradient_counts, "run_schedule", twice)
    assert ratios(run_check("gradient_counts", SMOKE)) == ({"refuted"}, {2.0})

    def replaced(schedule, *arguments, **point):
        return run_schedule(dataclasses.replace(schedule, name="theorem-D.1"), *arguments, **point)

    monkeypatch.setattr(gradient_counts, "run_schedule", replaced)
    assert ratios(run_check("gradient_counts", SMOKE)) == ({"refuted"}, {1.0})
    monkeypatch.setattr(gradient_counts, "_counted", lambda context, n, M: (M * n * n, n))
    found = run_check("gradient_counts", SMOKE).set_index("parameter")
    assert found.loc["slope in n (gradients of a run)", "verdict"] == "refuted"
    assert found.loc["slope in M (gradients of a run)", "verdict"] == "derivation"
