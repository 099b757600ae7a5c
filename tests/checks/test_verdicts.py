"""Planted errors are found: a wrong exponent, in the claim or in a theorem, and a wrong constant."""

import dataclasses

import numpy as np
import pytest

from silodp.checks import CHECKS, run_check
from silodp.checks.base import Context, Sweep, bounded, equals, sweep_rows, table, within
from silodp.checks.rates_nonconvex import _prox_sgd
from silodp.checks.upper_bounds import _lemma_d4, _linear
from silodp.results import BOUNDS_COLUMNS
from silodp.rng import Streams
from silodp.statistics import Interval
from silodp.theory import THEOREMS

SMOKE = Context(Streams(7), "smoke")


def planted(key: str, change) -> Context:
    """A context in which one theorem's result is changed."""
    theorem = THEOREMS[key]

    def wrong(**parameters):
        return change(theorem.function(**parameters), parameters)

    return dataclasses.replace(SMOKE, theorems={**THEOREMS, key: dataclasses.replace(theorem, function=wrong)})


def sweep_in_m(context: Context) -> Sweep:
    return next(sweep for sweep in _prox_sgd(context) if sweep.axis == "M" and "quadratic" in sweep.regime)


def slope_row(sweep: Sweep) -> dict:
    return sweep_rows(sweep, SMOKE.streams)[-1]


def test_the_right_exponent_is_confirmed():
    found = slope_row(sweep_in_m(SMOKE))
    assert found["verdict"] == "confirmed"
    assert found["lower"] < found["measured_low"] < found["measured_high"] < found["upper"]


def test_a_planted_wrong_exponent_is_refuted():
    """The rate of central DP, 1/N², claimed for ISRL-DP, 1/N."""
    right = sweep_in_m(SMOKE)
    wrong = dataclasses.replace(right, exponent=-2.0, neighbours=(-1.0, -3.0), formula=lambda M: M**-2.0)
    assert slope_row(wrong)["verdict"] == "refuted"


def test_a_theorem_with_a_planted_wrong_exponent_differs_from_its_claim():
    def squared(result, parameters):
        return dataclasses.replace(result, terms={"private": result.terms["private"] / parameters["M"]})

    found = slope_row(sweep_in_m(planted("nonconvex-2.1", squared)))
    assert found["verdict"].startswith("formula differs: its slope is -2.0")


def test_a_planted_wrong_constant_fails_where_the_right_one_holds():
    """272 for 2.72 in Theorem 2.1, and the start-up term of Lemma D.4 forgotten with a tenth of its noise."""

    def hundredth(result, parameters):
        return dataclasses.replace(result, value=result.value / 100)

    assert {row["verdict"] for row in _linear(SMOKE)} == {"holds"}
    assert "fails" in {row["verdict"] for row in _linear(planted("convex-2.1", hundredth))}
    assert {row["verdict"] for row in _lemma_d4(SMOKE)} == {"holds"}
    assert "fails" in {row["verdict"] for row in _lemma_d4(planted("convex-lemma-D.4-shifted", hundredth))}


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [((1.0, 0.5, 1.5), "holds"), ((3.0, 2.5, 3.5), "fails"), ((2.0, 1.5, 2.5), "inconclusive"),
     ((-2.0, -3.0, -1.5), "fails"), ((-1.0, -1.5, -0.5), "inconclusive")],
)  # fmt: skip
def test_verdicts_of_an_interval_between_bounds(interval, verdict):
    assert within(Interval(*interval), -1.0, 2.0) == verdict


def test_a_missing_bound_is_no_bound():
    assert within(Interval(1.0, 0.5, 1.5), np.nan, np.nan) == "holds"


def test_rows_of_printed_forms_say_so():
    found = bounded("convex-2.1", "n", 10, np.linspace(0.9, 1.1, 50), upper=0.2, printed=True)
    assert (found["theorem"], found["verdict"]) == ("convex-2.1 (printed)", "fails as printed")


def test_an_equality_fails_on_both_sides():
    samples = np.random.default_rng(1).normal(3.0, 0.1, 200)
    assert [equals("x", "n", 1, samples, exact)["verdict"] for exact in (2.9, 3.0, 3.1)] == ["fails", "holds", "fails"]


def test_a_slope_with_too_few_trials_is_inconclusive():
    generator = np.random.default_rng(3)
    noisy = dataclasses.replace(
        sweep_in_m(SMOKE), sample=lambda M: np.abs(generator.standard_cauchy(8)) / M, formula=lambda M: 1 / M
    )
    assert slope_row(noisy)["verdict"] == "inconclusive"


def test_a_table_has_the_columns_of_the_door():
    found = table("rates", [bounded("convex-2.1", "n", 10, np.array([1.0, 1.1]), upper=2.0)])
    assert list(found.columns) == BOUNDS_COLUMNS
    assert found["check"].tolist() == ["rates"]


@pytest.mark.parametrize("name", ["figure_3", "table_1"])
def test_generated_tables_repeat_themselves(name):
    first, again = run_check(name, SMOKE), run_check(name, SMOKE)
    assert first.equals(again)
    assert name in CHECKS
    assert len(first) > 20


def test_figure_3_has_the_papers_gaps_at_its_point():
    """κ = 10: the ERM entries are a factor κ apart; non-convex, d/(ε²n²N) = 5e-7 to the power 2/3 − 1."""
    found = run_check("figure_3", SMOKE)
    row = found[(found["parameter"] == "epsilon (isrl_erm)") & (found["value"] == 1.0)].iloc[0]
    assert (row["lower"], row["upper"]) == pytest.approx((5e-7, 5e-6))
    row = found[(found["parameter"] == "epsilon (isrl_nonconvex)") & (found["value"] == 1.0)].iloc[0]
    assert row["upper"] / row["lower"] == pytest.approx(5e-7 ** (-1 / 3))


def test_table_1_has_the_papers_exponents_and_finds_the_captions_slip():
    found = run_check("table_1", SMOKE)
    exponents = found[found["parameter"].str.startswith("exponent")]
    assert set(exponents["verdict"]) == {"holds"}
    assert len(exponents) == 8
    printed = found[found["theorem"].str.endswith("(printed)")]
    assert any(verdict.startswith("fails") for verdict in printed["verdict"])
