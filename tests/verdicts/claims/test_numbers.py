"""Delivered ε: planted tables with the verdict and number that each must have; published numbers are rows of tables."""

import numpy as np
import pandas as pd
import pytest
from planted import claim, folder
from small import ROOT

from silodp.verdicts.claims.delivered import delivered_epsilon

PUBLISHED = ROOT / "results" / "published"


def private(claimed=1.0, upper=0.8, lower=0.7, reading=""):
    words = {"accountant": "pld", "adjacency": "replace-one", "sampling": "s", "noise_multiplier": 1.0}
    place = {"experiment": "wbcd_mlp", "algorithm": "minibatch_sgd", "reading": reading, "M": 2, "R": 25}
    numbers = {"claimed_epsilon": claimed, "delivered_epsilon": upper, "delivered_lower": lower, "delta": 1e-6}
    return place | {"epsilon": claimed} | numbers | words | {"holds": upper <= claimed}


# The other ε of the experiment, all kept.
OTHERS = [private(e, 0.8 * e, 0.7 * e) for e in (0.75, 1.5, 6, 12, 18)]


def delivered(path, rows, statistic=None, **files):
    statistic = statistic or {"name": "delivered_epsilon", "algorithms": ["minibatch_sgd"]}
    known = claim(statistic, experiments=["wbcd_mlp"], evidence=["privacy.csv", "formulas.csv"])
    (found,) = delivered_epsilon(known, folder(path, privacy=rows, **files))
    return found


@pytest.mark.parametrize(
    ("upper", "lower", "verdict"), [(2.9, 2.8, "confirmed"), (3.2, 3.1, "refuted"), (3.2, 2.8, "open")]
)
def test_a_claimed_epsilon_is_refuted_only_from_below(tmp_path, upper, lower, verdict):
    found = delivered(tmp_path, [*OTHERS, private(), private(claimed=3.0, upper=upper, lower=lower)])
    assert found.verdict == verdict
    # The number of a kept claim is its slack; else it is the lower end.
    assert found.value == pytest.approx(upper / 3 if verdict == "confirmed" else lower / 3)
    assert found.high == pytest.approx(max(0.8, upper / 3))
    word = {"refuted": "1 violated", "open": "1 not certified", "confirmed": "7 kept"}[verdict]
    assert word in found.statistic
    assert f"[{lower / 3:.3g}, {upper / 3:.3g}] at ε = 3" in found.statistic
    assert found.evidence == ("privacy.csv",)
    assert found.slack == pytest.approx(3 / upper if verdict == "confirmed" else np.nan, nan_ok=True)


def test_without_a_lower_end_nothing_is_refuted_and_other_readings_decide_nothing(tmp_path):
    rows = [private(upper=5.0, lower=np.nan), private(upper=90.0, lower=80.0, reading="clip_rule=max_norm")]
    found = delivered(tmp_path, rows)
    assert found.verdict == "open"
    assert "over 1 rows: [0, 5] at ε = 1; 1 not certified" in found.statistic
    assert delivered(tmp_path / "none", []).verdict == "not testable"


def test_formulas_decide_where_they_are_named(tmp_path):
    formulas = {"formula": ["f", "g"], "claimed_epsilon": [1.0, 1.0], "delivered_epsilon": [0.1, 1.7]}
    statistic = {"name": "delivered_epsilon", "formulas": ["f"]}
    found = delivered(tmp_path, [private(upper=5.0, lower=4.0)], statistic, formulas=formulas)
    assert (found.verdict, found.value) == ("confirmed", pytest.approx(0.1))
    assert found.evidence == ("privacy.csv", "formulas.csv")
    missing = delivered(tmp_path / "none", [private()], statistic)
    assert (missing.verdict, missing.note) == ("not testable", "needs formulas.csv")


@pytest.mark.parametrize(
    ("name", "table"), [("C6", "formulas"), ("T-convex-2.1-moments", "formulas"), ("N6", "privacy")]
)
def test_a_published_number_is_a_row_of_the_table_that_the_claim_links_to(name, table):
    row = pd.read_csv(PUBLISHED / "claims.csv").set_index("claim").loc[name]
    assert row["evidence"] == f"{table}.csv"
    rows = pd.read_csv(PUBLISHED / f"{table}.csv")
    ends = rows[["delivered_lower", "delivered_epsilon"]].div(rows["claimed_epsilon"], axis=0)
    found = ends[np.isclose(ends["delivered_lower"], row["low"]) & np.isclose(ends["delivered_epsilon"], row["high"])]
    assert len(found) > 0
    assert row["value"] in (row["low"], row["high"])
