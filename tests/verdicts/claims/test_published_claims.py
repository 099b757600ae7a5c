"""Published claims, comparisons and the leaderboard are what the published tables give today, row by row."""

from pathlib import Path

import pandas as pd
import pytest
from small import ROOT

from silodp.cli import main
from silodp.config.board import on_board
from silodp.files import write_csv
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.deciding import decide
from silodp.verdicts.claims.loading import load_claims

PUBLISHED = ROOT / "results" / "published"
CLAIMS = load_claims()
# Those of experiments take seconds each.
SLOWER = ("C1", "N1", "N2", "N3", "N4")
OTHERS = tuple(claim.id for claim in CLAIMS if claim.id not in SLOWER)


def same_rows(found, wanted: pd.DataFrame) -> None:
    """Numbers to seven digits, words as they are."""
    pd.testing.assert_frame_equal(pd.read_csv(found), wanted.reset_index(drop=True), rtol=1e-7, check_dtype=False)


@pytest.mark.parametrize("names", [OTHERS, *((name,) for name in SLOWER)], ids=["others", *SLOWER])
def test_claims_have_the_published_rows(names, tmp_path):
    found = decide([claim for claim in CLAIMS if claim.id in names], RunFolder(PUBLISHED, None))
    write_csv(found, tmp_path / "found.csv")
    wanted = pd.read_csv(PUBLISHED / "claims.csv")
    assert set(found["claim"]) <= set(wanted["claim"])
    same_rows(tmp_path / "found.csv", wanted.loc[wanted["claim"].isin(found["claim"]), found.columns])


def test_comparisons_and_the_board_have_the_published_rows(tmp_path):
    files = sorted(map(str, (PUBLISHED / "reported").glob("*.csv")))
    made = str(tmp_path / "comparisons.csv")
    assert main(["-q", "comparisons", *files, "--privacy", str(PUBLISHED / "privacy.csv"), "--output", made]) == 0
    key = ["experiment", "first", "second", "M", "R", "epsilon"]
    found, wanted = (pd.read_csv(file) for file in (made, PUBLISHED / "comparisons.csv"))
    found.sort_values(key, kind="stable").to_csv(made, index=False)
    same_rows(made, wanted.sort_values(key, kind="stable"))
    ranked = [file for file in files if on_board(Path(file).stem)]
    assert main(["-q", "leaderboard", *ranked, "--folder", str(tmp_path), "--formats", "svg"]) == 0
    for name in ("leaderboard.csv", "leaderboard_best.csv"):
        same_rows(tmp_path / name, pd.read_csv(PUBLISHED / "board" / name))
