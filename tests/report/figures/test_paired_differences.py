"""The forest plot: every comparison is drawn once, at its place, with what its interval says."""

import pandas as pd

from silodp.report.cells import PUBLISHED, cells_of
from silodp.report.figures.paired_differences import paired_differences
from silodp.report.figures.svg import note_of
from silodp.verdicts.comparisons import AHEAD, BEHIND
from silodp.verdicts.decided import OPEN, WITHIN


def comparisons(settings=((2, 25), (12, 50)), experiment="mnist_mlp"):
    pair = {
        "experiment": experiment,
        "outcome": "",
        "reading": "",
        "first": "spider",
        "second": "minibatch_sgd",
        "trials": 10,
    }
    ends = {0.5: (-0.03, -0.01), 1.0: (0.01, 0.03), 2.0: (-0.004, 0.003), 4.0: (-0.01, 0.02)}
    rows = [
        pair | {"M": M, "R": R, "epsilon": epsilon, "difference": (low + high) / 2, "low": low, "high": high}
        for M, R in settings
        for epsilon, (low, high) in ends.items()
    ]
    return cells_of(pd.DataFrame(rows))


def test_every_comparison_is_a_point_of_its_setting_and_colours_tell_outcomes():
    rows = comparisons()
    figure = paired_differences(rows, title="t")
    assert len(figure.axes) == 2
    for axes, (_, group) in zip(figure.axes, rows.groupby(["M", "R"]), strict=True):
        drawn = {line.get_gid().split(":")[1]: line for line in axes.get_lines() if ":" in str(line.get_gid())}
        assert set(drawn) == {AHEAD, BEHIND, WITHIN, OPEN}
        differences = dict(zip(group["outcome"], group["difference"], strict=True))
        assert {name: line.get_xdata()[0] for name, line in drawn.items()} == differences
        assert (drawn[AHEAD].get_marker(), drawn[BEHIND].get_marker()) == ("<", ">")
        assert drawn[WITHIN].get_color() == drawn[OPEN].get_color() == "#6e6e6e"
        assert axes.get_xlabel() == "← SPIDER better | MB-SGD better →"
        assert [text.get_text() for text in axes.get_yticklabels()] == ["ε = 0.5", "1", "2", "4"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"SPIDER (better of 2) better: 2 (2) of 8", "MB-SGD better: 2 (2) of 8", "alike: 2 of 8"} < set(legend)
    assert note_of(figure) == "SPIDER: at each ε the better of FedProx-SPIDER and Fed-SPIDER by training loss."
    assert any("within the margin of 0.005\n" in text for text in legend)


def test_a_margin_is_told_where_any_data_set_has_one():
    for margins, told in (((0.0, 0.005), True), ((0.005, 0.005), True), ((0.0, 0.0), False)):
        rows = comparisons()
        figure = paired_differences(rows.assign(margin=[margins[M == 12] for M in rows["M"]]), title="t")
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert any(text.startswith("grey: within the margin of ") for text in legend) == told


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


def test_panels_have_one_range_and_0_says_equal_unless_one_would_vanish():
    near = pd.concat([comparisons(), comparisons(experiment="wbcd_mlp")])
    far = near.assign(
        **{
            name: near[name].where(near["experiment"] == "mnist_mlp", 9 * near[name])
            for name in ("low", "high", "difference")
        }
    )
    for rows, ranges in ((near, 1), (far, 2)):
        axes = paired_differences(rows, title="t").axes
        assert len({panel.get_xlim() for panel in axes}) == ranges
        axes[0].figure.canvas.draw()
        assert all("equal" in [text.get_text() for text in panel.get_xticklabels()] for panel in axes)


def test_panels_are_named_by_titles_and_settings_in_words():
    figure = paired_differences(comparisons(experiment="wbcd_mlp"), title="t")
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    assert titles == [f"Breast cancer M = {M}, R = {R}" for M, R in ((2, 25), (12, 50))]


def test_published_cells_beside_decided_ones_are_marked_and_counted_apart():
    rows = comparisons()
    mixed = rows.assign(decided=rows["M"] == 2)
    figure = paired_differences(mixed, title="t")
    assert [axes.get_title(loc="left").endswith("*") for axes in figure.axes] == [False, True]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"MB-SGD better: 1 (1) of 4, 1 (1) of 4*", "alike: 1 of 4, 1 of 4*"} < set(legend)
    for some, said in ((mixed, f"by fresh trials; *: {PUBLISHED}."), (rows, f"{PUBLISHED[1:]}.")):
        assert paired_differences(some, title="t").texts[1].get_text().endswith(said)
    assert "*" not in "".join(axes.get_title(loc="left") for axes in paired_differences(rows, title="t").axes)
