"""No sentence quotes the upper end of an interval as if it were the true ε.

The rule: outside brackets [lower, upper] no number of three digits or more equals, as rounded, the upper end of a row
of `results/published*/privacy.csv` whose claim is not kept. Numbers with a unit are errors and sizes, no ε.
"""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from small import ROOT

from silodp.experiments.columns import PRIVACY_COLUMNS, TABLE_COLUMNS
from silodp.files import read_table, with_reading
from silodp.privacy.standing import Standing, standings
from silodp.report.figures import FIGURES, save
from silodp.report.figures.from_tables import figures_of
from silodp.report.page.build import build
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.delivered import delivered_epsilon

PUBLISHED = ROOT / "results" / "published"
ROWS = pd.concat(read_table(path, PRIVACY_COLUMNS) for path in sorted(ROOT.glob("results/published*/privacy.csv")))


def upper_ends(rows: pd.DataFrame) -> np.ndarray:
    return rows.loc[standings(rows) != Standing.KEPT, "delivered_epsilon"].unique()


UPPER = upper_ends(ROWS)
BRACKETS = re.compile(r"\[[^\[\]]*,[^\[\]]*\]")
# A percentage or a size, or a count of rows.
UNIT = r"(?:[\d.]+ (?:to|and|against) )?[\d.,]+ (?:%|Mbit)|\b[\d,]+ of [\d,]+ hold|\([\d,]+ rows\)"
NUMBER = re.compile(r"(?<![\w.,^/−=-])\d[\d,]*(?:\.\d+)?(?![\w./]|,\d)")
# Numbers of other things that happen to be equal: claims, noise, ratios of bounds, batches, files, points of a grid.
OTHERS = {
    "docs/leaderboard.md": ["178"],
    "docs/errata.md": ["1.342"],
    "docs/results.md": ["12.5"],
    "docs/own-data.md": ["007,", "1.200"],
}


def quoted(text: str, upper: np.ndarray = UPPER) -> list[str]:
    """Numbers outside brackets that are upper ends."""
    found = []
    for token in NUMBER.findall(re.sub(UNIT, " ", BRACKETS.sub(" ", text))):
        plain = token.replace(",", "")
        digits = plain.replace(".", "").lstrip("0") if "." in plain else plain.rstrip("0")
        # One of the last digit that is written, zeros at the end of a whole number not counted.
        last = 10.0 ** -len(plain.partition(".")[2]) if "." in plain else 10.0 ** (len(plain) - len(digits))
        if len(digits) >= 3 and (np.abs(upper - float(plain)) < 0.999 * last).any():
            found.append(token)
    return found


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_pages_give_intervals(page):
    # Verdicts have their own numbers, which are no ε.
    text = (ROOT / page).read_text("utf-8")
    text = re.sub(r"<!-- table verdicts.*?<!-- end of verdicts -->|<!--=.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"(?m)^Evidence: .*$", "", text)  # lines of files
    assert set(quoted(text)) <= set(OTHERS.get(page, []))


def test_report_figures_and_claims_give_intervals(tmp_path):
    (tmp_path / "tables").mkdir()
    for name in ("privacy.csv", "audit.csv", "tables/wbcd_mlp.csv", "tables/wbcd_certified.csv"):
        shutil.copy(PUBLISHED / name, tmp_path / name)
    (tmp_path / "config.json").write_text(json.dumps({"experiments": {"wbcd_mlp": {}, "wbcd_certified": {}}}))
    for name in ("wbcd_mlp", "wbcd_certified"):
        rows = with_reading(read_table(PUBLISHED / "tables" / f"{name}.csv", TABLE_COLUMNS))
        for kind, draw in FIGURES.items():
            if (kind == "both_noises") == (name == "wbcd_certified"):
                shown = rows if name == "wbcd_certified" else rows[rows["reading"] == ""]
                save(draw(shown, title="t"), tmp_path / "figures" / f"{name}_M2_R25_{kind}", ["svg"])
    for name, figure in figures_of(PUBLISHED / "formulas.csv").items():
        save(figure, tmp_path / "figures" / name, ["svg"])
    build(tmp_path, tmp_path / "report.html")
    texts = [path.read_text(encoding="utf-8") for path in [*tmp_path.glob("figures/*.svg"), tmp_path / "report.html"]]
    (claim,) = (claim for claim in load_claims() if claim.id == "N6")
    texts += [finding.statistic for finding in delivered_epsilon(claim, RunFolder(tmp_path))]
    shown = [re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL) for text in texts]
    rows = read_table(PUBLISHED / "privacy.csv", PRIVACY_COLUMNS)
    upper = upper_ends(rows[rows["experiment"].isin(["wbcd_mlp", "wbcd_certified"])])
    assert [quoted(text, upper) for text in shown] == [[]] * len(shown)


def test_the_rule_finds_what_it_is_for():
    assert quoted("delivers 2,980 for 18, at worst 2980; 31.1 and 74.4") == ["2,980", "2980", "31.1", "74.4"]
    assert quoted("true ε in [77.6, 2,980], error 74.4 %, 18 of 25") == []
