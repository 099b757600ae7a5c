import numpy as np
import pandas as pd
import pytest
from example_table import results_table

from silodp.report.figures import both_noises, error_vs_epsilon
from silodp.verdicts.comparisons import CALIBRATED


@pytest.fixture
def both():
    paper, calibrated = results_table(), results_table(reading=CALIBRATED)
    paper["delivered_epsilon"] *= 3
    calibrated["test_error_mean"] *= 1.1
    return pd.concat([paper, calibrated], ignore_index=True)


def lines(figure):
    return {line.get_label(): line for line in figure.axes[0].get_lines()}


def test_both_noises_stand_at_the_epsilon_they_claim(both):
    figure = both_noises(both, title="t")
    drawn = lines(figure)
    for text, reading in (("paper", ""), ("calibrated", CALIBRATED)):
        rows = both[(both["reading"] == reading) & (both["algorithm"] == "minibatch_sgd") & both["private"]]
        line = drawn[f"ISRL-DP MB-SGD, {text}"]
        np.testing.assert_allclose(line.get_xdata(), rows["epsilon"], rtol=0.1)  # moved aside, to be told apart
        np.testing.assert_array_equal(line.get_ydata(), rows["test_error_mean"])
    rings = {line.get_gid(): len(line.get_xdata()) for line in figure.axes[0].get_lines() if line.get_gid()}
    assert rings["NOT_CERTIFIED:minibatch_sgd-paper"] == 7
    assert rings["NOT_CERTIFIED:minibatch_sgd-calibrated"] == 0


def test_a_mark_is_full_half_or_empty_by_how_its_claim_stands(both):
    paper = both[both["reading"] == ""].reset_index(drop=True)
    paper["delivered_lower"] = 1.1 * paper["epsilon"]
    paper.loc[paper["epsilon"] == 0.75, "delivered_epsilon"] = 0.7
    paper.loc[paper["epsilon"] == 1.0, "delivered_lower"] = np.nan
    figure = error_vs_epsilon(paper, title="t")
    marks = {line.get_gid(): line for line in figure.axes[0].get_lines()}
    found = [marks[f"{word}:minibatch_sgd"] for word in ("KEPT", "NOT_CERTIFIED", "VIOLATED")]
    assert [len(one.get_xdata()) for one in found] == [1, 1, 5]
    assert [one.get_fillstyle() for one in found] == ["full", "left", "full"]
    assert found[0].get_markerfacecolor() == found[1].get_markerfacecolor() != found[2].get_markerfacecolor() == "white"
    assert "claim" not in error_vs_epsilon(results_table(), title="t").axes[0].get_xlabel().split("\n")[-1]
