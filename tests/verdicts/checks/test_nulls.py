"""Algorithms that do nothing: what a check says of them it cannot say for the papers' algorithms."""

import importlib

import pytest

from silodp.streams import Streams
from silodp.verdicts.checks import CHECKS, run_check
from silodp.verdicts.checks.base import Context, NeverReached, against_nulls, row
from silodp.verdicts.checks.rates_nonconvex import _printed_bound, _silos
from silodp.verdicts.checks.stack import NULLS, current_null, replace_algorithms
from silodp.verdicts.checks.upper_bounds import _lemma_d4, _recursion
from silodp.verdicts.statistics import Interval

SMOKE = Context(Streams(7), "smoke")
QUICK = ("figure_3", "table_1", "gradient_counts", "hybrid_privacy", "lower_bounds", "participation", "rates_checkins")
PASSES = ("confirmed", "order agrees", "vacuous")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in CHECKS]
)
def test_no_row_is_confirmed_that_an_algorithm_which_does_nothing_passes(name):
    """A mean with noise is a good algorithm: it is held against slopes and equalities alone."""
    table, check = run_check(name, SMOKE), getattr(importlib.import_module(f"silodp.verdicts.checks.{name}"), name)
    slopes = table["parameter"].str.startswith("slope in") | (table["lower"] == table["upper"])
    for null in NULLS:
        with replace_algorithms(null):
            try:
                verdicts = [row["verdict"] for row in check(SMOKE)]
            except NeverReached:
                continue
        passed = table[[verdict in PASSES for verdict in verdicts]]
        if null == NULLS[-1]:
            passed = passed[slopes]
        assert passed[passed["verdict"] == "confirmed"].empty, passed[["theorem", "parameter", "null"]].to_string()


def test_what_a_null_passes_is_vacuous_or_a_derivation():
    """A bound, an equality and a slope that a null passes, and a bound that only the mean with noise keeps to."""

    def check(context):
        null = current_null()
        risk = {None: 0.1, "w_0": 0.3, "fixed w": 2.0, "mean + noise": 0.1}[null]
        spread = Interval(risk, risk, risk)
        exact = "confirmed" if risk == 0.1 else "refuted"
        return [
            row("x", "n", 1, spread, "confirmed" if risk < 0.5 else "refuted", upper=0.5),
            row("x", "n", 2, spread, exact, upper=0.2),
            row("x", "n", 3, spread, exact, lower=0.1, upper=0.1),
            row("x", "slope in n (private)", -1.0, spread, exact, lower=-2.0, upper=-0.5),
            row("x", "slope in M (private)", -1.0, spread, "order agrees", lower=-2.0, upper=-0.5),
        ]

    rows = against_nulls(check, SMOKE)
    words = ["vacuous", "confirmed", "derivation", "derivation", "order agrees"]
    assert [row["verdict"] for row in rows] == words
    assert rows[0]["null"] == "w_0 0.3 passes; fixed w 2"
    assert rows[3]["null"] == "w_0 0.3; fixed w 2; mean + noise 0.1 passes"
    assert rows[0]["detail"] == "w_0 passes as well"


def test_a_start_below_the_bound_leaves_nothing_to_confirm():
    """The start's risk is .07; Lemma D.4's bounds lie on both sides of it, those of eq. (20) above."""
    found = against_nulls(lambda context: [*_lemma_d4(context), *_recursion(context)], SMOKE)
    vacuous = {row["value"] for row in found if row["verdict"] == "vacuous"}
    assert vacuous == {0.5, 2.0, 5, 10, 20, 40}
    assert {row["verdict"] for row in found if row["value"] == 0.1} == {"confirmed"}


def test_theorem_e1_as_printed_fails_for_fewer_silos_than_there_are():
    """υ²/M·(N−M)/(N−1)·η/(2(2−η)) = .4²/4·28/31/6 = .0060 at η = 1/2, whatever n; printed 1/(Mn) and noise."""
    found = _printed_bound(SMOKE, _silos(SMOKE)[0])
    assert (found["verdict"], found["form"]) == ("refuted", "as printed")
    assert found["upper"] == pytest.approx(2.5e-7, rel=1e-3)
    assert found["measured"] == pytest.approx(0.4**2 / 4 * 28 / 31 / 6, rel=0.15)
