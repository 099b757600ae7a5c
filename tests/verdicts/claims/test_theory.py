"""Claims read from checks' tables, exact expressions, and the identity of two algorithms."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from planted import bound, claim, folder
from small import ROOT

from silodp.theory import THEOREMS
from silodp.verdicts import checks
from silodp.verdicts.claims import expressions
from silodp.verdicts.claims.bounds_rows import bounds_verdicts
from silodp.verdicts.claims.claim_file import BoundsVerdicts, ExactExpression, Formula, FormulaValues
from silodp.verdicts.claims.claim_files import coverage, load_claims
from silodp.verdicts.claims.expressions import EXPRESSIONS, evaluated, expression
from silodp.verdicts.claims.identity import same_iterates

# C4 is decided by its formulas alone.
MOVED = {("gradient_counts", "convex-2.4")}
POINT = {"n": 1000, "d": 4, "R": 100, "L": 1, "D": 1, "epsilon": 1, "delta": 1e-6}


def formulas_of(claim):
    statistic = claim.statistic
    if isinstance(statistic, BoundsVerdicts):
        return statistic.formulas
    return statistic.rows if isinstance(statistic, FormulaValues) else []


ROWS = [{"check": "rates_convex", "theorem": "convex-2.1"}]


def read(path, bounds, rows=ROWS, **options):
    statistic = {"name": "bounds_verdicts", "rows": rows} | options
    evidence = ["bounds/{check}.csv"]
    return bounds_verdicts(claim(statistic, evidence=evidence), folder(path, bounds=bounds))


@pytest.mark.parametrize(
    ("verdicts", "wanted", "note"),
    [
        (["confirmed", "confirmed", ""], "confirmed", ""),
        (["confirmed", "refuted", "open"], "refuted", ""),
        (["confirmed", "order agrees"], "open", "order agrees"),
        (["vacuous here", "confirmed"], "confirmed", ""),
        (["confirmed", "not testable"], "open", ""),
        ([""], "not testable", "bounds/rates_convex.csv has no row of convex-2.1"),
    ],
)
def test_verdicts_of_checks_make_a_claims(tmp_path, verdicts, wanted, note):
    (found,) = read(tmp_path, [bound(verdict, value=place) for place, verdict in enumerate(verdicts)])
    assert (found.verdict, found.note) == (wanted, note)
    if wanted != "not testable":
        assert (found.value, found.low, found.high) == (-1.0, -1.1, -0.9)
        assert found.evidence == ("bounds/rates_convex.csv",)


def test_the_tightest_row_is_shown(tmp_path):
    tight = bound("confirmed", value=2, measured=-0.7, measured_high=-0.55)
    (found,) = read(tmp_path, [bound("confirmed", value=1), tight, bound("confirmed", value=3)])
    assert found.value == -0.7


def test_a_bound_of_0_has_no_room_and_a_value_of_0_no_slack(tmp_path):
    exact = bound("confirmed", value=1, lower=0.0, upper=0.0, measured=0.0)
    (found,) = read(tmp_path / "a", [exact, bound("confirmed", value=2)])
    assert found.statistic.endswith("tightest: slope in n (private) 2")
    (found,) = read(tmp_path / "b", [bound("confirmed", lower=float("nan"), upper=0.5, measured=0.0)])
    assert math.isnan(found.slack)


def test_the_printed_form_is_the_headline_and_the_corrected_one_stands_beside_it(tmp_path):
    rows = [bound("confirmed", form="corrected"), bound("refuted", form="as printed"), bound("order agrees")]
    printed, corrected = read(tmp_path, rows)
    assert (printed.verdict, printed.form) == ("refuted", "as printed")
    assert (corrected.verdict, corrected.form, corrected.note) == ("open", "corrected", "order agrees")


def test_rows_are_chosen_by_parameter(tmp_path):
    other = bound("refuted", parameter="M (statistical)", value=9)
    rows = [bound("confirmed", value=8), other]
    assert read(tmp_path / "a", rows, [ROWS[0] | {"parameter": "M"}])[0].verdict == "refuted"
    assert read(tmp_path / "b", rows, [ROWS[0] | {"parameter": "slope"}])[0].verdict == "confirmed"


def test_a_missing_check_says_how_to_get_it(tmp_path):
    (found,) = read(tmp_path, [])
    assert found.verdict == "not testable"
    assert "targets: [bounds]" in found.note
    (both,) = read(tmp_path, [bound("confirmed")], [*ROWS, {"check": "table_1", "theorem": "checkins-table-1"}])
    assert both.verdict == "open"
    assert both.value == -1.0
    assert "needs bounds/table_1.csv" in both.note


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_gives_a_number_within_its_ends(name):
    found = expression(name)
    assert found.low <= found.value <= found.high
    assert found.verdict in ("derivation", "refuted")


FORMULAS = {claim.id: formulas for claim in load_claims() if (formulas := formulas_of(claim))}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_as_stated_but_for_those_that_the_errata_name(name):
    refuted = {"T-nonconvex-2.1-noise"}
    assert evaluated(FORMULAS[name]).verdict == ("refuted" if name in refuted else "derivation")


def test_formulas_have_the_published_numbers():
    """The number of a claim that formulas alone decide, its ends over the grid, and the slack of its limit."""
    table = pd.read_csv(ROOT / "results" / "published" / "claims.csv").set_index("claim")
    found = {}
    for one in load_claims():
        if isinstance(one.statistic, FormulaValues):
            found[one.id] = evaluated(FORMULAS[one.id])
        elif isinstance(one.statistic, ExactExpression):
            found[one.id] = expression(one.statistic.expression)
    for name in sorted(set(found) & set(table.index)):
        wanted = table.loc[name, ["value", "low", "high", "slack"]].astype(float)
        numbers = [found[name].value, found[name].low, found[name].high, found[name].slack]
        assert numbers == pytest.approx(list(wanted), rel=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "value"), [("K2", 0.5), ("K3", 5.88), ("K4", 1.0), ("K6", 1.5), ("K7", 0.48), ("C10", 0.49), ("N8", 1.0)]
)
def test_formulas_find_what_their_theorems_say(name, value):
    assert evaluated(FORMULAS[name]).value == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"at_most": 2.0}, "derivation"),
        ({"at_most": 1.0}, "derivation"),
        ({"at_most": 0.9}, "refuted"),
        ({"slopes": {"n": 0.3}}, "refuted"),
    ],
)
def test_a_limit_or_an_exponent_that_does_not_hold_refutes(change, verdict):
    """Lemma D.9's L²/(2β): 1 at L = 2, β = 2 at most; Theorem 5.1 falls as 1/√n."""
    formula = {"formula": "convex-lemma-D.9", "at": {"L": [1, 2], "beta": [2, 4]}}
    if "slopes" in change:
        formula = {"formula": "checkins-5.1", "at": {"n": 1000, "epsilon0": 0.1, "delta": 1e-6}}
        assert evaluated([Formula(**formula, slopes={"n": -0.5, "e^epsilon0": 6.0})]).verdict == "refuted"
        assert evaluated([Formula(**formula, slopes={"n": -0.5})]).verdict == "derivation"
    assert evaluated([Formula(**formula, **change)]).verdict == verdict


