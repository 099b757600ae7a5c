import itertools

import numpy as np
import pandas as pd
import pytest
from example_table import results_table

from silodp.report.figures import both_noises, calibrated_vs_paper, error_vs_epsilon
from silodp.verdicts.comparisons import CALIBRATED


@pytest.fixture
def both():
    paper, calibrated = results_table(), results_table(reading=CALIBRATED)
    paper["delivered_epsilon"] *= 3
    calibrated["test_error_mean"] *= 1.1
    return pd.concat([paper, calibrated], ignore_index=True)


def lines(figure):
    return {line.get_label(): line for line in figure.axes[0].get_lines()}


def test_both_noises_stand_at_the_epsilon_they_deliver(both):
    drawn = lines(calibrated_vs_paper(both, title="t"))
    for text, reading in (("paper", ""), ("calibrated", CALIBRATED)):
        rows = both[(both["reading"] == reading) & (both["algorithm"] == "minibatch_sgd") & both["private"]]
        line = drawn[f"ISRL-DP MB-SGD, {text}"]
        np.testing.assert_array_equal(line.get_xdata(), rows["delivered_epsilon"])
        np.testing.assert_array_equal(line.get_ydata(), rows["test_error_mean"])


def test_points_over_their_claim_are_hollow(both):
    figure = calibrated_vs_paper(both, title="t")
    hollow = [line for line in figure.axes[0].get_lines() if line.get_gid() == "over:minibatch_sgd"]
    assert [len(line.get_xdata()) for line in hollow] == [7]  # all of the paper's, none of the calibrated


def test_hollow_points_are_explained_where_there_are_some(both):
    keys = [text.get_text() for text in calibrated_vs_paper(both, title="t").legends[0].get_texts()]
    assert "hollow: more ε than claimed" in keys
    both["delivered_epsilon"] = both["epsilon"]
    keys = [text.get_text() for text in calibrated_vs_paper(both, title="t").legends[0].get_texts()]
    assert not any("hollow" in key for key in keys)


@pytest.mark.parametrize("factor", [1, 400])
def test_labels_of_the_epsilon_axis_do_not_touch(both, factor):
    """Also where the formulas deliver 18 · 400."""
    both.loc[both["reading"] == "", "delivered_epsilon"] *= np.linspace(1, factor, (both["reading"] == "").sum())
    figure = calibrated_vs_paper(both, title="t")
    figure.canvas.draw()
    axes = figure.axes[0]
    left, right = axes.get_xlim()
    shown = [t for t in axes.get_xticklabels() if t.get_text() and left <= t.get_position()[0] <= right]
    boxes = sorted((text.get_window_extent() for text in shown), key=lambda box: box.x0)
    assert len(boxes) >= 4
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_what_is_not_finite_is_counted(both):
    both.loc[0, "delivered_epsilon"] = np.inf
    assert "left out: 1 points" in calibrated_vs_paper(both, title="t").texts[-1].get_text()


def test_a_table_without_calibrated_rows_is_refused():
    with pytest.raises(ValueError, match="needs rows"):
        calibrated_vs_paper(results_table(), title="t")


def test_both_noises_stand_at_the_epsilon_they_claim(both):
    figure = both_noises(both, title="t")
    drawn = lines(figure)
    for text, reading in (("paper", ""), ("calibrated", CALIBRATED)):
        rows = both[(both["reading"] == reading) & (both["algorithm"] == "minibatch_sgd") & both["private"]]
        line = drawn[f"ISRL-DP MB-SGD, {text}"]
        np.testing.assert_allclose(line.get_xdata(), rows["epsilon"], rtol=0.1)  # moved aside, to be told apart
        np.testing.assert_array_equal(line.get_ydata(), rows["test_error_mean"])
    hollow = [line for line in figure.axes[0].get_lines() if line.get_gid() == "over:minibatch_sgd"]
    assert sorted(len(line.get_xdata()) for line in hollow) == [7]


def test_both_noises_need_both():
    with pytest.raises(ValueError, match="both_noises needs rows"):
        both_noises(results_table(), title="t")


def test_error_vs_epsilon_rings_what_exceeds_its_claim(both):
    paper = both[both["reading"] == ""].reset_index(drop=True)
    paper.loc[paper["epsilon"] == 0.75, "delivered_epsilon"] = 0.7
    rings = {line.get_gid(): line for line in error_vs_epsilon(paper, title="t").axes[0].get_lines()}
    assert len(rings["over:minibatch_sgd"].get_xdata()) == 6
    figure = error_vs_epsilon(results_table(), title="t")
    assert not any("ringed" in text.get_text() for text in figure.legends[0].get_texts())
