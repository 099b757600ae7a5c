"""Claims read from checks' tables, exact expressions, and the identity of two algorithms."""

import re
from pathlib import Path

import pandas as pd
import pytest
from planted import bound, by_part, claim, folder

from silodp.checks import CHECKS
from silodp.claims import decide
from silodp.claims.bounds_rows import bounds_verdicts
from silodp.claims.expressions import EXPRESSIONS, expression
from silodp.claims.identity import same_iterates
from silodp.claims.loading import load_claims
from silodp.theory import THEOREMS

ROWS = [{"check": "rates_convex", "theorem": "convex-2.1"}]


def read(path, bounds, rows=ROWS, **options):
    statistic = {"name": "bounds_verdicts", "rows": rows} | options
    evidence = ["bounds/{check}.csv"]
    return by_part(bounds_verdicts(claim(statistic, evidence=evidence), folder(path, bounds=bounds)))


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        (["holds", "confirmed", ""], "confirmed"),
        (["confirmed", "inconclusive"], "inconclusive"),
        (["confirmed", "refuted", "inconclusive"], "refuted"),
        (["formula differs: its slope is -2"], "refuted"),
        (["fails"], "refuted"),
        ([""], "not testable here"),
    ],
)
def test_verdicts_of_checks_make_a_claims(tmp_path, verdicts, wanted):
    found = read(tmp_path, [bound(verdict, value=place) for place, verdict in enumerate(verdicts)])[""]
    assert found.verdict == wanted
    if wanted != "not testable here":
        assert (found.value, found.low, found.high) == (-1.0, -1.1, -0.9)
        assert found.evidence == ("bounds/rates_convex.csv",)


def test_the_tightest_row_is_shown(tmp_path):
    rows = [
        bound("holds", value=1),
        bound("holds", value=2, measured=-0.7, measured_high=-0.55),
        bound("holds", value=3),
    ]
    assert read(tmp_path, rows)[""].value == -0.7


def test_a_printed_form_is_a_reading(tmp_path):
    rows = [bound("holds"), bound("fails as printed", theorem="convex-2.1 (printed)")]
    found = read(tmp_path, rows)
    assert (found[""].verdict, found["[printed]"].verdict) == ("confirmed", "refuted")


def test_a_hidden_constant_may_be_small_but_not_any(tmp_path):
    said = "constant at most 0.3"
    rows = [bound(said, lower=1.0, measured=0.25, measured_low=0.2, measured_high=0.3)]
    assert read(tmp_path / "a", rows, constant=0.1)[""].verdict == "confirmed"
    assert read(tmp_path / "b", rows, constant=0.25)[""].verdict == "inconclusive"
    assert read(tmp_path / "c", rows, constant=0.5)[""].verdict == "refuted"


def test_rows_are_chosen_by_parameter_and_by_the_largest_value(tmp_path):
    rows = [bound("fails", value=1), bound("holds", value=8), bound("fails", parameter="M (statistical)", value=9)]
    chosen = [ROWS[0] | {"parameter": "slope", "last": True}, ROWS[0] | {"reading": "all"}]
    found = read(tmp_path, rows, chosen)
    assert (found[""].verdict, found["[all]"].verdict) == ("confirmed", "refuted")


def test_a_missing_check_says_how_to_get_it(tmp_path):
    found = read(tmp_path, [])[""]
    assert found.verdict == "not testable here"
    assert "make bounds" in found.statistic
    both = read(tmp_path, [bound("holds")], [*ROWS, {"check": "table_1", "theorem": "checkins-table-1"}])[""]
    assert both.verdict == "inconclusive"
    assert both.value == -1.0
    assert "needs bounds/table_1.csv" in both.statistic


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_gives_a_number_within_its_ends(name):
    found = expression(name, "")
    assert found.low <= found.value <= found.high
    assert found.verdict in ("confirmed", "refuted")


def test_expressions_find_what_their_theorems_say():
    assert expression("short_form_of_check_ins", "").value == pytest.approx(5.88, abs=0.01)
    assert expression("shuffling_improvement", "").low == pytest.approx(0.5, abs=0.01)
    assert expression("new_over_earlier_shuffling", "").high == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize(
    ("name", "theorem", "factor"),
    [
        ("new_over_earlier_shuffling", "checkins-5.1", 2.0),
        ("short_form_of_check_ins", "checkins-3.2-short", 1.3),
        ("expected_dummy_updates", "checkins-3.4", 1.1),
        ("one_pass_matches_local", "convex-2.3", 2.0),
    ],
)
def test_a_planted_wrong_formula_is_refuted(monkeypatch, name, theorem, factor):
    """The same expression with one theorem's number, or the term it reads, off by a factor."""
    from dataclasses import replace

    from silodp.claims import expressions

    class Wrong:
        def __call__(self, **point):
            found = THEOREMS[theorem](**point)
            terms = {key: value * (factor if key == "needed_factor" else 1) for key, value in found.terms.items()}
            return replace(found, value=found.value * factor, terms=terms)

    monkeypatch.setattr(expressions, "THEOREMS", {**THEOREMS, theorem: Wrong()})
    assert expression(name, "").verdict == "refuted"


def test_spider_with_phases_of_one_round_is_minibatch_sgd_under_its_noise_only(tmp_path):
    found = by_part(same_iterates(claim({"name": "same_iterates"}), folder(tmp_path)))
    assert (found[""].verdict, found[""].value) == ("confirmed", 0.0)
    own = found["[spider_q1_noise=own]"]
    assert own.verdict == "refuted"
    assert own.value > 0
    assert "1.414" in own.statistic


def test_every_theorem_that_a_check_names_has_a_claim():
    """Theorems are named as text where a check makes its rows; those that only give formulas there are listed."""
    claimed = {claim.id.removeprefix("T-") for claim in load_claims() if claim.id.startswith("T-")}
    only_formulas = {"nonconvex-2.1-noise", "convex-lemma-D.4", "nonconvex-3.1-phase", "nonconvex-3.1-noise"}
    named = set()
    for path in Path(CHECKS_FOLDER).glob("*.py"):
        named |= set(re.findall(r'"((?:convex|nonconvex|checkins)-[A-Za-z0-9.-]+)"', path.read_text()))
    assert named
    assert named & set(THEOREMS) - only_formulas <= claimed
    assert claimed <= set(THEOREMS)


CHECKS_FOLDER = Path(__import__("silodp.checks", fromlist=["x"]).__file__).parent


def test_a_theorem_that_no_file_claims_gets_a_row_all_the_same(tmp_path):
    run = folder(tmp_path, bounds=[bound("fails", theorem="convex-9.9"), bound("holds", theorem="convex-2.2")])
    table = decide([], run).set_index("claim")
    assert table.loc["T-convex-9.9", "verdict"] == "refuted"
    assert table.loc["T-convex-2.2", "source"] == "convex paper, Theorem 2.2 (complete version, part 1)"
    assert isinstance(table, pd.DataFrame)
    assert set(CHECKS) >= {"rates_convex"}
