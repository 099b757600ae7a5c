"""Planted errors are found: a wrong exponent, in the claim or in a theorem, and a wrong constant."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from silodp.federation.rng import Streams
from silodp.files import BOUNDS_COLUMNS
from silodp.theory import THEOREMS
from silodp.verdicts.checks import CHECKS, run_check
from silodp.verdicts.checks.amplification import laws
from silodp.verdicts.checks.base import Context, Sweep, bounded, equals, judged, sweep_rows, table, within
from silodp.verdicts.checks.rates_checkins import _compared, _smooth
from silodp.verdicts.checks.rates_convex import _heterogeneous, _sweeps
from silodp.verdicts.checks.rates_nonconvex import _prox_sgd, _silos
from silodp.verdicts.checks.upper_bounds import _lemma_d4, _linear
from silodp.verdicts.statistics import Interval
from silodp.verdicts.words import AS_PRINTED

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
    assert found["verdict"] in ("confirmed", "order agrees")
    assert found["formula"] == pytest.approx(-1.0)
    assert found["rivals"] == "-2 -0.5"
    assert found["lower"] < found["measured_low"] < found["measured_high"] < found["upper"]


def test_a_planted_wrong_exponent_is_refuted():
    """The rate of central DP, 1/N², claimed for ISRL-DP, 1/N."""
    right = sweep_in_m(SMOKE)
    wrong = dataclasses.replace(right, exponent=-2.0, neighbours=(-1.0, -3.0), formula=lambda M: M**-2.0)
    assert slope_row(wrong)["verdict"] == "refuted"


def test_a_theorem_with_a_planted_wrong_exponent_is_refuted():
    def squared(result, parameters):
        return dataclasses.replace(result, terms={"private": result.terms["private"] / parameters["M"]})

    found = slope_row(sweep_in_m(planted("nonconvex-2.1", squared)))
    assert found["verdict"] == "refuted"
    assert found["detail"].startswith("the formula's own slope is -2.0")


def test_a_planted_wrong_constant_fails_where_the_right_one_holds():
    """272 for 2.72 in Theorem 2.1, and the start-up term of Lemma D.4 forgotten with a tenth of its noise."""

    def hundredth(result, parameters):
        return dataclasses.replace(result, value=result.value / 100)

    assert {row["verdict"] for row in _linear(SMOKE)} == {"confirmed"}
    assert "refuted" in {row["verdict"] for row in _linear(planted("convex-2.1", hundredth))}
    assert {row["verdict"] for row in _lemma_d4(SMOKE)} == {"confirmed"}
    assert "refuted" in {row["verdict"] for row in _lemma_d4(planted("convex-lemma-D.4-shifted", hundredth))}


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [((1.0, 0.5, 1.5), "confirmed"), ((3.0, 2.5, 3.5), "refuted"), ((2.0, 1.5, 2.5), "inconclusive"),
     ((-2.0, -3.0, -1.5), "refuted"), ((-1.0, -1.5, -0.5), "inconclusive")],
)  # fmt: skip
def test_verdicts_of_an_interval_between_bounds(interval, verdict):
    assert within(Interval(*interval), -1.0, 2.0) == verdict


def test_a_missing_bound_is_no_bound():
    assert within(Interval(1.0, 0.5, 1.5), np.nan, np.nan) == "confirmed"


def test_rows_of_printed_forms_say_so():
    found = bounded("convex-2.1", "n", 10, np.linspace(0.9, 1.1, 50), upper=0.2, reach=2.0, form=AS_PRINTED)
    assert (found["theorem"], found["form"], found["verdict"]) == ("convex-2.1", "as printed", "refuted")


def test_a_bound_that_cannot_be_exceeded_confirms_nothing():
    """Bounds of 0.5, of 2, the largest value that can be reached, and of 17 on the same values."""
    samples = np.linspace(0.1, 0.2, 50)
    found = [bounded("convex-2.2", "n", 10, samples, upper=upper, reach=2.0) for upper in (0.5, 2.0, 17.0)]
    assert [one["verdict"] for one in found] == ["confirmed", "vacuous here", "vacuous here"]
    assert found[2]["detail"] == "at most 2 can be reached"
    assert bounded("convex-2.2", "n", 10, samples + 20, upper=17.0, reach=2.0)["verdict"] == "refuted"


@pytest.mark.parametrize("check", ["upper_bounds", "rates_checkins"])
def test_every_upper_bound_of_the_published_run_stands_beside_what_can_be_reached(check):
    """A row with an upper bound alone knows the largest value, and is confirmed only where the bound lies below it."""
    found = pd.read_csv(Path(__file__).parents[3] / "results" / "published" / "bounds" / f"{check}.csv")
    bounds = found[found["upper"].notna() & found["lower"].isna() & found["verdict"].notna()]
    assert len(bounds) > 3
    assert bounds["reach"].notna().all()
    confirmed = bounds[bounds["verdict"] == "confirmed"]
    assert (confirmed["upper"] < confirmed["reach"]).all()
    assert (bounds["measured_low"] <= bounds["reach"]).all()


@pytest.mark.parametrize(
    ("interval", "own", "verdict"),
    [
        ((-1.0, -1.1, -0.9), -0.97, "confirmed"),
        ((-1.1, -1.12, -1.08), -1.1, "confirmed"),
        ((-1.1, -1.12, -1.08), -0.97, "order agrees"),
        ((-1.3, -1.6, -1.1), -1.0, "inconclusive"),
        ((-1.0, -2.1, -0.4), -1.0, "inconclusive"),
        ((-1.9, -1.95, -1.85), -1.0, "refuted"),
        ((-1.0, -1.1, -0.9), -1.8, "refuted"),
    ],
)
def test_a_slope_is_judged_by_the_stated_exponent_the_formula_and_the_rivals(interval, own, verdict):
    assert judged(Interval(*interval), -1.0, own, (-0.5, -2.0))[0] == verdict


def test_an_equality_fails_on_both_sides():
    samples = np.random.default_rng(1).normal(3.0, 0.1, 200)
    found = [equals("x", "n", 1, samples, exact)["verdict"] for exact in (2.9, 3.0, 3.1)]
    assert found == ["refuted", "confirmed", "refuted"]


def test_a_slope_with_too_few_trials_is_inconclusive():
    generator = np.random.default_rng(3)
    noisy = dataclasses.replace(
        sweep_in_m(SMOKE), sample=lambda M: np.abs(generator.standard_cauchy(8)) / M, formula=lambda M: 1 / M
    )
    assert slope_row(noisy)["verdict"] == "inconclusive"


def test_a_table_has_the_columns_of_the_door():
    found = table("rates", [bounded("convex-2.1", "n", 10, np.array([1.0, 1.1]), upper=2.0, reach=3.0)])
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
    assert set(exponents["verdict"]) == {"derivation"}
    assert len(exponents) == 8
    # e^ε0 − 1 in place of e^ε0 raises the exponents by ln((e³ − 1)/(e^1.5 − 1))/1.5 − 1 or so.
    fitted = exponents[exponents["parameter"].str.contains("epsilon0")]["lower"].round(2).tolist()
    assert fitted == [1.13, 3.13, 2.63, 1.63]
    caption = found[found["parameter"].str.startswith("caption")]
    assert caption["detail"].tolist() == ["nearer to ε0", "nearer to e^ε0", "nearer to e^ε0"]


def test_a_wrong_power_in_an_exact_form_refutes_its_entry_of_table_1():
    """The new shuffling bound with e^(ε0/2) more, which is the earlier one's power."""

    def raised(result, parameters):
        return dataclasses.replace(result, value=result.value * np.exp(parameters["epsilon0"] / 2))

    found = run_check("table_1", planted("checkins-5.1", raised))
    wrong = found[found["verdict"] == "refuted"]["parameter"].tolist()
    assert wrong == ["exponent in e^epsilon0 (shuffling)"]


