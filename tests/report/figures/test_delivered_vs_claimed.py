import numpy as np
import pytest

from silodp.privacy.standing import Standing
from silodp.report.figures import FIGURES, delivered_vs_claimed, save
from silodp.report.figures.svg import note_of


def bars(figure, name):
    """The ends of the bars of one curve, and whether they are dotted."""
    found = {"-": [], ":": []}
    for one in figure.axes[0].collections:
        if one.get_gid() == f"interval:{name}":
            found[":" if dotted(one) else "-"] += [segment[:, 1].tolist() for segment in one.get_segments()]
    return found


def dotted(line):
    return line.get_linestyle()[0][1] is not None


def marks(figure, name):
    """Word of a claim → heights of its marks."""
    lines = {str(line.get_gid()): line for line in figure.axes[0].get_lines()}
    return {word: lines[f"{word.name}:{name}"].get_ydata().tolist() for word in Standing}


def test_every_private_row_is_a_bar_between_its_ends_beside_the_diagonal(table):
    table["delivered_lower"] = 0.8 * table["epsilon"]
    figure = delivered_vs_claimed(table, title="t")
    # Of a family each member has its curve.
    for name in ("minibatch_sgd", "fedprox_spider", "fed_spider"):
        rows = table[table["private"] & (table["algorithm"] == name)]
        wanted = rows[["delivered_lower", "delivered_epsilon"]].to_numpy()
        np.testing.assert_allclose(bars(figure, name)["-"], wanted)
        assert bars(figure, name)[":"] == []
        assert marks(figure, name)[Standing.KEPT] == rows["delivered_epsilon"].tolist()
    agree = next(line for line in figure.axes[0].get_lines() if line.get_color() == "black")
    np.testing.assert_array_equal(*agree.get_data())
    assert "black line: as claimed" in figure.axes[0].get_ylabel()
    assert figure.axes[0].get_xlabel() == "claimed ε"


def test_a_mark_stands_where_the_bar_is_nearest_to_the_claim(table):
    ends = ["delivered_lower", "delivered_epsilon"]
    table["delivered_lower"] = 0.5 * table["epsilon"]
    # Claims 0.75, 1, 1.5 and 3.
    table.loc[[0, 1, 2, 3], ends] = [[0.8, 0.9], [0.9, 1.2], [np.nan, np.inf], [np.nan, 2.0]]
    figure = delivered_vs_claimed(table, title="t")
    found = marks(figure, "minibatch_sgd")
    assert found[Standing.VIOLATED] == [0.8]
    assert found[Standing.NOT_CERTIFIED] == [1.0, 1.5]
    bottom, top = figure.axes[0].get_ylim()
    np.testing.assert_allclose(bars(figure, "minibatch_sgd")[":"], [[bottom, top], [bottom, 2.0]])
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys[-1] == "open to 0: no lower end"
    assert figure.axes[0].get_xlabel().endswith("claim ● kept, ◐ not certified, ○ violated")
    said = note_of(figure).replace("\u00a0", " ")
    assert "Claims: 25 kept, 2 not certified, 1 violated." in said
    assert "Farthest above: true ε in [0.800, 0.900] for 0.75 (ISRL-DP MB-SGD)." in said


@pytest.mark.parametrize("kind", ["delivered_vs_claimed", "error_vs_delivered"])
@pytest.mark.parametrize("every", [False, True])
def test_a_true_epsilon_of_0_is_drawn_on_the_edge_and_named(table, kind, every, tmp_path):
    """At a small claim and a large δ no noise at all may be private: `epsilons: [.01, 1], delta: .01` trains so."""
    zero = table["private"] if every else table["private"] & (table["epsilon"] == 0.75)
    table.loc[zero, "delivered_epsilon"] = 0.0
    figure = FIGURES[kind](table, title="t")
    axes = figure.axes[0]
    edge = axes.get_ylim()[0] if kind == "delivered_vs_claimed" else axes.get_xlim()[0]
    places = [
        np.r_[line.get_data()] for line in axes.get_lines() if str(line.get_gid()).startswith("KEPT:minibatch_sgd")
    ]
    assert any(np.isclose(place, edge).any() for place in places)
    said = note_of(figure).replace("\u00a0", " ")
    edge = "lower" if kind == "delivered_vs_claimed" else "left"
    assert f"True ε = 0 (δ alone covers it), on the {edge} edge: ISRL-DP MB-SGD" in said
    (path,) = save(figure, tmp_path / "a", ["svg"])
    assert "true ε in [0, 0]" in path.read_text()
