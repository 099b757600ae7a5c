import os
from xml.etree import ElementTree

import matplotlib
import pandas as pd
import pytest
from example_table import results_table

from silodp.algorithms import ALGORITHMS, traits
from silodp.algorithms.base import Look
from silodp.report.figures import FIGURES, save
from silodp.report.figures.style import label, looks, sort_algorithms


def rows_of(kind):
    """Rows that a kind of figure draws: of the default reading, for both noises of calibrated noise as well."""
    readings = ("", "noise=calibrated") if kind == "both_noises" else ("",)
    return pd.concat([results_table(reading=reading) for reading in readings])


@pytest.mark.parametrize("kind", FIGURES)
def test_the_same_table_gives_the_same_bytes(kind, tmp_path):
    rows = rows_of(kind)
    # Of the same name, from which an SVG file has its ids.
    first = save(FIGURES[kind](rows, title="t"), tmp_path / "1" / "a")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):  # the user's own style must not
        second = save(FIGURES[kind](rows.sample(frac=1, random_state=1), title="t"), tmp_path / "2" / "a")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert sorted(os.listdir(tmp_path / "2")) == ["a.pdf", "a.png", "a.svg"]


def test_files_hold_their_fonts_and_no_date_and_keep_dots_in_their_name(tmp_path):
    pdf, png, svg = save(FIGURES["error_vs_epsilon"](results_table(), title="t"), tmp_path / "x_M2_R25_p=0.5")
    assert [path.name for path in (pdf, png, svg)] == [f"x_M2_R25_p=0.5.{one}" for one in ("pdf", "png", "svg")]
    text = pdf.read_bytes()
    # Every font is drawn in the file itself, with the table by which a reader finds its text.
    assert text.count(b"/Subtype /Type3") == text.count(b"/ToUnicode") > 0
    assert b"/Type1" not in text
    assert b"/TrueType" not in text
    assert b"CreationDate" not in text


def test_every_algorithm_brings_a_look_of_its_own_and_one_without_takes_a_spare_one_at_the_end(monkeypatch):
    own = {name: vars(kind)["look"] for name, kind in ALGORITHMS.items()}
    assert all(isinstance(one, Look) for one in own.values())
    assert sorted(one.place for one in own.values()) == list(range(len(own)))
    assert len({one[1:] for one in own.values()}) == len(own) - 1, "two share theirs: accelerated and shuffled MB-SGD"
    assert sort_algorithms(["zzz", *own, "aaa"]) == [*sorted(own, key=lambda name: own[name].place), "aaa", "zzz"]
    assert list(looks(["toy", "local_sgd"])) == ["local_sgd", "toy"]
    assert looks(["toy"])["toy"] not in (own[name] for name in ("minibatch_sgd", "local_sgd", "fedprox_spider"))
    assert traits("spider").look == own["fedprox_spider"]
    # What is built on another does not look like it.
    kind = type("Other", (ALGORITHMS["local_sgd"],), {"name": "other"})
    monkeypatch.setitem(ALGORITHMS.own, "other", kind)
    assert traits("other").look is None


def test_an_sdp_label_says_how_its_sums_were_made():
    assert label("sdp_prox_svrg") == "SDP Prox-SVRG (ideal sum)"
    assert label("sdp_prox_svrg", reading="evaluation=same, summation=shuffled") == "SDP Prox-SVRG (P_vec)"
    assert label("sdp_prox_svrg", reading=float("nan")) == "SDP Prox-SVRG (ideal sum)"
    assert label("prox_svrg", reading="summation=shuffled") == "ISRL-DP Prox-SVRG"


@pytest.mark.parametrize("kind", FIGURES)
def test_words_of_a_run_file_are_no_formulas(kind, tmp_path):
    """A title with a broken formula would stop the figures after all training."""
    title = "a lone $ $\\frac{ $$x_$ 100 $ to 200 $ \\alpha^{"
    (path,) = save(FIGURES[kind](rows_of(kind), title=title, ylabel=title), tmp_path / kind, ["svg"])
    shown = ElementTree.fromstring(path.read_text()).itertext()
    assert title in " ".join(text.strip() for text in shown)
