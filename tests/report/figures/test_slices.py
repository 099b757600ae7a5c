import numpy as np
import pandas as pd
from example_table import results_table

from silodp.files import figure_name
from silodp.report.figures import slices


def test_slices_cut_a_table_into_disjoint_parts_that_make_it_up():
    parts = [results_table(M=12, R=50), results_table(M=2, R=25), results_table(M=2, R=25, reading="batch=per_eps")]
    table = pd.concat(parts, ignore_index=True).replace({"reading": {"": np.nan}})  # as a CSV file gives it back
    found = list(slices(table))
    assert [one for one, _ in found] == [(2, 25, ""), (12, 50, ""), (2, 25, "batch=per_eps")]
    assert [len(rows) for _, rows in found] == [len(parts[0])] * 3


def test_figure_names():
    assert figure_name("wbcd_mlp", 2, 25) == "wbcd_mlp_M2_R25"
    assert figure_name("wbcd_mlp", 2, 25, "stepsize_grid=linear") == "wbcd_mlp_M2_R25_stepsize_grid=linear"
    name = figure_name("wbcd_mlp", 2, 25, "a/b c", "delivered_vs_claimed")
    assert name == "wbcd_mlp_M2_R25_a-b-c_delivered_vs_claimed"
