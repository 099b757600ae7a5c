"""The checks at their smallest: every row is there, right forms hold, and printed forms that are wrong fail."""

import dataclasses

import numpy as np
import pytest

from silodp.federation.rng import Streams
from silodp.theory import THEOREMS
from silodp.theory.registry import AssumptionError
from silodp.verdicts.checks import run_check, svrg_against_sgd, upper_bounds
from silodp.verdicts.checks.base import Context
from silodp.verdicts.checks.lower_bounds import INSTANCES
from silodp.verdicts.checks.slots import checked_in, empty_fixed, empty_sliding, slotted_risk
from silodp.verdicts.checks.upper_bounds import _drawn_silos, _small_beta

SMOKE = Context(Streams(11), "smoke")


def test_printed_forms_fail_where_the_right_ones_hold():
    rows = [*_small_beta(SMOKE), *_drawn_silos(SMOKE)]
    assert {row["verdict"] for row in rows if row["form"] == "as printed"} == {"refuted", "not contradicted"}
    assert {row["verdict"] for row in rows if row["form"] == "corrected"} == {"confirmed"}
    assert [row["verdict"] for row in rows].count("not contradicted") == 1
    assert len(rows) == 14


def test_participation_tells_the_harmonic_mean_from_the_mean():
    """At the same E[1/M_r] the ratio is near 1, at the same E[M_r] it is near 4/3 (M_r = 2 or 6)."""
    found = run_check("participation", Context(Streams(11), "smoke")).iloc[:2]
    assert found["measured"].tolist() == pytest.approx([1.0, 4 / 3], rel=0.25)
    assert found["upper"].tolist() == pytest.approx([1.0, 4 / 3])


def test_unbalanced_silos_add_the_noise_of_their_own_and_meet_the_complete_theorem():
    found = run_check("participation", Context(Streams(11), "smoke")).iloc[6:]
    assert len(found) == 8
    assert set(found["verdict"]) == {"confirmed"}
    # A bound of a two-thousandth is exceeded by the risk.
    theorem = THEOREMS["convex-2.1-complete"]

    def planted(**point):
        result = theorem.function(**point)
        return dataclasses.replace(result, value=result.value / 2000)

    wrong = THEOREMS | {"convex-2.1-complete": dataclasses.replace(theorem, function=planted)}
    rows = run_check("participation", Context(Streams(11), "smoke", wrong)).iloc[6:]
    risks = rows[rows["parameter"].str.startswith("excess risk")]
    assert set(risks["verdict"]) == {"refuted"}


def test_check_in_rates_with_few_trials_are_not_refuted_and_dummies_confirmed():
    found = run_check("rates_checkins", SMOKE)
    slopes = found[found["parameter"].str.startswith("slope in")]
    assert len(slopes) == 12
    assert not slopes["verdict"].isin(["refuted"]).any()
    dummies = slopes[slopes["theorem"].isin(["checkins-3.4-short", "checkins-4.4"])]
    assert set(dummies["verdict"]) <= {"confirmed", "order agrees"}
    assert (found["verdict"] != "refuted").all()


def test_empty_slots_by_hand():
    """One slot is empty when all miss it: n = 2, m = 2, p0 = 1: 2·(1/2)² = 1/2 on average; sliding n = m = 2: 1/4."""
    generator = np.random.default_rng(1)
    assert empty_fixed(2, 2, 1.0, 4000, generator).mean() == pytest.approx(0.5, abs=0.04)
    assert empty_sliding(2, 2, 4000, generator).mean() == pytest.approx(0.25, abs=0.04)


def test_clients_check_in_once_at_most():
    counts = checked_in(50, 10, 0.4, 300, np.random.default_rng(2))
    assert counts.shape == (300, 10)
    assert counts.sum(axis=1).max() <= 50
    assert counts.sum(axis=1).mean() == pytest.approx(20, abs=1)


@pytest.mark.parametrize("average", [True, False])
def test_slots_without_noise_walk_straight_to_the_minimiser(average):
    counts = np.ones((3, 9), dtype=int)
    risk = slotted_risk(counts, 0.5, p=4, sigma=0.0, average=average, generator=np.random.default_rng(1))
    assert risk == pytest.approx(np.zeros(3), abs=1e-12)


def test_an_empty_slot_moves_a_fixed_window_by_noise_alone_and_an_averaging_one_not_at_all():
    empty = np.zeros((2, 1), dtype=int)
    options = {"p": 3, "sigma": 1.0, "generator": np.random.default_rng(1)}
    assert slotted_risk(empty, 0.5, average=True, **options) == pytest.approx([1.0, 1.0])
    assert (slotted_risk(empty, 0.5, average=False, **options) != 1.0).all()


@pytest.mark.parametrize(
    ("check", "names"),
    [
        (upper_bounds, "_linear _logistic _hinge _lemma_d4 _lemma_d5 _recursion _spider _small_beta _drawn_silos"),
    ],
)
def test_renaming_a_part_of_a_check_changes_none_of_its_random_numbers(check, names, monkeypatch):
    """Streams are named by literals: every part, put aside for a function of another name, still gets its own."""
    for name in names.split():
        monkeypatch.setattr(check, name, lambda context: [{"stream": context.streams.path}])
    found = getattr(check, check.__name__.rpartition(".")[2])(SMOKE)
    assert [one["stream"] for one in found] == [(name,) for name in names.split()]


def test_lower_bounds_are_met_within_two_orders_on_their_instances_and_a_planted_one_is_refuted():
    """As printed; a bound a hundred times as large lies above what one exactly calibrated release reaches."""
    found = run_check("lower_bounds", SMOKE)
    assert set(found["verdict"]) == {"not contradicted"}
    printed = found[found["form"] != "corrected"]
    assert len(printed) == 36
    assert (printed["measured"] / printed["lower"]).between(0.1, 100).all()

    def larger(theorem):
        def wrong(**point):
            return dataclasses.replace(theorem.function(**point), value=100 * theorem.function(**point).value)

        return dataclasses.replace(theorem, function=wrong)

    planted = THEOREMS | {one.theorem: larger(THEOREMS[one.theorem]) for one in INSTANCES}
    found = run_check("lower_bounds", dataclasses.replace(SMOKE, theorems=planted))
    refuted = found[found["verdict"] == "refuted"]
    assert set(refuted["theorem"]) == {one.theorem for one in INSTANCES}


@pytest.mark.parametrize(
    ("name", "enough", "wrong", "said"),
    [
        ("PHASE", 4000, 4200, r"batch of Theorem E.2: K = 15 is not allowed, .* at least .* 15\.7"),
        ("RESTARTS", 43, 42, "restarts of Theorem E.2: S = 42 is not allowed, .* at least 43"),
    ],
)
def test_svrg_outside_theorem_e2_is_refused_before_anything_is_run(name, enough, wrong, said, monkeypatch):
    """K = 64,000/4,200, where (n²/M)^(1/3) = 15.75; S, where log2(ΔμMε²n²/(κdL²)) = 42.5 at κ = 2."""
    asked = []
    for method in ("_svrg", "_sgd"):
        monkeypatch.setattr(
            svrg_against_sgd, method, lambda context, kappa: asked.append(kappa) or np.linspace(1, 2, 8)
        )
    monkeypatch.setattr(svrg_against_sgd, name, enough)
    run_check("svrg_against_sgd", SMOKE)
    assert len(asked) == 10
    monkeypatch.setattr(svrg_against_sgd, name, wrong)
    with pytest.raises(AssumptionError, match=said):
        run_check("svrg_against_sgd", SMOKE)
    assert len(asked) == 10