def test_a_pair_of_data_sets_spends_less_than_every_bound_and_more_than_a_planted_one():
    found = run_check("amplification", SMOKE)
    assert set(found["verdict"]) == {"not contradicted", "vacuous here"}
    assert ((found["upper"] >= found["value"]) == (found["verdict"] == "vacuous here")).all()

    def small(result, parameters):
        return dataclasses.replace(result, value=result.value / 6)

    rows = run_check("amplification", planted("checkins-4.3", small))
    assert rows[rows["theorem"] == "checkins-4.3"]["verdict"].tolist()[:2] == ["refuted", "not contradicted"]


@pytest.mark.parametrize(("heard", "messages"), [(1.0, 3), (0.4, 3), (0.4, 1)])
def test_laws_of_the_number_of_ones_by_enumeration(heard, messages):
    epsilon0, keep = 0.8, np.exp(0.8) / (1 + np.exp(0.8))
    without, with_one = laws(epsilon0, heard, messages)
    wanted = np.zeros((2, messages + 1))
    for bits in itertools.product((0, 1), repeat=messages):
        chances = [keep if bit == 0 else 1 - keep for bit in bits]
        # The first message is of the record that is 1, where it is heard.
        first = keep if bits[0] == 1 else 1 - keep
        wanted[0, sum(bits)] += np.prod(chances)
        wanted[1, sum(bits)] += heard * first * np.prod(chances[1:]) + (1 - heard) * np.prod(chances)
    assert without == pytest.approx(wanted[0])
    assert with_one == pytest.approx(wanted[1])


def planted_exponents():
    """Sweeps of the new checks, with a wrong exponent for each."""
    return [
        (_silos(SMOKE)[0], 1.0, (0.5, 2.0)),
        (_silos(SMOKE)[1], -2.0, (-1.0, -3.0)),
        (_compared(Context(Streams(7))), 0.0, (-0.5, 0.5)),
        (_smooth(Context(Streams(7)))[0], -1.0, (-0.5, -2.0)),
        *((sweep, 2 * sweep.exponent, (sweep.exponent, 3 * sweep.exponent)) for sweep in _kinked_and_drawn()),
    ]


def _kinked_and_drawn():
    """Along ε on the envelope of the hinge loss, and along Υ and M of silos that differ."""
    hinge = next(one for one in _sweeps(SMOKE) if "hinge" in one.regime and one.axis == "epsilon")
    return [hinge, *_heterogeneous(Context(Streams(7)))[:2]]


@pytest.mark.parametrize("place", range(7))
def test_a_wrong_exponent_of_a_new_check_is_refuted_and_the_right_one_is_not(place):
    sweep, exponent, rivals = planted_exponents()[place]
    assert slope_row(sweep)["verdict"] in ("confirmed", "order agrees")
    wrong = dataclasses.replace(sweep, exponent=exponent, neighbours=rivals, formula=lambda value: value**exponent)
    assert slope_row(wrong)["verdict"] == "refuted"
