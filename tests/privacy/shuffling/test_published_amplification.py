"""The published tables of amplification and of the papers' noise formulas are what their bounds give today."""

import pandas as pd
import pytest
from published import STEPS
from small import ROOT

from silodp.cli import checkins, main

PUBLISHED = ROOT / "results" / "published"


@pytest.mark.parametrize("step", STEPS)
def test_rows_of_figure_2_are_those_of_the_published_table(step, tmp_path, monkeypatch):
    asked = checkins.EPSILON0[::step]
    monkeypatch.setattr(checkins, "EPSILON0", asked)
    assert main(["-q", "checkins-figure-2", "--output", str(tmp_path / "made.csv")]) == 0
    published = pd.read_csv(PUBLISHED / "checkins" / "figure_2.csv")
    wanted = published[published["epsilon0"].isin(asked)].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "made.csv"), wanted, rtol=1e-7)


@pytest.mark.slow
def test_rows_of_formulas_are_those_of_the_published_table(tmp_path):
    assert main(["-q", "formulas", "--output", str(tmp_path / "made.csv")]) == 0
    published = pd.read_csv(PUBLISHED / "formulas.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "made.csv"), published, rtol=1e-7)
