"""The published tables of amplification and of the papers' noise formulas are what their bounds give today."""

import pandas as pd
import pytest
from small import ROOT

from silodp.cli import main


@pytest.mark.parametrize(
    ("command", "name"), [("checkins-figure-2", "checkins/figure_2.csv"), ("formulas", "formulas.csv")]
)
def test_rows_are_those_of_the_published_table(command, name, tmp_path):
    made, published = tmp_path / "made.csv", pd.read_csv(ROOT / "results" / "published" / name)
    assert main(["-q", command, "--output", str(made)]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(made), published, rtol=1e-7)
