"""Verdicts on the page: first, with sign, numbers, rule, and links to figures of the page and files of the run."""

import re

import pandas as pd
import pytest

from silodp.files import write_csv
from silodp.report.page import build as report
from silodp.verdicts.claims import COLUMNS
from silodp.verdicts.words import Verdict

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><title>e</title><path d="M 0 0" /></svg>'


def row(claim, verdict, **other):
    plain = dict.fromkeys(COLUMNS, "") | {"source": "a paper", "statement": f"says {claim}", "statistic": "a number"}
    plain["kind"] = "theorem" if claim.startswith("T-") else "experiment"
    return plain | {"value": None, "low": None, "high": None} | other | {"claim": claim, "verdict": verdict}


@pytest.fixture
def page(tmp_path):
    """The text of a page with three claims."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "reported").mkdir()
    (tmp_path / "figures" / "e_M2_R5.svg").write_text(SVG)
    (tmp_path / "reported" / "e.csv").write_text("a\n")
    files = "figures/e_M2_R5.svg; reported/e.csv; reported/gone.csv"
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


def test_claims_stand_by_meaning_with_signs_and_numbers(page):
    assert page.index('id="claims"') < page.index('id="privacy"')
    names = re.findall(r'<details class="claim"[^>]*><summary><b>([^<]*)</b>', page)
    # Experiments first: open, confirmed, not tested; then what a theorem's check refuted.
    assert names == ["N6", "N1", "N2", "T-convex-2.1"]
    line = re.search(r"<summary><b>N1</b>.*?</summary>", page)[0]
    assert "✓ confirmed" in line
    assert "says N1" in line
    assert "−0.0123" in line
    assert "−0.0200 to −0.0100" in line
    assert "(at most 2.50)" in page


def test_the_card_of_a_paper_counts_experiments_apart_and_says_what_was_refuted():
    from silodp.report.page.papers import cards

    def claim(name, verdict, kind="experiment", source="non-convex paper, Section 4"):
        word = Verdict(verdict)
        return {"name": name, "source": source, "statement": f"says {name}", "kind": kind, "verdict": verdict,
                "sign": word.sign, "style": word.style}  # fmt: skip

    claims = [claim("N1", "confirmed"), claim("N2", "refuted"), claim("T-1", "refuted", "theorem")]
    claims.append(claim("K1", "derivation", "derivation", "check-ins paper, Figure 2"))
    rows = pd.DataFrame(
        {
            # The last is under calibrated noise, which the headline does not count.
            "experiment": ["e", "e", "other", "e"],
            "reading": ["", "", "", "noise=calibrated"],
            "first": "spider",
            "second": "minibatch_sgd",
            "low": [0.01, -0.01, 0.01, 0.01],
            "high": [0.02, 0.01, 0.02, 0.02],
            "tolerance": 0.005,
        }
    )
    first, second = cards(claims, rows, {"e": "non-convex paper, Figure 8", "other": "scaled-down surrogate"})
    assert (first["paper"].arxiv, second["paper"].arxiv) == ("2203.06735", "2007.06605")
    assert [(one["verdict"], one["count"]) for one in first["empirical"]] == [("refuted", 1), ("confirmed", 1)]
    assert [(one["verdict"], one["count"]) for one in first["others"]] == [("refuted", 1)]
    assert [one["name"] for one in first["worst"]] == ["N2"]
    assert first["finding"] == (
        "SPIDER has a smaller test error than MB-SGD in 0 of 2 comparisons at equal claimed ε, and a larger one in 1; "
        "1 is undecided."
    )
    assert second["finding"] == "Its one statement is not refuted."


def test_a_claims_rule_parts_and_readings_stand_under_it(page):
    part = page[page.index('id="claim-N1"') : page.index('id="claim-N2"')]
    assert "Rule: confirmed when in every setting more than half" in part
    assert "<td>e M=2 R=5, a − b</td>" in part
    assert "<b>grid=other</b>" in part
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