def test_a_quarter_is_half_way_between_exponents_and_tells_none():
    """A formula over itself has the exponent 0."""
    same = {"formula": "convex-lemma-D.9", "over": "convex-lemma-D.9", "at": {"L": 1, "beta": 2}}
    for stated, verdict in ((-0.24, "derivation"), (0.24, "derivation"), (-0.25, "refuted"), (0.25, "refuted")):
        assert evaluated([Formula(**same, slopes={"L": stated})]).verdict == verdict


def test_a_parameter_may_follow_another_and_a_formula_may_be_a_schedules_rounds():
    tied = Formula(formula="convex-2.4", at={"N": 64, "M": "N"} | POINT, slopes={"M": -0.5, "N": -0.5})
    with pytest.raises(ValueError, match="'N'"):
        evaluated([tied])
    assert evaluated([tied.model_copy(update={"slopes": {"N": -0.5}})]).verdict == "derivation"
    rounds = Formula(formula="theorem-2.1", at={"M": 2**20, "beta": 1} | POINT, slopes={"M": 0.5})
    assert evaluated([rounds]).low == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("name", "theorem", "factor"),
    [
        ("new_over_earlier_shuffling", "checkins-5.1", 2.0),
        ("K3", "checkins-3.2-short", 1.3),
        ("K4", "checkins-4.4", 1.1),
        ("T-nonconvex-D.2", "nonconvex-D.2", 0.5),
        ("one_pass_matches_local", "convex-2.3", 2.0),
    ],
)
def test_a_planted_wrong_formula_is_refuted(monkeypatch, name, theorem, factor):
    """The same expression with one theorem's number, or the term it reads, off by a factor."""

    class Wrong:
        parameters = THEOREMS[theorem].parameters

        def __call__(self, **point):
            found = THEOREMS[theorem](**point)
            wrong = ("needed_factor", "exact", "sigma")
            terms = {key: value * (factor if key in wrong else 1) for key, value in found.terms.items()}
            return replace(found, value=found.value * (1 if theorem == "checkins-4.4" else factor), terms=terms)

    monkeypatch.setattr(expressions, "THEOREMS", {**THEOREMS, theorem: Wrong()})
    found = expression(name) if name in EXPRESSIONS else evaluated(FORMULAS[name])
    assert found.verdict == "refuted"


