"""Claims read from checks' tables, exact expressions, and the identity of two algorithms."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from planted import bound, by_part, claim, folder

from silodp.theory import THEOREMS
from silodp.verdicts import checks
from silodp.verdicts.claims import decide, expressions
from silodp.verdicts.claims.bounds_rows import bounds_verdicts
from silodp.verdicts.claims.expressions import EXPRESSIONS, expression
from silodp.verdicts.claims.identity import same_iterates
from silodp.verdicts.claims.loading import load_claims

ROWS = [{"check": "rates_convex", "theorem": "convex-2.1"}]


def read(path, bounds, rows=ROWS, **options):
    statistic = {"name": "bounds_verdicts", "rows": rows} | options
    evidence = ["bounds/{check}.csv"]
    return by_part(bounds_verdicts(claim(statistic, evidence=evidence), folder(path, bounds=bounds)))


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        (["confirmed", "confirmed", ""], "confirmed"),
        (["confirmed", "inconclusive"], "inconclusive"),
        (["confirmed", "refuted", "inconclusive"], "refuted"),
        (["confirmed", "order agrees"], "order agrees"),
        (["order agrees", "not contradicted"], "not contradicted"),
        (["vacuous here", "confirmed"], "confirmed"),
        (["vacuous here", "vacuous here"], "vacuous here"),
        (["derivation"], "derivation"),
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
        bound("confirmed", value=1),
        bound("confirmed", value=2, measured=-0.7, measured_high=-0.55),
        bound("confirmed", value=3),
    ]
    assert read(tmp_path, rows)[""].value == -0.7


def test_the_printed_form_is_the_headline_and_the_corrected_one_stands_beside_it(tmp_path):
    rows = [bound("confirmed", form="corrected"), bound("refuted", form="as printed"), bound("order agrees")]
    found = read(tmp_path, rows)
    assert {part: (finding.verdict, finding.form) for part, finding in found.items()} == {
        "": ("refuted", "as printed"),
        "[corrected]": ("order agrees", "corrected"),
    }


def test_an_unknown_verdict_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"rates_convex\.csv: verdict: 'holds': must be one of confirmed"):
        read(tmp_path, [bound("holds")])


def test_rows_are_chosen_by_parameter_and_by_the_largest_value(tmp_path):
    rows = [
        bound("refuted", value=1),
        bound("confirmed", value=8),
        bound("refuted", parameter="M (statistical)", value=9),
    ]
    assert read(tmp_path / "a", rows, [ROWS[0] | {"parameter": "slope", "last": True}])[""].verdict == "confirmed"
    assert read(tmp_path / "b", rows, [ROWS[0] | {"parameter": "slope"}])[""].verdict == "refuted"


def test_a_missing_check_says_how_to_get_it(tmp_path):
    found = read(tmp_path, [])[""]
    assert found.verdict == "not testable here"
    assert "make bounds" in found.statistic
    both = read(tmp_path, [bound("confirmed")], [*ROWS, {"check": "table_1", "theorem": "checkins-table-1"}])[""]
    assert both.verdict == "inconclusive"
    assert both.value == -1.0
    assert "needs bounds/table_1.csv" in both.statistic


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_gives_a_number_within_its_ends(name):
    found = expression(name)
    assert found.low <= found.value <= found.high
    assert found.verdict in ("derivation", "refuted")


def test_expressions_find_what_their_theorems_say():
    assert expression("short_form_of_check_ins").value == pytest.approx(5.88, abs=0.01)
    assert expression("shuffling_improvement").low == pytest.approx(0.5, abs=0.01)
    assert expression("new_over_earlier_shuffling").high == pytest.approx(1.5, abs=0.1)


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

    class Wrong:
        def __call__(self, **point):
            found = THEOREMS[theorem](**point)
            terms = {key: value * (factor if key == "needed_factor" else 1) for key, value in found.terms.items()}
            return replace(found, value=found.value * factor, terms=terms)

    monkeypatch.setattr(expressions, "THEOREMS", {**THEOREMS, theorem: Wrong()})
    assert expression(name).verdict == "refuted"


def test_spider_with_phases_of_one_round_is_minibatch_sgd_under_its_noise_only(tmp_path):
    found = by_part(same_iterates(claim({"name": "same_iterates"}), folder(tmp_path)))
    same = found["[spider_q1_noise=minibatch]"]
    assert (same.verdict, same.value, same.form) == ("confirmed", 0.0, "corrected")
    printed = found[""]
    assert (printed.verdict, printed.form) == ("refuted", "as printed")
    assert printed.value > 0
    assert "1.414" in printed.statistic


def test_every_theorem_that_a_check_names_has_a_claim():
    """Theorems are named as text where a check makes its rows; those that only give formulas there are listed."""
    claimed = {claim.id.removeprefix("T-") for claim in load_claims() if claim.id.startswith("T-")}
    only_formulas = {"nonconvex-2.1-noise", "convex-lemma-D.4", "nonconvex-3.1-phase", "nonconvex-3.1-noise"}
    only_formulas |= {"nonconvex-2.2-noise", "nonconvex-G", "checkins-3.3", "checkins-5-earlier"}
    named = set()
    for path in Path(checks.__file__).parent.glob("*.py"):
        named |= set(re.findall(r'"((?:convex|nonconvex|checkins)-[A-Za-z0-9.-]+)"', path.read_text()))
    assert named
    assert named & set(THEOREMS) - only_formulas <= claimed
    assert claimed <= set(THEOREMS)


def test_a_theorem_that_no_file_claims_gets_a_row(tmp_path):
    run = folder(tmp_path, bounds=[bound("refuted", theorem="convex-9.9"), bound("confirmed", theorem="convex-2.2")])
    table = decide([], run).set_index("claim")
    assert table.loc["T-convex-9.9", "verdict"] == "refuted"
    assert table.loc["T-convex-2.2", "source"] == "convex paper, Theorem 2.2 (complete version, part 1)"
