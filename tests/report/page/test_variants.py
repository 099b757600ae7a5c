"""The page's part about choices of protocol."""

import pandas as pd

from silodp.report.page.variants import HEADING, variants_part
from silodp.verdicts.claims import COLUMNS
from silodp.verdicts.claims.variants import SAME_ROWS


def row(claim, verdict, statistic="s", value=0.5):
    return dict.fromkeys(COLUMNS, "") | {"claim": claim, "verdict": verdict, "statistic": statistic, "value": value}


def test_verdicts_that_turn_stand_first_with_their_numbers(tmp_path):
    means = "share; minibatch_sgd − local_sgd {} [-0.1, +0.1]"
    rows = [
        row("N1", "refuted"),
        row("N1: [split=per_silo]", "refuted", means.format("+0.02"), 0.25),
        row(f"N1: [{SAME_ROWS} split=per_silo]", "refuted", means.format("+0.01"), 0.25),
        row("N2: [grid=widened]", "confirmed", means.format("-0.02"), 1.0),
        row(f"N2: [{SAME_ROWS} grid=widened]", "inconclusive", means.format("+0.01"), 0.5),
        row("N3: [grid=widened]", "confirmed"),
    ]
    pd.DataFrame(rows, columns=COLUMNS).to_csv(tmp_path / "claims.csv", index=False)
    part = variants_part(tmp_path)
    assert (part["turned"], part["decided"]) == (1, 2)
    first, second = (one["cells"] for one in part["rows"])
    assert len(first) == len(HEADING)
    assert (first[0], second[0]) == ("N2", "N1")
    assert first[3].startswith("turns: ")
    assert first[4] == "50% → 100% of the parts support; MB-SGD − Local SGD +0.01 → −0.02 in the mean"
    assert "turns" not in second[3]


def test_a_run_without_variants_has_no_such_part(tmp_path):
    assert variants_part(tmp_path) is None
    pd.DataFrame([row("N1", "refuted")], columns=COLUMNS).to_csv(tmp_path / "claims.csv", index=False)
    assert variants_part(tmp_path) is None