def test_wider_windows_have_more_dummy_updates_where_no_slot_is_lost(monkeypatch):
    """Remark 4 of the check-ins paper fails by the factor n − m + 1 alone."""

    def share(*, n, m):
        found = THEOREMS["checkins-4.4"](n=n, m=m)
        return found.with_terms(exact=found.terms["exact"] / (n - m + 1))

    assert expression("dummy_updates_of_wider_windows").verdict == "refuted"
    errata = " ".join((ROOT / "docs" / "errata.md").read_text(encoding="utf-8").split())
    most, fewer = (f"{THEOREMS['checkins-4.4'](n=10_000, m=m).terms['exact']:,.0f} for m" for m in (64, 8192))
    assert f"it is {most} = 64, {fewer} = 8,192" in errata
    monkeypatch.setattr(expressions, "THEOREMS", {**THEOREMS, "checkins-4.4": share})
    assert expression("dummy_updates_of_wider_windows").verdict == "derivation"


def test_spider_with_phases_of_one_round_is_minibatch_sgd_under_its_noise_only(tmp_path):
    (found,) = same_iterates(claim({"name": "same_iterates"}), folder(tmp_path))
    assert found.verdict == "refuted"
    assert found.value > 0
    assert "σ of SPIDER over σ of MB-SGD 1.414; at equal σ the distance is 0" in found.statistic


def test_every_theorem_has_a_claim_or_a_reason_for_none_and_no_file_names_an_unknown_one():
    said = coverage()
    assert all(re.match("decided by |no check: .{20}", said[key]) for key in THEOREMS)
    # A sentence may stand beside the registry's entries, with its reason.
    assert all(" " in key for key in set(said) - set(THEOREMS))
    claims = load_claims()
    reasons = {key for key, words in said.items() if words.startswith("no check")}
    assert not reasons & {key for claim in claims for key in [*claim.theorems, claim.id.removeprefix("T-")]}
    assert {key for claim in claims for key in claim.theorems} <= set(THEOREMS)
    named = {claim.id.removeprefix("T-") for claim in claims if claim.id.startswith("T-")}
    assert named <= set(THEOREMS)


def test_what_a_check_gives_a_verdict_on_has_a_claim():
    """The published tables, and theorems that are named as text where a check makes its rows."""
    rows = {
        (r.check, r.theorem) for c in load_claims() for r in getattr(c.statistic, "rows", []) if hasattr(r, "check")
    }
    for path in (ROOT / "results" / "published" / "bounds").glob("*.csv"):
        table = pd.read_csv(path)
        assert {(path.stem, theorem) for theorem in table[table["verdict"].notna()]["theorem"]} - rows <= MOVED
    said = coverage()
    for path in Path(checks.__file__).parent.glob("*.py"):
        for key in re.findall(r'"((?:convex|nonconvex|checkins)-[A-Za-z0-9.-]+)"', path.read_text()):
            assert key not in THEOREMS or said[key].startswith("decided by") or key == "nonconvex-2.2-noise"
