"""The leaderboard on the page: verdicts, table and figures of a small made-up board, and nothing without a board."""

import pytest
from page_run import Page

from silodp.report.page import figures
from silodp.report.page.build import board, build

MADE_UP = """| experiment | epsilon | best | test_error |
| --- | --- | --- | --- |
| wbcd_mlp | 1 | minibatch_sgd | 0.06 |
| wbcd_mlp | 3 | local_sgd | 0.05 |

- does federating beat training alone: yes at 2, worse at 0 of 2 cells after Holm.
"""


@pytest.mark.parametrize("place", ["board", "."])
def test_a_board_is_a_section_with_verdicts_table_and_figure(tmp_path, place):
    folder = tmp_path / place
    folder.mkdir(exist_ok=True)
    (folder / "leaderboard.csv").write_text("question,experiment\n")
    (folder / "leaderboard.md").write_text(MADE_UP)
    (folder / "leaderboard.svg").write_text("<svg>drawn</svg>\n")
    build(tmp_path, tmp_path / "report.html")
    text = Page((tmp_path / "report.html").read_text()).text
    assert "Leaderboard" in text
    assert "Does federating beat training alone: yes at 2, worse at 0 of 2 cells after Holm." in text
    assert "Wisconsin breast cancer" in text
    assert "MB-SGD" in text
    assert "Test error against true ε, by data set" in text
    assert "with a correction minus without it" not in text


def test_a_run_without_a_board_has_no_section(tmp_path):
    assert board(figures.Page(tmp_path, tmp_path)) == []
