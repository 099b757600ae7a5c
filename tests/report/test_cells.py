"""Cells of pictures and sentences: decided where fresh trials decide, and both tables by one rule."""

import numpy as np
import pandas as pd
import pytest
from small import ROOT

from silodp.config.yaml_file import read_yaml
from silodp.files import write_csv
from silodp.report.cells import USELESS, cells_of, counts_of_cells, in_forests, margin_of, read_cells
from silodp.verdicts.comparisons import AHEAD, BEHIND, NO_DIFFERENCE, SAME
from silodp.verdicts.decided import OPEN, WITHIN

PUBLISHED = ROOT / "results" / "published"
CELL = {"experiment": "wbcd_mlp", "reading": "", "M": 2, "R": 25, "first": "spider", "second": "minibatch_sgd"}


def table(ends, trials=10, **more):
    """A row for each ε of `ends`: ε → (low, high)."""
    rows = [
        CELL | {"epsilon": e, "trials": trials, "difference": (low + high) / 2, "low": low, "high": high} | more
        for e, (low, high) in ends.items()
    ]
    return pd.DataFrame(rows)


COMPARED = table({1.0: (-0.03, -0.01), 3.0: (0.001, 0.002), 6.0: (-0.004, 0.004), 18.0: (-0.02, 0.03)}, outcome="x")


def decided(ends, **more):
    return table(ends, 100, useless=False, same_mechanism=False, outcome=OPEN, **more)


def test_without_decided_cells_the_intervals_say_what_they_would_there():
    cells = cells_of(COMPARED)
    assert cells["outcome"].tolist() == [AHEAD, BEHIND, WITHIN, OPEN]
    assert not cells["decided"].any()
    assert set(cells["margin"]) == {margin_of("wbcd_mlp")} == {0.01}
    kept = COMPARED.assign(outcome=SAME)
    assert set(cells_of(kept)["outcome"]) == {SAME}
    diverged = cells_of(COMPARED.assign(difference=np.nan, low=np.nan, high=np.nan, outcome=NO_DIFFERENCE))
    assert (set(diverged["outcome"]), set(diverged["p"])) == ({OPEN}, {1.0})


def test_a_run_without_a_pair_has_no_cells(tmp_path):
    """Its table has no row, and so no kind of numbers."""
    write_csv(COMPARED[:0], tmp_path / "comparisons.csv")
    assert read_cells(tmp_path / "comparisons.csv").empty


def test_a_decided_cell_takes_the_place_of_the_published_one():
    fresh = decided({1.0: (0.02, 0.03)}).assign(outcome=BEHIND)
    cells = cells_of(COMPARED, fresh).set_index("epsilon")
    assert cells.loc[1.0, ["trials", "low", "high", "outcome", "decided"]].tolist() == [100, 0.02, 0.03, BEHIND, True]
    assert cells.loc[[3.0, 6.0, 18.0], "outcome"].tolist() == [BEHIND, WITHIN, OPEN]
    # A cell of which no fresh trial is there decides nothing.
    assert not cells_of(COMPARED, fresh.assign(trials=0))["decided"].any()
    assert not cells_of(COMPARED, fresh.assign(reading="noise=calibrated"))["decided"].any()


def test_useless_cells_and_those_of_one_mechanism_are_counted_apart():
    fresh = decided(dict.fromkeys([1.0, 3.0, 6.0], (-0.03, -0.02))).assign(
        outcome=AHEAD, useless=[True, False, False], same_mechanism=[False, True, False]
    )
    cells = cells_of(COMPARED, fresh)
    assert cells["outcome"].tolist() == [USELESS, SAME, AHEAD, OPEN]
    counts = counts_of_cells(cells)
    assert (counts.useless, counts.same_algorithm, counts.ahead, counts.open, counts.cells) == (1, 1, 1, 1, 2)


@pytest.mark.parametrize("weak", [1, 40])
def test_holm_keeps_less_among_more_cells(weak):
    """An interval that leaves out 0 by little counts alone, and not among forty."""
    half = 0.01
    ends = {1.0: (0.05 * half, 2.05 * half)} | {float(e): (-half, half) for e in range(2, weak + 1)}
    counts = counts_of_cells(cells_of(table(ends, outcome="x")))
    assert (counts.behind, counts.behind_kept) == (1, int(weak == 1))


def test_p_is_the_tests_of_the_published_comparisons():
    cells = read_cells(PUBLISHED / "comparisons.csv")
    rows = pd.read_csv(PUBLISHED / "comparisons.csv")
    ours = (~cells["decided"] & np.isfinite(rows["difference"]) & (rows["high"] > rows["low"])).to_numpy()
    wanted = 2 * np.minimum(rows["p"], 1 - rows["p"])[ours]
    np.testing.assert_allclose(cells.loc[ours, "p"], wanted, rtol=1e-6, atol=1e-12)


def test_every_decided_cell_of_a_published_comparison_is_used():
    cells, fresh = read_cells(PUBLISHED / "comparisons.csv"), pd.read_csv(PUBLISHED / "decided.csv")
    key = ["experiment", "reading", "M", "R", "epsilon", "first", "second"]
    rows = pd.read_csv(PUBLISHED / "comparisons.csv")[key].merge(fresh[fresh["trials"] > 0], on=key)
    assert cells["decided"].sum() == len(rows) > 200


def test_pictures_of_pairs_show_the_papers_cells_and_no_board():
    families = read_yaml(ROOT / "config" / "claims" / "decided.yaml")["families"].values()
    assert "wbcd_mlp" in {name for family in families for name in family["experiments"]}
    assert in_forests(["wbcd_mlp", "wbcd_per_eps", "wbcd_leaderboard", "mine"]) == ["wbcd_mlp"]
    assert in_forests(["wbcd_per_eps", "wbcd_leaderboard", "mine"]) == ["wbcd_per_eps", "mine"]


def test_decided_cells_are_found_beside_the_comparisons(tmp_path):
    write_csv(COMPARED, tmp_path / "comparisons.csv")
    assert not read_cells(tmp_path / "comparisons.csv")["decided"].any()
    write_csv(decided({1.0: (0.02, 0.03)}), tmp_path / "decided.csv")
    assert read_cells(tmp_path / "comparisons.csv")["decided"].sum() == 1
