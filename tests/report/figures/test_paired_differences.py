"""The forest plot: every comparison is drawn once, at its place, with what its interval says."""

import numpy as np
import pandas as pd

from silodp.report.figures.paired_differences import EQUAL, FIRST, SECOND, UNDECIDED, outcomes, paired_differences
from silodp.report.figures.svg import note_of
from silodp.verdicts.comparisons import SAME


def comparisons(settings=((2, 25), (12, 50))):
    pair = {"experiment": "e", "reading": "", "first": "spider", "second": "minibatch_sgd", "trials": 10}
    ends = {0.5: (-0.03, -0.01), 1.0: (0.01, 0.03), 2.0: (-0.004, 0.003), 4.0: (-0.01, 0.02)}
    rows = [
        pair | {"M": M, "R": R, "epsilon": epsilon, "difference": (low + high) / 2, "low": low, "high": high}
        for M, R in settings
        for epsilon, (low, high) in ends.items()
    ]
    return pd.DataFrame(rows).assign(tolerance=0.005)


def test_what_an_interval_says():
    said = outcomes(comparisons())
    assert list(said[:4]) == [FIRST, SECOND, EQUAL, UNDECIDED]
    assert set(outcomes(comparisons().assign(outcome=SAME))) == {SAME}
    # Inside the tolerance nobody is better, even beyond chance.
    assert set(outcomes(comparisons().assign(low=0.001, high=0.004))) == {EQUAL}
    open_ended = comparisons().assign(low=np.nan, high=np.nan)
    assert set(outcomes(open_ended)) == {UNDECIDED}


def test_every_comparison_is_a_point_of_its_setting_and_colours_tell_outcomes():
    rows = comparisons()
    figure = paired_differences(rows, title="t")
    assert len(figure.axes) == 2
    for axes, (_, group) in zip(figure.axes, rows.groupby(["M", "R"]), strict=True):
        drawn = {line.get_gid().split(":")[1]: line for line in axes.get_lines() if ":" in str(line.get_gid())}
        assert set(drawn) == {FIRST, SECOND, EQUAL, UNDECIDED}
        differences = dict(zip(outcomes(group), group["difference"], strict=True))
        assert {name: line.get_xdata()[0] for name, line in drawn.items()} == differences
        assert (drawn[FIRST].get_marker(), drawn[SECOND].get_marker()) == ("<", ">")
        assert drawn[EQUAL].get_color() == drawn[UNDECIDED].get_color() == "#6e6e6e"
        assert axes.get_xlabel() == "← SPIDER better | MB-SGD better →"
        assert [text.get_text() for text in axes.get_yticklabels()] == ["ε = 0.5", "1", "2", "4"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"SPIDER (better of 2) ahead (2 of 8)", "MB-SGD ahead (2 of 8)"} < set(legend)
    assert note_of(figure) == "SPIDER: at each ε the better of FedProx-SPIDER and Fed-SPIDER by training loss."
    assert "grey: tolerance of ± 0.005" in legend


def test_text_stays_on_the_page_and_panels_off_each_other():
    figure = paired_differences(comparisons([(M, 25) for M in range(2, 9)]), title="t")
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    boxes += [text.get_window_extent(renderer) for text in (figure.legends[0], *figure.texts)]
    for place, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:place])


def test_panels_are_named_by_titles_and_settings_in_words():
    figure = paired_differences(comparisons().assign(experiment="wbcd_mlp"), title="t")
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    assert titles == [f"Breast cancer M = {M}, R = {R}" for M, R in ((2, 25), (12, 50))]
