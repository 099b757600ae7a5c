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
    hollow = {line.get_gid(): len(line.get_xdata()) for line in figure.axes[0].get_lines() if line.get_gid()}
    assert hollow["hollow:minibatch_sgd-paper"] == 7
    assert "hollow:minibatch_sgd-calibrated" not in hollow
    assert "hollow: more ε than claimed" in [text.get_text() for text in figure.legends[0].get_texts()]
    both["delivered_epsilon"] = both["epsilon"]
    keys = [text.get_text() for text in calibrated_vs_paper(both, title="t").legends[0].get_texts()]
    assert not any("hollow" in key for key in keys)


def test_what_is_not_finite_is_counted(both):
    both.loc[0, "delivered_epsilon"] = np.inf
    assert "left out: 1 points" in calibrated_vs_paper(both, title="t").texts[-1].get_text()


@pytest.mark.parametrize("draw", [calibrated_vs_paper, both_noises])
def test_a_table_without_calibrated_rows_is_refused(draw):
    with pytest.raises(ValueError, match=f"{draw.__name__} needs rows"):
        draw(results_table(), title="t")


def test_both_noises_stand_at_the_epsilon_they_claim(both):
    figure = both_noises(both, title="t")
    drawn = lines(figure)
    for text, reading in (("paper", ""), ("calibrated", CALIBRATED)):
        rows = both[(both["reading"] == reading) & (both["algorithm"] == "minibatch_sgd") & both["private"]]
        line = drawn[f"ISRL-DP MB-SGD, {text}"]
        np.testing.assert_allclose(line.get_xdata(), rows["epsilon"], rtol=0.1)  # moved aside, to be told apart
        np.testing.assert_array_equal(line.get_ydata(), rows["test_error_mean"])
    hollow = {line.get_gid(): len(line.get_xdata()) for line in figure.axes[0].get_lines() if line.get_gid()}
    assert hollow["hollow:minibatch_sgd-paper"] == 7
    assert "hollow:minibatch_sgd-calibrated" not in hollow


def test_error_vs_epsilon_rings_what_exceeds_its_claim(both):
    paper = both[both["reading"] == ""].reset_index(drop=True)
    paper.loc[paper["epsilon"] == 0.75, "delivered_epsilon"] = 0.7
    rings = {line.get_gid(): line for line in error_vs_epsilon(paper, title="t").axes[0].get_lines()}
    assert len(rings["over:minibatch_sgd"].get_xdata()) == 6
    figure = error_vs_epsilon(results_table(), title="t")
    assert not any("ringed" in text.get_text() for text in figure.legends[0].get_texts())
