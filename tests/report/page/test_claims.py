"""Verdicts on the page: first, with sign, numbers, rule and evidence; and the verdicts that turn."""

import base64
import gzip
import json
import re

import pandas as pd
import pytest
from page_run import Page, results
from small import ROOT

from silodp.files import write_csv
from silodp.report.page.build import build
from silodp.report.page.claims import read_claims, shown_claims
from silodp.report.page.figures import Page as Folder
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.rows import AT_CLAIM, COLUMNS, PAPER_NOISE, SAME_ROWS

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M 0 0" /></svg>'


def row(claim, verdict, **other):
    plain = dict.fromkeys(COLUMNS, "") | {"source": "a paper", "statement": f"says {claim}", "statistic": "a number"}
    plain["kind"] = "theorem" if claim.startswith("T-") else "experiment"
    return plain | {"value": None, "low": None, "high": None} | other | {"claim": claim, "verdict": verdict}


def built(path, rows):
    write_csv(pd.DataFrame(rows), path / "claims.csv")
    build(path, path / "report.html")
    text = (path / "report.html").read_text(encoding="utf-8")
    packed = r'<script type="text/plain">(.*?)</script>'
    return re.sub(packed, lambda found: gzip.decompress(base64.b64decode(found[1])).decode(), text)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The text of a page with four claims."""
    folder = tmp_path_factory.mktemp("claims")
    (folder / "figures").mkdir()
    (folder / "reported").mkdir()
    (folder / "figures" / "e_M2_R5.svg").write_text(SVG)
    (folder / "reported" / "e.csv").write_text("a\n")
    files = "figures/e_M2_R5.svg; reported/e.csv; reported/gone.csv"
    rows = [
        row("N1", "confirmed", value=-0.0123456, low=-0.02, high=-0.01, evidence=files),
        row("N1: e M=2 R=5, a − b", "confirmed", value=-0.5),
        row("N1: [grid=other]", "refuted"),
        row("N2", "not testable here", statistic="needs <e>"),
        row("N6", "inconclusive", value=2.5, high=2.5),
        row("T-convex-2.1", "refuted"),
    ]
    return " ".join(built(folder, rows).split())


def test_claims_stand_by_meaning_with_signs_numbers_rules_and_parts(page):
    places = [page.index(f'id="claim-{name}"') for name in ("N6", "N1", "N2", "T-convex-2.1")]
    # Experiments first: open, confirmed, not tested; then what a theorem's check refuted.
    assert places == sorted(places)
    claim = page[page.index("<b>N1</b>") : places[2]]
    for words in ("✓ confirmed", "says N1", "−0.0123 [−0.0200, −0.0100]", "Rule: ", "<td>e M=2 R=5, a − b</td>"):
        assert words in claim
    assert "<b>grid=other</b>" in claim
    assert "✗ refuted" in claim
    assert "(at most 2.50)" in page
    assert "needs &lt;e&gt;" in page


def test_a_refuted_claim_has_the_papers_sentence_and_a_reply(page):
    refuted = page[page.index('id="claim-T-convex-2.1"') :]
    assert "<b>T-convex-2.1</b> “EF(ŵ_R) − F(w*) ≤ 272" in refuted
    assert "Right of reply" in refuted
    assert "opens an issue of the project that names T-convex-2.1" in refuted
    assert "An author could reply: The bound holds for" in refuted
    assert page.count("An author could reply") == 1  # N2 is not refuted on this page
    stated = {claim.id: claim for claim in load_claims()}
    for path in (ROOT / "results").glob("published*/claims.csv"):
        rows = pd.read_csv(path).query("verdict in ('refuted', 'depends on the variant')")
        for name in rows[~rows["claim"].str.contains(": ")]["claim"]:
            assert stated[name].quote, name
    for claim in stated.values():
        assert len(claim.quote.partition("”")[0].split()) <= 25
        assert bool(claim.quote) == bool(claim.reply)


def test_evidence_is_linked_where_it_is(page):
    assert 'id="figure-figures-e_M2_R5"' in page
    assert '<a href="#figure-figures-e_M2_R5">' in page
    assert '<a href="reported/e.csv">reported/e.csv</a>' in page
    assert "reported/gone.csv" in page
    assert 'href="reported/gone.csv"' not in page


def test_an_unknown_verdict_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"claims\.csv: verdict: 'probably': must be one of confirmed"):
        built(tmp_path, [row("N1", "probably")])


def changed(tmp_path, rows):
    """The rows of the table of changed verdicts on a page of an experiment with both noises."""
    both = [results("wbcd_mlp"), results("wbcd_mlp", reading="noise=calibrated")]
    both[0]["delivered_epsilon"] *= 3
    write_csv(pd.concat(both, ignore_index=True), tmp_path / "tables" / "wbcd_mlp.csv")
    about = {"wbcd_mlp": {"title": "Cancer", "paper": "non-convex paper, Figure 8"}}
    (tmp_path / "config.json").write_text(json.dumps({"run": "r", "experiments": about}))
    page = Page(built(tmp_path, rows))
    return page, [line["cells"] for line in page.rows if line["cells"][0] == "N1"]


def test_verdicts_that_turn_with_the_noise_stand_beside_how_claims_stand(tmp_path):
    rows = [
        row("N1", "refuted", value=0.4),
        row(f"N1: [{AT_CLAIM} noise=calibrated]", "confirmed", value=1.0, statistic="x; a − b -0.0100 [-0.02, +0.01]"),
        row(f"N1: [{PAPER_NOISE} default]", "refuted", value=0.25, statistic="x; a − b +0.0200 [+0, +0.04]"),
    ]
    page, changes = changed(tmp_path, rows)
    verdicts = ["✗ refuted", "✗ refuted", "✓ confirmed", "turns"]
    why = "25% → 100% of the parts support; a − b +0.0200 → −0.0100 in the mean"
    assert changes == [["N1", "calibrated noise", *verdicts, why]]
    assert "Claims of rows under calibrated noise: 6 kept, 0 not certified, 0 violated" in page.text
    assert "under the paper's: 0 kept, 6 not certified, 0 violated." in page.text


def test_verdicts_that_turn_with_the_protocol_stand_first(tmp_path):
    means = "share; minibatch_sgd − local_sgd {} [-0.1, +0.1]"
    rows = [
        row("N2", "refuted"),
        row("N2: [split=per_silo]", "refuted", statistic=means.format("+0.02"), value=0.25),
        row(f"N2: [{SAME_ROWS} split=per_silo]", "refuted", statistic=means.format("+0.01"), value=0.25),
        row("N1", "refuted"),
        row("N1: [grid=widened]", "confirmed", statistic=means.format("-0.02"), value=1.0),
        row(f"N1: [{SAME_ROWS} grid=widened]", "inconclusive", statistic=means.format("+0.01"), value=0.5),
        row("N3: [grid=widened]", "confirmed"),
    ]
    page, changes = changed(tmp_path, rows)
    why = "50% → 100% of the parts support; MB-SGD − Local SGD +0.01 → −0.02 in the mean"
    verdicts = ["✗ refuted", "~ inconclusive", "✓ confirmed", "turns"]
    assert changes == [["N1", "grids widened beyond both ends", *verdicts, why]]
    names = [line["cells"][0] for line in page.rows if line["cells"][-1].endswith("in the mean")]
    assert names == ["N1", "N2"]
    assert "1 of 2 verdicts turn with the choice alone" in page.text


def test_a_claims_line_has_a_number_for_each_pair_and_the_setting_that_speaks_against_it():
    folder = ROOT / "results" / "published"
    shown = {claim.name: claim.effects for claim in shown_claims(Folder(folder, folder), read_claims(folder), [])}
    assert [unit for _, unit in shown["N3"]] == ["% of the test error, Local SGD", "% of the test error, MB-SGD"]
    (mean, _), (against, place) = shown["C1"]
    assert mean.startswith("−")
    assert not against.startswith("−")
    assert "M=3 R=35" in place
