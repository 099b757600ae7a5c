"""Summaries of results, privacy, audit and bounds, and what a run on one's own data promises."""

import json

import numpy as np
import pandas as pd
import pytest
from page_run import Page, privacy, results

from silodp.audit.audit_columns import AS_PLANNED, AUDIT_COLUMNS
from silodp.experiments.columns import PRIVACY_EXTRA
from silodp.files import write_csv
from silodp.report.figures import BOUNDS_FIGURES, save
from silodp.report.page.build import build
from silodp.report.page.summaries import SOURCES
from silodp.streams import Streams
from silodp.verdicts.checks import run_check
from silodp.verdicts.checks.base import Context, Sweep, sweep_rows, table


def folder(path, **about):
    """A run of one experiment with its table; `about` is what config.json says of it."""
    rows = results("wbcd_mlp")
    write_csv(rows, path / "tables" / "wbcd_mlp.csv")
    write_csv(privacy(rows), path / "privacy.csv")
    experiment = {"title": "Breast cancer", "paper": "non-convex paper, Figure 8"} | about
    (path / "config.json").write_text(json.dumps({"run": "r", "experiments": {"wbcd_mlp": experiment}}))
    return path


def built(path):
    build(path, path / "report.html")
    return Page((path / "report.html").read_text(encoding="utf-8"))


def test_results_and_privacy_have_a_row_each_and_mark_violated_claims(tmp_path):
    page = built(folder(tmp_path))
    counted = "Of 4 private results {} keep their claim, {} provably violate it; of 0 the claim lies between"
    assert "The noise keeps what it claims." in page.text
    assert counted.format(4, 0) in page.text
    rows = [row["cells"] for row in page.rows]
    assert ["Breast cancer", "7", "6", "6", "0", "0", "0", "0", "0.100 to 0.183"] in rows
    assert ["Breast cancer", "ISRL-DP MB-SGD", "0.75 to 18", "2", "0", "0", "[0, 0.675] for 0.75", "3.46×10⁻⁵"] in rows
    assert not any("alarm" in row["class"] for row in page.rows)
    table = pd.read_csv(tmp_path / "tables" / "wbcd_mlp.csv")
    table.loc[[1, 2], ["delivered_epsilon", "delivered_lower"]] = [[19.01, 18.019], [1.0, np.nan]]
    table.loc[1, "diverged"] = 2
    write_csv(table.assign(edge=["lowest stepsize", *[""] * 6]), tmp_path / "tables" / "wbcd_mlp.csv")
    write_csv(privacy(table), tmp_path / "privacy.csv")
    page = built(tmp_path)
    assert "Part of the stated noise provably protects less than it claims." in page.text
    assert counted.format(3, 1) in page.text
    first, second = (row["cells"] for row in page.rows if "alarm" in row["class"])
    assert first[1:8] == ["7", "6", "4", "1", "1", "2", "1"]
    assert second[3:7] == ["1", "0", "1", "[18.0, 19.1] for 18"]  # bounds are rounded outwards


@pytest.mark.parametrize("finding", [AS_PLANNED, "wrong size of noise (all messages of gradient)"])
def test_an_audit_that_finds_a_fault_is_an_alarm(tmp_path, finding):
    point = {"experiment": "wbcd_mlp", "algorithm": "minibatch_sgd", "setting": "M2_R25", "phase_length": 1}
    point |= {"claimed_epsilon": 0.75, "delta": 3.5e-5, "delivered_epsilon": 0.5349, "mechanism_p": 1.0}
    rows = [point | {"mechanism": word} for word in (AS_PLANNED, finding)]
    write_csv(pd.DataFrame(rows)[AUDIT_COLUMNS], folder(tmp_path) / "audit.csv")
    page, sound = built(tmp_path), finding == AS_PLANNED
    assert f"In {1 + sound} of 2 audits" in page.text
    assert (f": {finding}." in page.text) != sound
    assert ({"class": "alarm"} in page.all("p")) != sound


