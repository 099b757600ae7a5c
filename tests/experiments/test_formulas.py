"""What the papers' formulas deliver, against other ways to compute it."""

import math

import pytest

from silodp.experiments.formulas import PAPERS, RECORDS, formula_rows
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.report.figures.delivered_vs_claimed import draw_formulas


@pytest.fixture(scope="module")
def rows():
    return formula_rows()


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
    """Noise goes with 1/ε and the batch is fixed: √4 times the sensitivity delivers what twice the claim does."""
    plain, released = (
        of(rows, "nonconvex", "MB-SGD, moments form"),
        of(rows, "nonconvex", "released: tensors clipped one by one"),
    )
    for claim in (0.75, 1.5, 3.0, 6.0):
        assert released[claim] == pytest.approx(plain[2 * claim], rel=1e-3)


def test_a_clipped_mean_is_no_worse_than_one_that_turns_in_every_round(rows):
    found = rows[rows["formula"] == "released: only the mean clipped"]
    for row in found.to_dict("records"):
        every_round = gaussian_epsilon(row["delta"], math.sqrt(row["R"]) / row["noise_multiplier"])
        assert 10 * row["claimed_epsilon"] < row["delivered_epsilon"] <= every_round


@pytest.mark.parametrize("paper", PAPERS)
def test_figure_has_a_line_a_formula_and_hollow_points_over_the_claim(rows, paper):
    own = rows[rows["paper"] == paper]
    figure = draw_formulas(own, title="t")
    lines = figure.axes[0].get_lines()
    for name in dict.fromkeys(own["formula"]):
        line = next(one for one in lines if one.get_label() == name)
        assert list(line.get_ydata()) == list(own[own["formula"] == name]["delivered_epsilon"])
    hollow = sum(len(one.get_xdata()) for one in lines if str(one.get_gid()).startswith("hollow:"))
    assert hollow == (~own["holds"]).sum()
