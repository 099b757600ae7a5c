"""Gradients that a run computes are counted, and rounds against the earlier algorithm have the stated slopes."""

import dataclasses

import pytest

from silodp.federation.rng import Streams
from silodp.theory import SCHEDULES
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


def test_one_gradient_for_each_record_and_the_stated_factor_in_rounds():
    found = run_check("gradient_counts", SMOKE)
    runs, rounds = found[found["theorem"] == "convex-2.3"], found[found["theorem"] == "convex-2.4"]
    # One mean of all gradients passes as well.
    assert set(runs["verdict"]) == {"derivation"}
    assert runs[runs["parameter"].str.startswith("slope")]["measured"].tolist() == [1.0, 1.0]
    assert set(rounds["verdict"]) == {"derivation"}
    assert rounds["value"].tolist() == [1.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, -0.5]
    assert (rounds["lower"] - rounds["value"]).abs().max() < 0.1


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


def test_a_wrong_factor_in_rounds_is_refuted(monkeypatch):
    """√M claimed where M leads; and a schedule whose rounds grow as M, as fast as the earlier algorithm's."""
    base, exponents = gradient_counts.BRANCHES["M"]
    monkeypatch.setitem(gradient_counts.BRANCHES, "M", (base, exponents | {"M": 0.5}))
    rounds = run_check("gradient_counts", SMOKE)
    rounds = rounds[rounds["theorem"] == "convex-2.4"]["verdict"].tolist()
    assert rounds == ["refuted", *["derivation"] * 7]
    theorem = SCHEDULES["theorem-2.4"]

    def slow(**point):
        return dataclasses.replace(theorem(**point), rounds=point["M"])

    monkeypatch.setitem(SCHEDULES, "theorem-2.4", slow)
    rounds = run_check("gradient_counts", SMOKE).set_index("parameter")["verdict"]
    assert rounds["slope in M (rounds of the earlier algorithm, √M εn/√d leads)"] == "refuted"
