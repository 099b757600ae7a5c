import numpy as np
import pandas as pd
import pytest
from example_table import BASELINES, EPSILONS, PRIVATE, results_table
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from silodp.report.figures import error_vs_epsilon
from silodp.report.figures.slices import with_intervals
from silodp.report.figures.style import in_legend, label
from silodp.report.figures.svg import gid_texts, note_of

DRAWN = ("minibatch_sgd", "local_sgd", "spider")
SPIDERS = ("minibatch_sgd", "fedprox_spider", "fed_spider")
ERRORS = ["test_error_mean", "test_error_p05", "test_error_p95"]


def line(figure, text):
    found = [line for line in figure.axes[0].get_lines() if line.get_label() == text]
    assert len(found) == 1
    return found[0]


def artist(figure, gid):
    return next(child for child in figure.axes[0].get_children() if child.get_gid() == gid)


def notes(figure):
    return note_of(figure).replace("\u00a0", " ")


def lightness(colour):
    """CIE L*, 0 to 100: what a grey print keeps of a colour."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    y = float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


@pytest.mark.parametrize(("private", "drawn"), [(SPIDERS, SPIDERS), (PRIVATE, DRAWN)])
def test_every_row_is_drawn(private, drawn):
    """The two SPIDERs stand in for the better of them only where that is missing."""
    table = results_table(private)
    figure = error_vs_epsilon(table, title="t")
    for name in drawn:
        rows = table[table["private"] & (table["algorithm"] == name)]
        np.testing.assert_array_equal(line(figure, label(name)).get_ydata(), rows["test_error_mean"])
    for name in BASELINES:
        row = table[~table["private"] & (table["algorithm"] == name)].iloc[0]
        assert set(line(figure, label(name, private=False)).get_ydata()) == {row["test_error_mean"]}
        band = artist(figure, f"band:{name}-plain").get_window_extent()
        low, high = figure.axes[0].transData.inverted().transform([(0, band.y0), (0, band.y1)])[:, 1]
        assert (low, high) == pytest.approx((row["test_error_p05"], row["test_error_p95"]))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    said = "better of FedProx-SPIDER and Fed-SPIDER" in notes(figure)
    assert ("SPIDER (better of 2)" in texts) == said == ("spider" in drawn)
    assert texts == [in_legend(label(name)) for name in drawn]
    labels = {one.get_label() for one in figure.axes[0].get_lines()}
    assert labels.isdisjoint(label(name) for name in set(private) - set(drawn))
    assert figure.axes[0].get_xlabel().endswith("- - no noise")


def test_bars_reach_from_the_5th_to_the_95th_percentile_even_beside_the_mean(table):
    table = table[table["algorithm"] == "minibatch_sgd"].reset_index(drop=True)
    table.loc[0, "test_error_mean"] = 2 * table.loc[0, "test_error_p95"]  # one wild trial of many
    axes = error_vs_epsilon(table, title="t").axes[0]
    bars = np.array(axes.containers[0].lines[2][0].get_segments())
    np.testing.assert_allclose(bars[:, :, 1], table.loc[table["private"], ["test_error_p05", "test_error_p95"]])


def test_the_epsilon_axis_is_to_scale_with_a_tick_at_every_epsilon(table):
    axes = error_vs_epsilon(table, title="t").axes[0]
    assert axes.get_xscale() == "log"
    np.testing.assert_allclose(axes.get_xticks(), EPSILONS)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.75", "1", "1.5", "3", "6", "12", "18"]
    # A label that would touch the one before is left out.
    near = error_vs_epsilon(results_table(epsilons=(0.75, 1.5, 3.0, 6.0, 12.0, 12.5, 18.0)), title="t").axes[0]
    assert [tick.get_text() for tick in near.get_xticklabels()] == ["0.75", "1.5", "3", "6", "12", "", "18"]


def test_an_algorithm_that_stretches_the_axis_leaves_the_others_a_panel_of_their_own(table):
    assert len(error_vs_epsilon(table, title="t").axes) == 1
    table.loc[table["private"] & (table["algorithm"] == "local_sgd"), ERRORS] *= 4
    whole, zoom = error_vs_epsilon(table, title="t").axes
    assert "Without ISRL-DP Local SGD" in zoom.get_title(loc="left")
    drawn = {artist.get_label() for artist in zoom.get_lines()}
    assert "ISRL-DP MB-SGD" in drawn
    assert "ISRL-DP Local SGD" not in drawn
    assert {label(name) for name in DRAWN} <= {artist.get_label() for artist in whole.get_lines()}
    assert zoom.get_ylim()[1] < whole.get_ylim()[1] / 2
    assert zoom.get_xlim() == whole.get_xlim()


def with_trials(table, shifts):
    """The table with intervals over trials, whose errors differ from each mean by the shifts."""
    keys, means = table[["algorithm", "reading", "M", "R", "epsilon"]], table["test_error_mean"]
    reported = pd.concat([keys.assign(trial=i, test_error=means + shift) for i, shift in enumerate(shifts)])
    return with_intervals(table.assign(trials=len(shifts)), reported)


def test_few_trials_have_intervals_of_the_mean_and_the_note_says_how_many(table):
    assert "10 trials a point. Bars and bands: 5th to 95th percentile" in notes(error_vs_epsilon(table, title="t"))
    assert "little more than the extremes" in notes(error_vs_epsilon(table.assign(trials=5), title="t"))
    shifts = [-0.02, -0.01, 0.0, 0.01, 0.02]
    for few in (table.assign(trials=4), with_trials(table, shifts[:4])):
        figure = error_vs_epsilon(few, title="t")
        assert "4 trials a point, too few for bars" in notes(figure)
        assert np.isnan(figure.axes[0].containers[0].lines[2][0].get_segments()).all()
    dots = [one.get_ydata() for one in figure.axes[0].get_lines() if one.get_gid() == "trials:minibatch_sgd"]
    np.testing.assert_allclose(dots, np.add.outer(line(figure, "ISRL-DP MB-SGD").get_ydata(), shifts[:4]))
    figure = error_vs_epsilon(with_trials(table, shifts), title="t")
    assert "5 trials a point. Bars and bands: 95 % intervals of the mean" in notes(figure)
    (low, high), *_ = [bar[:, 1] for bar in figure.axes[0].containers[0].lines[2][0].get_segments()]
    # Student's t with 4 degrees of freedom: 2.776 · 0.0158/√5.
    assert (high - low) / 2 == pytest.approx(2.776445 * np.sqrt(0.00025 / 5), rel=1e-5)


def test_a_diverged_point_is_crossed_and_named(table):
    table.loc[[0, 1], "diverged"] = [3, 1]
    figure = error_vs_epsilon(table, title="t")
    crosses = artist(figure, "diverged:minibatch_sgd")
    np.testing.assert_array_equal(crosses.get_ydata(), table.loc[[0, 1], "test_error_mean"])
    assert crosses.get_marker() == "x"
    assert "Crossed: 4 of 20 trials diverged there (ISRL-DP MB-SGD)." in notes(figure)
    assert "trials diverged" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert "diverged:local_sgd" not in [child.get_gid() for child in figure.axes[0].get_children()]


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_mean_that_is_not_finite_stays_on_the_upper_edge(table, value):
    table.loc[[2, len(table) - 1], ERRORS] = value
    figure = error_vs_epsilon(table, title="t")
    edge = artist(figure, "beyond:minibatch_sgd")
    x = line(figure, "ISRL-DP MB-SGD").get_xdata()
    np.testing.assert_array_equal(edge.get_xdata(), x[[2]])
    assert 0.9 < edge.get_ydata()[0] < 1
    assert "upper edge: ISRL-DP MB-SGD at ε = 1.5; Local SGD (non-private)." in notes(figure)
    assert line(figure, "Local SGD (non-private)") is not None


def test_the_note_counts_how_claims_stand_and_gives_the_interval_of_the_farthest(table):
    assert "Claims: 21 kept." in notes(error_vs_epsilon(table, title="t"))
    table["delivered_lower"] = np.nan
    table.loc[[8, 9], ["delivered_lower", "delivered_epsilon"]] = [[np.nan, 1.01], [1.51, 18534.2]]
    note = notes(error_vs_epsilon(table, title="t", note="Its own words."))
    assert note.startswith("Its own words.")
    # Ends are rounded outwards.
    farthest = "Farthest above: true ε in [1.51, 18535] for 1.5 (ISRL-DP Local SGD)."
    assert f"Claims: 19 kept, 1 not certified, 1 violated. {farthest}" in note


@pytest.mark.parametrize("private", [DRAWN, ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider", "noisy_gd")])
def test_grey_prints_tell_lines_apart(private):
    table = results_table(private)
    figure = error_vs_epsilon(table, title="t")
    lines = [line(figure, label(name)) for name in private]
    markers = {artist(figure, f"KEPT:{name}").get_marker() for name in private}
    grey = sorted(lightness(one.get_color()) for one in lines)
    assert min(np.diff(grey)) >= 10
    assert max(grey) <= 75  # against white paper, L* = 100
    assert len(markers) == len(lines)
    assert len({str(one._dash_pattern) for one in lines}) == len(lines)
    baselines = [line(figure, label(name, False)) for name in BASELINES]
    assert abs(np.diff([lightness(one.get_color()) for one in baselines])[0]) >= 20


def test_legend_notes_and_title_are_on_the_page_and_off_the_axes(table):
    table["diverged"] = 1
    table["delivered_epsilon"] *= 2
    long = "an_algorithm_with_a_name_that_takes_room"
    table["algorithm"] = table["algorithm"].replace({"minibatch_sgd": long})
    title = "digits_mlp · M = 12, R = 50 · a reading with a name that goes on for long"
    ylabel = "test error relative to predicting the training mean"
    figure = error_vs_epsilon(table, title=title, ylabel=ylabel, note="n")
    # An artist without a point has its box in a corner.
    for artist in [one for one in figure.axes[0].get_lines() if not len(one.get_xdata())]:
        artist.remove()
    figure.canvas.draw()
    renderer, page = figure.canvas.get_renderer(), figure.bbox
    axes = figure.axes[0].get_tightbbox(renderer)
    legend = figure.legends[0].get_window_extent(renderer)
    # Notes are said beside the picture.
    assert figure.texts == []
    for box in (axes, legend):
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    assert not legend.overlaps(axes)


@settings(deadline=None, max_examples=6)
@given(
    epsilons=st.lists(st.floats(0.01, 1e4), min_size=1, max_size=9, unique=True),
    private=st.lists(st.from_regex(r"[a-z]{1,9}(_[a-z]{1,9})?", fullmatch=True), min_size=1, max_size=6, unique=True),
)
def test_any_algorithms_at_any_epsilon_are_all_drawn(epsilons, private):
    table = results_table(tuple(private), (), tuple(epsilons))
    axes = error_vs_epsilon(table, title="t").axes[0]
    points = sum(len(one.get_xdata()) for one in axes.get_lines() if str(one.get_label()).startswith("ISRL-DP"))
    assert points == len(table)


def test_points_at_an_end_of_their_grid_are_named_and_said(table):
    private = table["algorithm"].eq("minibatch_sgd") & table["private"]
    table["edge"] = ""
    table.loc[table.index[private][:2], "edge"] = ["lowest stepsize; highest clip", ""]
    figure = error_vs_epsilon(table, title="t")
    assert "a better one may lie beyond: ISRL-DP MB-SGD at 1 of 7 ε." in notes(figure)
    said = gid_texts(figure)["KEPT:minibatch_sgd"]
    assert said[0].endswith("; at the lowest step size and highest clip of its grid")
    assert "of its grid" not in said[1]
    assert "end of its grid" not in notes(error_vs_epsilon(table.assign(edge=""), title="t"))
