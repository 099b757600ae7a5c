"""A run's tables have the rows of its experiments, in their order; of privacy those that are reported."""

import pandas as pd

from silodp.experiments.columns import PRIVACY_COLUMNS, PRIVACY_EXTRA
from silodp.files import write_csv
from silodp.jobs.merge import merge

NAMES = ["b", "a"]


def test_the_tables_of_experiments_are_joined_in_their_order_and_keep_their_text(tmp_path):
    for name in NAMES:
        for kind in ("by_round", "audit"):
            write_csv(pd.DataFrame({"experiment": [name], "epsilon": ["1.50"]}), tmp_path / kind / f"{name}.csv")
        columns = [*PRIVACY_COLUMNS, *PRIVACY_EXTRA]
        rows = pd.DataFrame({column: [f"{name}1", f"{name}2"] for column in columns}).assign(reported=[True, False])
        write_csv(rows, tmp_path / "privacy" / f"{name}.csv")
    merge(tmp_path, NAMES)
    for kind in ("by_round", "audit"):
        assert (tmp_path / f"{kind}.csv").read_text() == "experiment,epsilon\nb,1.50\na,1.50\n"
    found = pd.read_csv(tmp_path / "privacy.csv")
    assert list(found) == columns
    assert found["experiment"].tolist() == ["b1", "a1"]
