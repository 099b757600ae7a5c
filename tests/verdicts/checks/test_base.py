"""Verdicts of rows: means against bounds and equalities, slopes against stated exponents and rivals."""

import numpy as np
import pytest

from silodp.streams import Streams
from silodp.verdicts.checks import run_check
from silodp.verdicts.checks.base import (
    Context,
    Sweep,
    bounded,
    derived,
    equals,
    judge_interval,
    judge_slope,
    sweep_rows,
)
from silodp.verdicts.checks.bound_columns import BOUNDS_COLUMNS
from silodp.verdicts.checks.stack import replace_algorithms
from silodp.verdicts.statistics import Interval
from silodp.verdicts.words import AS_PRINTED

SMOKE = Context(Streams(7), "smoke")


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((1.0, 0.5, 1.5), "confirmed"),
        ((3.0, 2.5, 3.5), "refuted"),
        ((2.0, 1.5, 2.5), "open"),
        ((-2.0, -3.0, -1.5), "refuted"),
        ((-1.0, -1.5, -0.5), "open"),
        ((0.5, -1.0, 2.0), "confirmed"),
        ((2.5, 2.0, 3.0), "open"),
        ((-1.5, -2.0, -1.0), "open"),
    ],
)
def test_verdicts_of_an_interval_between_bounds(interval, verdict):
    assert judge_interval(Interval(*interval), -1.0, 2.0) == verdict
    assert judge_interval(Interval(*interval), np.nan, np.nan) == "confirmed"


def test_a_bound_that_cannot_be_exceeded_confirms_nothing():
    """Bounds of 0.5, of 2, the largest value that can be reached, and of 17 on the same values."""
    samples = np.linspace(0.1, 0.2, 50)
    rows = [bounded("convex-2.2", "n", 10, samples, upper=upper, reach=2.0) for upper in (0.5, 2.0, 17.0)]
    assert [row["verdict"] for row in rows] == ["confirmed", "vacuous", "vacuous"]
    assert rows[2]["detail"] == "at most 2 can be reached"
    row = bounded("convex-2.2", "n", 10, samples + 20, upper=17.0, reach=2.0, form=AS_PRINTED)
    assert (row["theorem"], row["form"], row["verdict"]) == ("convex-2.2", "as printed", "refuted")


@pytest.mark.parametrize(
    ("interval", "formula", "verdict"),
    [
        ((-1.0, -1.1, -0.9), -0.97, "confirmed"),
        ((-1.1, -1.12, -1.08), -1.1, "confirmed"),
        ((-1.1, -1.12, -1.08), -0.97, "order agrees"),
        ((-1.3, -1.6, -1.1), -1.0, "open"),
        ((-1.0, -2.1, -0.4), -1.0, "open"),
        ((-1.9, -1.95, -1.85), -1.0, "refuted"),
        ((-1.0, -1.1, -0.9), -1.8, "refuted"),
        ((-1.0, -1.1, -0.9), -1.5, "refuted"),
        ((-1.0, -1.1, -0.9), -0.75, "refuted"),
    ],
)
def test_a_slope_is_judged_by_the_stated_exponent_the_formula_and_the_rivals(interval, formula, verdict):
    assert judge_slope(Interval(*interval), -1.0, formula, (-0.5, -2.0))[0] == verdict


def test_an_equality_fails_on_both_sides():
    samples = np.random.default_rng(1).normal(3.0, 0.1, 200)
    verdicts = [equals("x", "n", 1, samples, exact)["verdict"] for exact in (2.9, 3.0, 3.1)]
    assert verdicts == ["refuted", "confirmed", "refuted"]


def test_an_exponent_half_way_to_a_neighbour_is_not_told_from_it():
    verdicts = [derived("x", "n", 1.0, fitted, "by hand")["verdict"] for fitted in (1.24, 1.25, 0.75, 0.76)]
    assert verdicts == ["derivation", "refuted", "refuted", "derivation"]


@pytest.mark.parametrize(("risk", "known"), [(1e-20, True), (0.9e-20, False)])
def test_what_does_nothing_has_no_slope_where_its_risk_is_a_rounding_error(risk, known):
    sweep = Sweep("x", "n", "private", -1.0, (-0.5, -2.0), (1, 2, 4), lambda n: np.full(8, risk), lambda n: 1 / n)
    with replace_algorithms("w_0"):
        assert np.isfinite(sweep_rows(sweep, SMOKE.streams)[-1]["measured"]) == known


@pytest.mark.parametrize(("noisy", "verdict"), [(False, "confirmed"), (True, "open")])
def test_rows_of_a_sweep_end_with_its_slope(noisy, verdict):
    """1/M with noise of a thousandth, and with noise that has no mean."""
    generator, values = np.random.default_rng(3), (16, 32, 64, 128)

    def sample(M):
        noise = np.abs(generator.standard_cauchy(8)) if noisy else 1 + 1e-3 * generator.standard_normal(50)
        return noise / M

    sweep = Sweep("convex-2.4-strong", "M", "private", -1.0, (-0.5, -2.0), values, sample, lambda M: 3 / M)
    *rows, slope = sweep_rows(sweep, SMOKE.streams)
    assert [row["value"] for row in rows] == list(values)
    assert (slope["verdict"], slope["parameter"], slope["rivals"]) == (verdict, "slope in M (private)", "-2 -0.5")
    assert (slope["formula"], slope["lower"], slope["upper"]) == pytest.approx((-1.0, -1.5, -0.75))


@pytest.mark.parametrize("name", ["figure_3", "table_1"])
def test_generated_tables_repeat_themselves_and_have_the_columns_of_the_door(name):
    first, again = run_check(name, SMOKE), run_check(name, SMOKE)
    assert first.equals(again)
    assert list(first) == BOUNDS_COLUMNS
    assert set(first["check"]) == {name}
    assert len(first) > 20
