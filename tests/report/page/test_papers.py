"""What a paper says about its figure, beside what the paired comparisons of the run say."""

import pandas as pd

from silodp.report.cells import PUBLISHED, cells_of
from silodp.report.page.figure_list import Page
from silodp.report.page.papers import paper_sentence
from silodp.report.paper_figures import paper_figures


def test_a_papers_words_stand_beside_the_comparisons_of_its_setting():
    ends = {0.75: (0.01, 0.02), 1.0: (-0.03, -0.02), 3.0: (-0.01, 0.01), 18.0: (0.02, 0.04)}
    cell = {"experiment": "mnist_mlp", "reading": "", "M": 25, "R": 25, "first": "spider", "second": "minibatch_sgd"}
    numbers = {e: {"low": low, "high": high, "difference": (low + high) / 2} for e, (low, high) in ends.items()}
    rows = [cell | {"epsilon": e, "trials": 10, "outcome": ""} | of for e, of in numbers.items()]
    others = [rows[-1] | {"reading": "spider_q1_noise=minibatch"}, rows[-1] | {"R": 50}]
    cells = cells_of(pd.DataFrame([*rows, *others]))
    words = paper_sentence("mnist_mlp", 25, 25, cells)
    assert words.startswith("In the paper FedProx-SPIDER tends to be ahead")
    assert words.endswith(f" Here: SPIDER ahead of MB-SGD at 1 of 4 ε, behind at 2 ({PUBLISHED}).")
    decided = paper_sentence("mnist_mlp", 25, 25, cells.assign(decided=True))
    assert decided.endswith("behind at 2 (with tuning, by fresh trials).")
    assert "Here" not in paper_sentence("mnist_mlp", 25, 25, None)
    assert paper_sentence("mnist_mlp", 25, 99, cells) == ""


def test_each_paper_says_something_about_each_of_its_figures():
    assert all(figure.said for figure in paper_figures())


def test_the_check_ins_papers_words_stand_below_its_figure(tmp_path):
    (tmp_path / "checkins").mkdir()
    for name in ("figure_2", "mnist_logistic"):
        (tmp_path / "checkins" / f"{name}.svg").write_text("<svg viewBox='0 0 1 1'></svg>", encoding="utf-8")
    first, second = Page(tmp_path, tmp_path, {}).checkins()
    assert first.note.startswith("In the paper the new bound at n = 10³")
    assert second.note == ""
