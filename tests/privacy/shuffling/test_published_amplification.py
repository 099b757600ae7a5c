"""The published tables of amplification and of the papers' noise formulas are what their bounds give today."""

import pandas as pd
import pytest
from small import ROOT

from silodp.jobs.__main__ import main as run_job


@pytest.mark.parametrize(
    ("job", "name"), [("checkins_figure_2", "checkins/figure_2.csv"), ("formulas", "formulas.csv")]
)
def test_rows_are_those_of_the_published_table(job, name, tmp_path):
    made, published = tmp_path / "made.csv", pd.read_csv(ROOT / "results" / "published" / name)
    assert run_job([job, f"output={made}"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(made), published, rtol=1e-7)
