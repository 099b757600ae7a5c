"""SVG files of figures: small, alone in their ids, with values on their points."""

from xml.etree import ElementTree as tree

import numpy as np
import pandas as pd
import pytest
from example_table import results_table

from silodp.report.cells import cells_of
from silodp.report.figures import error_vs_epsilon, save
from silodp.report.figures.paired_differences import paired_differences
from silodp.report.figures.style import styled
from silodp.report.figures.svg import panels, svg_text

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    table = results_table()
    table.loc[2, ["test_error_mean", "test_error_p05", "test_error_p95"]] = np.inf
    (path,) = save(error_vs_epsilon(table, title="A & B"), tmp_path_factory.mktemp("svg") / "x_M2_R25", ["svg"])
    return tree.parse(path).getroot(), path


def points(root, series):
    return [
        use.findtext(f"{SVG}title")
        for group in root.iter(f"{SVG}g")
        if group.get("data-series") == series
        for use in group.iter(f"{SVG}use")
        if use.find(f"{SVG}title") is not None
    ]


def test_every_point_says_its_values(drawn):
    root, _ = drawn
    said = points(root, "local_sgd")
    assert len(said) == 7
    table = results_table()
    row = table[table["private"] & (table["algorithm"] == "local_sgd")].iloc[2]
    assert said[2].startswith(f"ISRL-DP Local SGD at ε = 1.5: {row['test_error_mean']:.3f} (")
    assert "true ε in [0, 1.35]" in said[2]


def test_files_are_small_and_hold_no_date_and_no_id_of_another_figure(drawn, tmp_path):
    root, path = drawn
    text = path.read_text(encoding="utf-8")
    assert len(text) < 40_000
    assert sum(1 for _ in root.iter()) < 400
    assert "metadata" not in text
    ids = {one.get("id") for one in root.iter()} - {None}
    used = {one.get(LINK, "#")[1:] for one in root.iter()} - {""}
    assert used
    assert used <= ids
    (other,) = save(error_vs_epsilon(results_table(), title="t"), tmp_path / "y_M2_R25", ["svg"])
    assert ids.isdisjoint({one.get("id") for one in tree.parse(other).getroot().iter()})


def test_a_figure_of_panels_flows_as_a_picture_for_each_and_loses_nothing(drawn):
    assert panels(drawn[1].read_text(encoding="utf-8")).count("<svg") == 1
    pair = {"experiment": "wbcd_mlp", "reading": "", "first": "spider", "second": "minibatch_sgd", "trials": 10}
    rows = [pair | {"M": 2, "R": R, "epsilon": 1.0, "difference": 0, "low": -1, "high": 1} for R in (25, 50, 75)]
    figure = paired_differences(cells_of(pd.DataFrame(rows).assign(outcome="")), title="Title")
    with styled():
        whole = svg_text(figure, "x")
    shared, *pictures = tree.fromstring(f"<div>{panels(whole)}</div>")
    assert [picture.get("class") for picture in (shared, *pictures)] == ["shared", None, None, None, None]
    said = ["".join(picture.itertext()) for picture in pictures]
    assert ["50" in text for text in said] == [False, True, False, False]
    assert "open: 3 of 3" in "".join(pictures[3].itertext())
    assert len({picture.get("style") for picture in pictures[:3]}) == 1, "panels are equally wide"
    words = sorted("".join(one.itertext()) for one in tree.fromstring(whole).iter(f"{SVG}text"))
    assert sorted("".join(t.itertext()) for one in (shared, *pictures) for t in one.iter(f"{SVG}text")) == words
