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
from silodp.verdicts.claims.base import (
    AT_CLAIM,
    CLAIM,
    DATA_SET,
    PAPER_NOISE,
    READING,
    SAME_ROWS,
    SETTING,
    ClaimFinding,
)
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.rows import ABOUT, COLUMNS
from silodp.verdicts.words import AGAINST, Verdict

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M 0 0" /></svg>'


def row(name, verdict, scope=CLAIM, **other):
    plain = dict.fromkeys([*COLUMNS, *ABOUT], "") | {"source": "a paper", "statement": f"says {name}"}
    plain |= {"statistic": "a number", "kind": "theorem" if name.startswith("T-") else "experiment", "M": 0, "R": 0}
    plain |= dict.fromkeys(("value", "low", "high", "slack")) | other
    about = {key: other[key] for key in ("rows", "reading", "experiment", "data_set", "M", "R") if key in other}
    part = ClaimFinding("", verdict, scope=scope, pair=tuple(other.get("pair", "").split(" − ")), **about).row_name
    return plain | {"claim": f"{name}: {part}" if part else name, "id": name, "scope": scope, "verdict": verdict}


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
        row("N1", "confirmed", SETTING, experiment="e", M=2, R=5, pair="a − b", value=-0.5),
        row("N1", "refuted", READING, reading="grid=other"),
        row("N2", "not testable here", statistic="needs <e>"),
        row("N6", "open", value=2.5, high=2.5),
        row("T-convex-2.1", "refuted"),
    ]
    return " ".join(built(folder, rows).split())


def test_claims_stand_by_meaning_with_signs_numbers_rules_and_parts(page):
    places = [page.index(f'id="claim-{name}"') for name in ("N6", "N1", "N2", "T-convex-2.1")]
    # Experiments first: open, confirmed, not tested; then what a theorem's check refuted.
    assert places == sorted(places)
    claim = page[page.index("<b>N1</b>") : places[2]]
    for words in ("✓ confirmed", "says N1", "−0.0123 [−0.0200, −0.0100]", "Rule: ", "<td>e, M = 2, R = 5: a − b</td>"):
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
    assert "An author could reply: An output index: the bound holds" in refuted
    assert page.count("An author could reply") == 1  # N2 is not refuted on this page
    stated = {claim.id: claim for claim in load_claims()}
    for path in (ROOT / "results").glob("published*/claims.csv"):
        rows = pd.read_csv(path).query("scope == 'claim'")
        for name in rows[rows["verdict"].isin([*AGAINST, Verdict.DEPENDS])]["id"]:
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


def twice(name, about, verdict, share, mean):
    """A claim decided again as a whole, and its data set's mean."""
    whole = row(name, verdict, READING, value=share, **about)
    return [whole, row(name, verdict, DATA_SET, value=mean, data_set="mnist", pair="a − b", **about)]


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
        *twice("N1", {"rows": AT_CLAIM, "reading": "noise=calibrated"}, "confirmed", 1.0, -0.01),
        *twice("N1", {"rows": PAPER_NOISE}, "refuted", 0.25, 0.02),
    ]
    page, changes = changed(tmp_path, rows)
    verdicts = ["✗ refuted", "✗ refuted", "✓ confirmed", "turns"]
    why = "25% → 100% of the parts support; a − b on MNIST +0.0200 → −0.0100 in the mean"
    assert changes == [["N1", "calibrated noise", *verdicts, why]]
    assert "Claims of rows under calibrated noise: 6 kept, 0 not certified, 0 violated" in page.text
    assert "under the paper's: 0 kept, 6 not certified, 0 violated." in page.text


def test_verdicts_that_turn_with_the_protocol_stand_first(tmp_path):
    split, grid = {"reading": "split=per_silo"}, {"reading": "grid=widened"}
    rows = [
        row("N2", "refuted"),
        *twice("N2", split, "refuted", 0.25, 0.02),
        *twice("N2", split | {"rows": SAME_ROWS}, "refuted", 0.25, 0.01),
        row("N1", "refuted"),
        *twice("N1", grid, "confirmed", 1.0, -0.02),
        *twice("N1", grid | {"rows": SAME_ROWS}, "open", 0.5, 0.01),
        row("N3", "confirmed", READING, **grid),
    ]
    page, changes = changed(tmp_path, rows)
    why = "50% → 100% of the parts support; a − b on MNIST +0.0100 → −0.0200 in the mean"
    verdicts = ["✗ refuted", "~ open", "✓ confirmed", "turns"]
    assert changes == [["N1", "grids widened beyond both ends", *verdicts, why]]
    names = [line["cells"][0] for line in page.rows if line["cells"][-1].endswith("in the mean")]
    assert names == ["N1", "N2"]
    assert "1 of 2 verdicts turn with the choice alone" in page.text


def test_a_claims_line_has_a_number_for_each_pair_and_the_setting_that_speaks_against_it():
    folder = ROOT / "results" / "published"
    shown = {claim.name: claim.effects for claim in shown_claims(Folder(folder, folder), read_claims(folder), [])}
    assert [unit for _, unit in shown["N3"]] == [
        "% of the test error, SPIDER − Local SGD",
        "% of the test error, SPIDER − MB-SGD",
    ]
    (mean, _), (against, place) = shown["C1"]
    assert mean.startswith("−")
    assert not against.startswith("−")
    assert "M = 3, R = 35" in place


def test_a_claim_says_its_two_decided_verdicts(tmp_path):
    decided = {"on_average": "confirmed (minibatch_sgd − local_sgd: -0.1)", "at_every": "open"}
    text = built(tmp_path, [row("C1", "open", **decided), row("N1", "open")])
    assert "With tuning, on average: confirmed (MB-SGD − Local SGD: −0.1)." in text
    assert text.count("With tuning, at every ε: open.") == text.count("With tuning, at") == 1
