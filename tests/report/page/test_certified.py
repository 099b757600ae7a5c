"""The page's section about equal certified privacy: both noises, what they deliver, and the verdicts that turn."""

import json

import pandas as pd
import pytest
from page_run import Page, privacy, results

from silodp.files import write_csv
from silodp.report.page import build as report
from silodp.verdicts.claims import COLUMNS

CALIBRATED = "noise=calibrated"


@pytest.fixture
def run(tmp_path):
    """A run with an experiment of the default protocol and one that trains both noises."""
    paper, own = results("wbcd_certified"), results("wbcd_certified", reading=CALIBRATED)
    paper["delivered_epsilon"] = 2.5 * paper["epsilon"]
    tables = {"wbcd_mlp": results("wbcd_mlp"), "wbcd_certified": pd.concat([paper, own], ignore_index=True)}
    for name, table in tables.items():
        write_csv(table, tmp_path / "tables" / f"{name}.csv")
    noise = privacy(tables["wbcd_certified"])
    noise.loc[(noise["reading"] == CALIBRATED) & (noise["epsilon"] < 1), "noise_multiplier"] = 3.21 / 2
    noise.loc[(noise["reading"] == CALIBRATED) & (noise["epsilon"] > 1), "noise_multiplier"] = 3.21 * 4
    write_csv(noise, tmp_path / "privacy.csv")
    cells = {"experiment": "wbcd_certified", "reading": CALIBRATED, "M": 2, "R": 25, "trials": 10, "tolerance": 0.0}
    pair = {"first": f"minibatch_sgd:{CALIBRATED}", "second": "minibatch_sgd", "low": 0.0, "high": 0.0}
    changes = [cells | pair | {"epsilon": e, "difference": by} for e, by in ((0.75, -0.02), (18.0, 0.0625))]
    write_csv(pd.DataFrame(changes), tmp_path / "comparisons.csv")
    verdicts = {
        "N1": ("refuted", 0.4, ""),
        f"N1: [at exactly the claimed ε: {CALIBRATED}]": (
            "confirmed",
            1.0,
            "; a − b -0.0100 [-0.02, +0.01] in the mean",
        ),
        "N1: [the same rows with the paper's noise: default]": (
            "refuted",
            0.25,
            "; a − b +0.0200 [+0, +0.04] in the mean",
        ),
    }
    rows = [
        dict.fromkeys(COLUMNS, "") | {"claim": name, "source": "non-convex paper", "statement": "s"}
        | {"kind": "experiment", "verdict": verdict, "value": value, "statistic": f"x{text}"}
        for name, (verdict, value, text) in verdicts.items()
    ]  # fmt: skip
    write_csv(pd.DataFrame(rows), tmp_path / "claims.csv")
    about = {name: {"title": name, "paper": "non-convex paper, Figure 8"} for name in tables}
    (tmp_path / "config.json").write_text(json.dumps({"run": "r", "experiments": about}))
    return tmp_path


def built(run):
    report.build(run, run / "report.html")
    return Page((run / "report.html").read_text(encoding="utf-8"))


def test_what_both_noises_deliver_and_which_verdicts_turn(run):
    page = built(run)
    section = page.text[page.text.index("Each algorithm at exactly the ε on the axis") :]
    assert "Under calibrated noise 0 of 6 rows deliver more than they claim, under the paper's 6 of 6" in section
    assert "1 of 1 verdicts turn with the noise alone" in section
    row = next(row["cells"] for row in page.rows if row["cells"][0] == "N1" and "calibrated noise" in row["cells"])
    assert row == [
        "N1", "calibrated noise", "✗ refuted", "✗ refuted", "turns: ✓ confirmed",
        "25% → 100% of the parts support; a − b +0.0200 → −0.0100 in the mean",
    ]  # fmt: skip


def test_what_is_saved_where_the_papers_noise_is_too_large_and_what_it_costs_where_it_is_too_small(run):
    cells = next(row["cells"] for row in built(run).rows if "MB-SGD" in row["cells"] and row["cells"][0].endswith("25"))
    assert cells == [
        "wbcd_certified, M = 2, R = 25", "MB-SGD", "0.75", "0.5", "0.0200", "18", "4", "2.50 to 2.50", "0.0625",
    ]  # fmt: skip


def test_the_headline_counts_the_papers_protocol_alone(run):
    text = built(run).text
    assert "exceeds the claim in" not in text  # wbcd_mlp keeps its claims; the other's paper rows do not count again
    assert "No private row delivers a larger ε than it claims." in text
    assert "12 rows, 12 of them private" not in text


def test_a_run_without_both_noises_has_no_such_section(run):
    (run / "tables/wbcd_certified.csv").unlink()
    assert "At equal certified privacy" not in built(run).text
