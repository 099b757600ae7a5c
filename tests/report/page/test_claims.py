"""Verdicts on the page: first, with sign, number, rule, note and evidence."""

import base64
import gzip
import re

import pandas as pd
import pytest
from small import ROOT

from silodp.files import write_csv
from silodp.report.page.build import build
from silodp.report.page.claims import read_claims, shown_claims
from silodp.report.page.figure_list import Page as Folder
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.rows import COLUMNS, is_corrected
from silodp.verdicts.words import AGAINST

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M 0 0" /></svg>'


def row(name, verdict, **other):
    plain = dict.fromkeys(COLUMNS, "") | {"source": "a paper", "statement": f"says {name}", "statistic": "a number"}
    kind = "theorem" if name.startswith("T-") else "experiment"
    return (
        plain
        | dict.fromkeys(("value", "low", "high", "slack"))
        | {"kind": kind, "claim": name, "verdict": verdict}
        | other
    )


def built(path, rows):
    write_csv(pd.DataFrame(rows), path / "claims.csv")
    build(path, path / "report.html")
    text = (path / "report.html").read_text(encoding="utf-8")
    packed = r'<script type="text/plain">(.*?)</script>'
    return re.sub(packed, lambda found: gzip.decompress(base64.b64decode(found[1])).decode(), text)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The text of a page with four claims and a corrected form."""
    folder = tmp_path_factory.mktemp("claims")
    (folder / "figures").mkdir()
    (folder / "figures" / "e_M2_R5.svg").write_text(SVG)
    (folder / "found.csv").write_text("a\n")
    words = {"on_average": "confirmed", "at_every": "not reproduced", "note": "on average below the margin"}
    rows = [
        row(
            "N1",
            "confirmed",
            value=-0.0123456,
            low=-0.02,
            high=-0.01,
            evidence="figures/e_M2_R5.svg; found.csv",
            **words,
        ),
        row("N2", "not testable", statistic="needs <e>"),
        row("N6", "open", value=2.5, high=2.5),
        row("T-convex-2.1", "refuted"),
        row("T-convex-2.1: [corrected]", "open", note="order agrees", form="corrected"),
    ]
    return " ".join(built(folder, rows).split())


def test_claims_stand_by_meaning_with_signs_numbers_rules_and_both_words(page):
    places = [page.index(f'id="claim-{name}"') for name in ("N6", "N1", "N2", "T-convex-2.1")]
    # Experiments first: open, confirmed, not tested; then what a theorem's check refuted.
    assert places == sorted(places)
    claim = page[page.index("<b>N1</b>") : places[2]]
    for words in ("✓ confirmed", "says N1", "−0.0123 [−0.0200, −0.0100]", "Rule: ", "below the margin"):
        assert words in claim
    assert "on average confirmed; at every ε not reproduced" in claim
    assert "(at most 2.50)" in page
    assert "needs &lt;e&gt;" in page


def test_a_refuted_claim_has_the_papers_sentence_a_reply_and_its_corrected_form(page):
    refuted = page[page.index('id="claim-T-convex-2.1"') :]
    assert "<b>T-convex-2.1</b> “EF(ŵ_R) − F(w*) ≤ 272" in refuted
    assert "Right of reply" in refuted
    assert "opens an issue of the project that names T-convex-2.1" in refuted
    assert "An author could reply: An output index: the bound holds" in refuted
    assert "corrected: open" in refuted
    assert "<b>corrected</b>" in refuted
    assert "order agrees" in refuted
    assert page.count("An author could reply") == 1  # N2 is not refuted on this page
    stated = {claim.id: claim for claim in load_claims()}
    for path in (ROOT / "results").glob("published*/claims.csv"):
        rows = pd.read_csv(path)
        for name in rows[rows["verdict"].isin(AGAINST) & ~is_corrected(rows)]["claim"]:
            assert stated[name].quote, name
    for claim in stated.values():
        assert len(claim.quote.partition("”")[0].split()) <= 25
        assert bool(claim.quote) == bool(claim.reply)


def test_evidence_is_linked_where_it_is_and_missing_evidence_is_an_error(page, tmp_path):
    assert 'id="figure-figures-e_M2_R5"' in page
    assert '<a href="#figure-figures-e_M2_R5">' in page
    assert '<a href="found.csv">found.csv</a>' in page
    with pytest.raises(ValueError, match=r"claims\.csv: evidence: 'gone\.csv': no such file: must be in that folder"):
        built(tmp_path, [row("N1", "open", evidence="gone.csv")])


def test_a_claims_number_says_what_it_is():
    """N3's is an improvement: positive where SPIDER's error is smaller."""
    folder = ROOT / "results" / "published"
    shown = {claim.name: claim for claim in shown_claims(Folder(folder, folder), read_claims(folder), [])}
    assert shown["N3"].unit == "% smaller test error"
    assert shown["C1"].unit == "difference in test error"
    assert shown["N6"].unit == "true ε over claimed ε"
    assert shown["C1"].words == "on average confirmed; at every ε not reproduced"
