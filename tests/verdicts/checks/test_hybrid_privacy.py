"""Appendix G: slopes of the form without roots, the printed one beside it, and planted exponents."""

import dataclasses

import pytest

from silodp.federation.rng import Streams
from silodp.theory import THEOREMS
from silodp.verdicts.checks import run_check
from silodp.verdicts.checks.base import Context, sweep_rows
from silodp.verdicts.checks.hybrid_privacy import AXES, _printed, _sweep

CONTEXT = Context(Streams(7))


def test_the_form_without_roots_holds_and_the_lower_bound_matches_it_alone():
    found = run_check("hybrid_privacy", CONTEXT)
    slopes = found[found["parameter"].str.startswith("slope in")]
    assert len(slopes) == 4
    assert set(slopes["verdict"]) <= {"confirmed", "order agrees"}
    printed = found[found["parameter"].str.startswith("printed slope in N")]
    assert printed["verdict"].tolist() == ["not contradicted"]
    matched = found[found["parameter"].str.startswith("upper over lower")].set_index("form")
    assert matched["verdict"].to_dict() == {"as printed": "refuted", "corrected": "derivation"}
    assert matched["lower"].to_dict() == pytest.approx({"as printed": 0.5, "corrected": 0.0}, abs=1e-9)


@pytest.mark.parametrize(("axis", "wrong", "rivals"), [
    ("N", -0.5, (0.0, -1.0)), ("d", 0.5, (0.0, 1.0)), ("epsilon", -1.0, (0.0, -2.0)), ("n", -2.0, (-3.0, -1.0)),
])  # fmt: skip
def test_a_wrong_exponent_is_refuted(axis, wrong, rivals):
    """The printed ones in N and d, 1/ε, and ISRL-DP's 1/n²."""
    sweep = dataclasses.replace(_sweep(CONTEXT, axis), exponent=wrong, neighbours=rivals,
                                formula=lambda value: value**wrong)  # fmt: skip
    assert sweep_rows(sweep, CONTEXT.streams)[-1]["verdict"] == "refuted"


@pytest.mark.parametrize(("low", "high", "verdict"), [(-1.1, -0.9, "not contradicted"), (-0.6, -0.4, "inconclusive"),
                                                      (-0.4, -0.2, "refuted")])  # fmt: skip
def test_a_printed_bound_is_kept_to_where_the_risk_falls_as_fast(low, high, verdict):
    right = {"parameter": "slope in N", "measured": (low + high) / 2, "measured_low": low, "measured_high": high}
    assert _printed(right)["verdict"] == verdict


def test_noise_for_a_record_alone_is_found_in_n():
    """Where a record has all of ε, and not ε/n, the risk falls as 1/n²."""
    theorem = THEOREMS["nonconvex-G"]

    def whole(*, n, epsilon, delta):
        return dataclasses.replace(theorem.function(n=n, epsilon=epsilon, delta=delta), value=epsilon)

    planted = THEOREMS | {"nonconvex-G": dataclasses.replace(theorem, function=whole)}
    sweep = _sweep(dataclasses.replace(CONTEXT, theorems=planted), "n")
    assert sweep_rows(sweep, CONTEXT.streams)[-1]["verdict"] == "refuted"
    assert AXES["n"][0] == 0.0
