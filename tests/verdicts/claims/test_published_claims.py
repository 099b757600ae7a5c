"""Published claims, comparisons and the leaderboard are what the published tables give today, row by row."""

from pathlib import Path

import pandas as pd
import pytest
from published import STEPS
from small import ROOT

from silodp.config.board import on_board
from silodp.files import write_csv
from silodp.jobs.__main__ import main as run_job
from silodp.verdicts.claims.base import RunFolder
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.deciding import decide
from silodp.verdicts.claims.rows import is_corrected

PUBLISHED = ROOT / "results" / "published"


def same_rows(found, wanted: pd.DataFrame) -> None:
    """Numbers to seven digits, words as they are."""
    pd.testing.assert_frame_equal(pd.read_csv(found), wanted.reset_index(drop=True), rtol=1e-7, check_dtype=False)


def test_claims_have_the_published_rows_one_a_claim_and_one_a_corrected_form(tmp_path):
    write_csv(decide(load_claims(), RunFolder(PUBLISHED)), tmp_path / "found.csv")
    wanted = pd.read_csv(PUBLISHED / "claims.csv")
    same_rows(tmp_path / "found.csv", wanted)
    assert wanted["claim"].is_unique
    assert (len(wanted), is_corrected(wanted).sum()) == (len(load_claims()) + 8, 8)


def test_every_link_of_a_published_claim_is_a_file_and_every_claim_with_evidence_has_one():
    for path in sorted((ROOT / "results").glob("published*/claims.csv")):
        links = pd.read_csv(path)["evidence"].dropna()
        missing = {name for text in links for name in text.split("; ") if not (path.parent / name).is_file()}
        assert missing == set(), path
    linked = pd.read_csv(PUBLISHED / "claims.csv").set_index("claim")["evidence"].notna()
    assert {claim.id for claim in load_claims() if claim.evidence} <= {name for name in linked.index if linked[name]}


@pytest.mark.parametrize("step", STEPS)
def test_comparisons_have_the_published_rows(step, tmp_path):
    files = sorted(map(str, (PUBLISHED / "reported").glob("*.csv")))[::step]
    made = str(tmp_path / "comparisons.csv")
    words = ["reported=", *files, f"privacy={PUBLISHED / 'privacy.csv'}", f"output={made}"]
    assert run_job(["comparisons", *words]) == 0
    key = ["experiment", "first", "second", "M", "R", "epsilon"]
    found, wanted = (pd.read_csv(file) for file in (made, PUBLISHED / "comparisons.csv"))
    found.sort_values(key, kind="stable").to_csv(made, index=False)
    own = wanted["experiment"].isin({Path(file).stem for file in files})
    same_rows(made, wanted[own].sort_values(key, kind="stable"))


@pytest.mark.slow
def test_the_board_has_the_published_rows(tmp_path):
    files = sorted(map(str, (PUBLISHED / "reported").glob("*.csv")))
    ranked = [file for file in files if on_board(Path(file).stem)]
    assert run_job(["leaderboard", "reported=", *ranked, f"folder={tmp_path}", "formats=svg"]) == 0
    for name in ("leaderboard.csv", "leaderboard_best.csv"):
        same_rows(tmp_path / name, pd.read_csv(PUBLISHED / "board" / name))