def test_checks_have_their_figure_and_their_verdicts_by_theorem(tmp_path):
    generator = np.random.default_rng(1)

    def sample(M):
        return generator.normal(1, 0.05, 40) * M**-0.5

    sweep = Sweep("convex-2.1", "M", "private", -0.5, (-1.0, 0.0), [1.0, 2.0, 4.0], sample, lambda M: M**-0.5)
    rates = table("rates_convex", sweep_rows(sweep, Streams(1)))
    write_csv(rates, tmp_path / "bounds" / "rates_convex.csv")
    write_csv(run_check("figure_3", Context(Streams(1))), tmp_path / "bounds" / "figure_3.csv")
    save(BOUNDS_FIGURES["rates_convex"](rates, title="Rates"), tmp_path / "bounds" / "rates_convex", ["svg"])
    page = built(tmp_path)
    assert "Rates of the convex paper: 1 confirmed" in page.text
    assert "40 derivation" in page.text
    assert ["Convex Theorem 2.1", "✓ confirmed", "1"] in [row["cells"] for row in page.rows]
    assert [figure["id"] for figure in page.all("figure")] == ["figure-bounds-rates_convex"]
    assert {"bounds/rates_convex.svg", "bounds/rates_convex.csv"} <= {a["href"] for a in page.all("a")}


def test_table_1_has_the_papers_rows_with_stated_and_exact_exponents(tmp_path):
    write_csv(run_check("table_1", Context(Streams(1))), tmp_path / "bounds" / "table_1.csv")
    rows = [row["cells"] for row in built(tmp_path).rows]
    sources = [row for row in rows if row and row[0] in SOURCES.values()]
    assert [row[0] for row in sources] == list(SOURCES.values())
    assert sources[0] == ["none", "2.00", "2.00", "2.00", "–", "–"]
    # e^(1.5·2)/√10⁶; the exact form has e^ε0 − 1 where the entry has e^ε0.
    assert sources[-1][3:] == ["0.0201", "1.5, 1.63", "−0.5, −0.5"]


def test_a_run_on_a_users_file_opens_with_its_promises_and_shows_no_claims(tmp_path):
    dataset = {"file": "a.csv", "target": "y", "silo": "s", "person": "p"}
    steps = {"standardise": "bounds", "bounds_from": "file"}
    path = folder(tmp_path, dataset=dataset, paper="", preprocess=steps)
    (path / "claims.csv").write_text("not read\n")
    numbers = dict.fromkeys(PRIVACY_EXTRA, 0.5) | {"person_silos": 2, "person_records": 3, "epsilon_person": 77.7}
    write_csv(pd.read_csv(path / "privacy.csv").assign(**numbers), path / "privacy.csv")
    (path / "figures").mkdir()
    for name in ("wbcd_mlp_M2_R25_by_round", "formulas_convex"):
        (path / "figures" / f"{name}.svg").write_text("<svg viewBox='0 0 1 1'></svg>")
    page = built(path)
    assert "Breast cancer: what is promised, and what is not" in page.text
    assert "A person has records in 2 silos at most, up to 3 in one" in page.text
    assert "bounds were read off the records" in page.text
    assert any("77.7" in row["cells"] for row in page.rows)
    assert "arXiv" not in page.text
    assert [figure["id"] for figure in page.all("figure")] == ["figure-figures-wbcd_mlp_M2_R25_by_round"]
    assert not [tag for tag, attributes in page.tags if attributes.get("id") == "claims"]


def test_a_data_set_that_names_its_silos_is_a_users_unless_a_paper_uses_it(tmp_path):
    for paper, own in (("", True), ("convex paper, Figure 2", False)):
        path = folder(tmp_path, dataset="obesity", silos={"scheme": "column"}, paper=paper)
        numbers = dict.fromkeys(PRIVACY_EXTRA, 0.5)
        write_csv(pd.read_csv(path / "privacy.csv").assign(**numbers), path / "privacy.csv")
        text = built(path).text
        assert ("what is promised, and what is not" in text) == own
        assert ("is a study of the data, for their owners and not for publication" in text) == own
