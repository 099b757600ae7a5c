"""Verdicts on the page: first, with sign, numbers, rule, and links to figures of the page and files of the run."""

import re

import pandas as pd
import pytest

from silodp import report
from silodp.claims import COLUMNS
from silodp.results import write_csv

PNG = b"\x89PNG\r\n"


def row(claim, verdict, **other):
    plain = dict.fromkeys(COLUMNS, "") | {"source": "a paper", "statement": f"says {claim}", "statistic": "a number"}
    return plain | {"value": None, "low": None, "high": None} | other | {"claim": claim, "verdict": verdict}


@pytest.fixture
def page(tmp_path):
    """The text of a page with three claims."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "reported").mkdir()
    (tmp_path / "figures" / "e_M2_R5.png").write_bytes(PNG)
    (tmp_path / "reported" / "e.csv").write_text("a\n")
    files = "figures/e_M2_R5.png; reported/e.csv; reported/gone.csv"
    rows = [
        row("N1", "confirmed", value=-0.0123456, low=-0.02, high=-0.01, evidence=files),
        row("N1: e M=2 R=5, a − b", "confirmed", value=-0.5),
        row("N1: [grid=other]", "refuted"),
        row("N2", "not testable here", statistic="needs <e>"),
        row("N6", "inconclusive", value=2.5, high=2.5),
        row("T-convex-2.1", "refuted"),
    ]
    write_csv(pd.DataFrame(rows), tmp_path / "claims.csv")
    report.build(tmp_path, tmp_path / "report.html")
    return " ".join((tmp_path / "report.html").read_text(encoding="utf-8").split())


def test_verdicts_come_first_with_counts_signs_and_numbers(page):
    assert page.index('id="claims"') < page.index('id="privacy"')
    assert '<span class="verdict confirmed">✓ 1 confirmed</span>' in page
    assert '<span class="verdict refuted">✗ 1 refuted</span>' in page
    assert '<span class="verdict not">– 1 not testable here</span>' in page
    line = re.search(r'<tr><td><a href="#claim-N1">N1</a></td>.*?</tr>', page)[0]
    assert "✓ confirmed" in line
    assert "says N1" in line
    assert "−0.0123" in line
    assert "−0.0200 to −0.0100" in line
    assert "(at most 2.50)" in page


def test_a_claims_rule_parts_and_readings_stand_under_it(page):
    part = page[page.index('id="claim-N1"') : page.index('id="claim-N2"')]
    assert "Rule: confirmed when in every setting more than half" in part
    assert "<td>e M=2 R=5, a − b</td>" in part
    assert "[grid=other]" in part
    assert "✗ refuted" in part
    assert "needs &lt;e&gt;" in page


def test_evidence_is_linked_where_it_is(page):
    part = page[page.index('id="claim-N1"') : page.index('id="claim-N2"')]
    assert '<a href="#figure-figures-e_M2_R5">e_M2_R5</a>' in part
    assert 'id="figure-figures-e_M2_R5"' in page
    assert '<a href="reported/e.csv">reported/e.csv</a>' in part
    assert "reported/gone.csv" in part
    assert 'href="reported/gone.csv"' not in part


def test_a_verdict_that_is_none_is_an_error(tmp_path):
    write_csv(pd.DataFrame([row("N1", "probably")]), tmp_path / "claims.csv")
    with pytest.raises(ValueError, match=r"claims\.csv: verdict: 'probably': must be one of confirmed"):
        report.build(tmp_path, tmp_path / "report.html")
