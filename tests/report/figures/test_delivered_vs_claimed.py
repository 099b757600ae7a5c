import numpy as np
import pandas as pd
import pytest

from silodp.report.figures import FIGURES, delivered_vs_claimed, save


def drawn(figure, text):
    return next(line for line in figure.axes[0].get_lines() if line.get_label() == text)


def test_every_private_row_is_drawn_beside_the_diagonal(table):
    figure = delivered_vs_claimed(table, title="t")
    axes = figure.axes[0]
    for name, text in (("minibatch_sgd", "ISRL-DP MB-SGD"), ("spider", "ISRL-DP SPIDER")):
        rows = table[table["private"] & (table["algorithm"] == name)]
        np.testing.assert_array_equal(drawn(figure, text).get_xdata(), rows["epsilon"])
        np.testing.assert_array_equal(drawn(figure, text).get_ydata(), rows["delivered_epsilon"])
    x, y = drawn(figure, "delivered = claimed").get_data()
    np.testing.assert_array_equal(x, y)
    private = table[table["private"]]
    left, right = axes.get_xlim()
    assert left < private["epsilon"].min() < private["epsilon"].max() < right
    low, high = axes.get_ylim()
    assert low <= min(left, private["delivered_epsilon"].min())
    assert high >= max(right, private["delivered_epsilon"].max())
    assert not any("exceeds" in text.get_text() for text in figure.texts)


def test_a_broken_claim_is_hollow_and_an_unbounded_one_on_the_edge(table):
    table.loc[[0, 1], "delivered_epsilon"] = [0.9, np.inf]
    figure = delivered_vs_claimed(table, title="t")
    by_gid = {line.get_gid(): line for line in figure.axes[0].get_lines()}
    assert by_gid["hollow:minibatch_sgd"].get_data()[1].tolist() == [0.9]
    assert by_gid["beyond:minibatch_sgd"].get_data()[0].tolist() == [1.0]
    said = figure.texts[-1].get_text().replace("\n", " ")
    assert "Hollow: the delivered ε exceeds the claim; without any bound for ISRL-DP MB-SGD" in said
    assert "at worst 0.900 for 0.75 (ISRL-DP MB-SGD)" in said


@pytest.mark.parametrize("kind", ["delivered_vs_claimed", "error_vs_delivered"])
def test_a_table_without_private_rows_is_refused(table, kind):
    with pytest.raises(ValueError, match=f"{kind} needs private rows"):
        FIGURES[kind](table[~table["private"]], title="t")


@pytest.mark.parametrize("kind", ["delivered_vs_claimed", "error_vs_delivered", "calibrated_vs_paper"])
@pytest.mark.parametrize("every", [False, True])
def test_a_delivered_epsilon_of_0_is_drawn_on_the_edge_and_named(table, kind, every, tmp_path):
    """At a small claim and a large δ no noise at all may be private: `epsilons: [.01, 1], delta: .01` trains so."""
    zero = table["private"] if every else table["private"] & (table["epsilon"] == 0.75)
    table.loc[zero, "delivered_epsilon"] = 0.0
    if kind == "calibrated_vs_paper":
        table = pd.concat([table, table.assign(reading="noise=calibrated")])
    figure = FIGURES[kind](table, title="t")
    names = {str(line.get_gid()) for axes in figure.axes for line in axes.get_lines()}
    assert any(name.startswith("zero:minibatch_sgd") for name in names)
    said = figure.texts[-1].get_text().replace("\n", " ")
    edge = "lower" if kind == "delivered_vs_claimed" else "left"
    assert f"Delivered ε = 0 (δ alone covers it), on the {edge} edge: ISRL-DP MB-SGD" in said
    (path,) = save(figure, tmp_path / "a", ["svg"])
    assert "delivered 0" in path.read_text()
