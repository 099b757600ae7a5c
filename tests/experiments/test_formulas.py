"""The true ε of the papers' formulas, against other ways to compute it."""

import math

import pandas as pd
import pytest
from small import ROOT

from silodp.experiments.formulas import PAPERS, RECORDS, formula_rows
from silodp.files import write_csv
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.report.figures.delivered_vs_claimed import draw_formulas


@pytest.fixture(scope="module")
def rows():
    return formula_rows()


def test_rows_are_those_of_the_published_table(rows, tmp_path):
    write_csv(rows, tmp_path / "made.csv")
    published = pd.read_csv(ROOT / "results/published/formulas.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "made.csv"), published, rtol=1e-7)


def of(rows, paper, formula):
    found = rows[(rows["paper"] == paper) & (rows["formula"] == formula)]
    assert len(found)
    return found.set_index("claimed_epsilon")["delivered_epsilon"]


def test_every_formula_is_there_and_grows_with_its_claim(rows):
    for paper, setting in PAPERS.items():
        for formula in setting.formulas:
            assert of(rows, paper, formula.name).is_monotonic_increasing
    assert (rows["holds"] == (rows["delivered_epsilon"] <= rows["claimed_epsilon"])).all()


def test_the_theorem_is_claimed_where_it_assumes_and_holds_there(rows):
    theorem = rows[rows["formula"] == "MB-SGD, theorem form"]
    assert theorem["claimed_epsilon"].max() < math.log(2 * RECORDS**2) < max(PAPERS["convex"].epsilons)
    assert theorem["holds"].all()


def test_per_tensor_clipping_is_half_the_noise(rows):
    """Noise goes with 1/ε and the batch is fixed: √4 times the sensitivity gives what twice the claim does."""
    plain = of(rows, "nonconvex", "MB-SGD, moments form")
    released = of(rows, "nonconvex", "released: tensors clipped one by one")
    for claim in (0.75, 1.5, 3.0, 6.0):
        assert released[claim] == pytest.approx(plain[2 * claim], rel=1e-3)


def test_a_clipped_mean_is_no_worse_than_one_that_turns_in_every_round(rows):
    found = rows[rows["formula"] == "released: only the mean clipped"]
    for row in found.to_dict("records"):
        every_round = gaussian_epsilon(row["delta"], math.sqrt(row["R"]) / row["noise_multiplier"])
        assert 10 * row["claimed_epsilon"] < row["delivered_epsilon"] <= every_round


def test_a_lower_end_lies_below_its_upper_one_and_violates_what_the_moments_form_claims(rows):
    known = rows.dropna(subset="delivered_lower")
    assert (known["delivered_lower"] <= known["delivered_epsilon"]).all()
    plain = known[(known["paper"] == "nonconvex") & (known["formula"] == "MB-SGD, moments form")]
    assert (plain["delivered_lower"] > plain["claimed_epsilon"]).tolist() == [False] * 4 + [True] * 3


@pytest.mark.parametrize("paper", PAPERS)
def test_figure_has_a_bar_for_each_formula_and_claim(rows, paper):
    own = rows[rows["paper"] == paper]
    axes = draw_formulas(own, title="t").axes[0]
    for name, part in own.groupby("formula"):
        bars = [one for one in axes.collections if one.get_gid() == f"interval:{name}"]
        tops = [segment[1, 1] for one in bars for segment in one.get_segments()]
        assert sorted(tops) == sorted(part["delivered_epsilon"])
