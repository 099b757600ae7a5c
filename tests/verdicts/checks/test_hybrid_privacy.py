"""Appendix G: slopes of the form without roots, the printed form beside it, and planted exponents."""

import dataclasses

import pytest
from wrong_theorems import last_row, planted

from silodp.streams import Streams
from silodp.verdicts.checks import run_check
from silodp.verdicts.checks.base import Context
from silodp.verdicts.checks.hybrid_privacy import _printed_slope, _sweeps

CONTEXT = Context(Streams(7))


def along(axis, context=CONTEXT):
    return next(sweep for sweep in _sweeps(context) if sweep.axis == axis)


def test_the_form_without_roots_holds_and_the_lower_bound_matches_it_alone():
    table = run_check("hybrid_privacy", CONTEXT)
    slopes = table[table["parameter"].str.startswith("slope in")]
    assert len(slopes) == 4
    assert set(slopes["verdict"]) <= {"derivation", "order agrees"}
    printed = table[table["parameter"].str.startswith("printed slope in N")]
    assert printed["verdict"].tolist() == ["not contradicted"]
    matched = table[table["parameter"].str.startswith("upper over lower")].set_index("form")
    assert matched["verdict"].to_dict() == {"as printed": "refuted", "corrected": "derivation"}
    assert matched["lower"].to_dict() == pytest.approx({"as printed": 0.5, "corrected": 0.0}, abs=1e-9)


@pytest.mark.parametrize(
    ("axis", "exponent", "rivals"),
    [("N", -0.5, (0.0, -1.0)), ("d", 0.5, (0.0, 1.0)), ("epsilon", -1.0, (0.0, -2.0)), ("n", -2.0, (-3.0, -1.0))],
)
def test_a_wrong_exponent_is_refuted(axis, exponent, rivals):
    """The printed exponents in N and d, 1/ε, and ISRL-DP's 1/n²."""
    assert last_row(along(axis), CONTEXT, exponent, rivals)["verdict"] == "refuted"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-1.1, -0.9, "not contradicted"),
        (-0.6, -0.5, "not contradicted"),
        (-0.6, -0.4, "open"),
        (-0.5, -0.4, "open"),
        (-0.4, -0.2, "refuted"),
    ],
)
def test_a_printed_bound_is_kept_to_where_the_risk_falls_as_fast(low, high, verdict):
    right = {"parameter": "slope in N", "measured": (low + high) / 2, "measured_low": low, "measured_high": high}
    assert _printed_slope(right)["verdict"] == verdict


def test_a_record_with_the_whole_budget_of_a_user_is_refuted_in_n():
    """Where a record has all of ε, and not ε/n, the risk falls as 1/n²."""
    wrong = planted(CONTEXT, "nonconvex-G", lambda result, point: dataclasses.replace(result, value=point["epsilon"]))
    assert last_row(along("n", wrong), CONTEXT)["verdict"] == "refuted"
