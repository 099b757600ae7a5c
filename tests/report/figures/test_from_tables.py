"""The job `redraw`: a table is told by its columns, and its figures come from it alone."""

import numpy as np
import pandas as pd
import small

from silodp.jobs.__main__ import main as run_job
from silodp.jobs.checkins_figure_2 import BOUNDS
from silodp.report.figures.checkin_lines import BAND, LINES
from silodp.report.figures.from_tables import figures_of
from silodp.report.figures.svg import note_of
from silodp.verdicts.checks.figure_3 import ENTRIES, POINT

PUBLISHED = small.ROOT / "results" / "published"


def redraw(table, folder):
    return run_job(["redraw", f"tables={table}", f"folder={folder}", "formats=pdf", "png", "svg"])


def test_formulas_have_a_figure_for_each_line_of_work_in_every_format(tmp_path):
    assert redraw(PUBLISHED / "formulas.csv", tmp_path) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        f"formulas_{line}.{suffix}" for line in ("convex", "nonconvex") for suffix in ("pdf", "png", "svg")
    ]


def test_axes_of_bounds_say_what_stands_on_them():
    rounds = figures_of(PUBLISHED / "bounds" / "rounds_to_target.csv")["rounds_to_target"].axes[0]
    assert (rounds.get_xlabel(), rounds.get_ylabel()) == ("β", "rounds to the target")
    assert [label.get_text() for label in rounds.get_xticklabels()] == ["2", "4", "8", "16", "32"]
    trust = figures_of(PUBLISHED / "bounds" / "trust_models.csv")["trust_models"].axes[0]
    assert (trust.get_xlabel(), trust.get_ylabel()) == ("N", "excess risk")
    # A line with its stated exponent and two rivals for each of two theorems.
    styles = [line.get_linestyle() for line in trust.get_lines()]
    assert (styles.count("--"), styles.count(":")) == (2, 4)
    panels = figures_of(PUBLISHED / "bounds" / "upper_bounds.csv")["upper_bounds"].axes
    assert "n (linear, β near 0)" in [axes.get_xlabel() for axes in panels]


def test_figure_3_has_a_panel_for_each_entry_of_the_papers_and_names_the_point_that_it_is_drawn_at():
    figure = figures_of(PUBLISHED / "bounds" / "figure_3.csv")["figure_3"]
    assert len(figure.axes) == len(ENTRIES)
    for axes in figure.axes:
        upper, lower, *earlier = (np.asarray(line.get_ydata()) for line in axes.get_lines() if len(line.get_ydata()))
        assert (lower < upper).all()
        assert all((upper < line).all() for line in earlier)
    # Only the bounds on gradient norms have earlier ones.
    drawn = [sum(len(line.get_ydata()) > 0 for line in axes.get_lines()) for axes in figure.axes]
    assert drawn == [2, 2, 2, 2, 3, 3]
    kappa = POINT["beta"] / POINT["mu"]
    for words in (f"n = {POINT['n']:,}", f"N = M = {POINT['N']}", f"d = {POINT['d']}", f"κ = {kappa:g}"):
        assert words in note_of(figure)


def test_titles_are_words_and_stay_on_the_page():
    rows = pd.read_csv(PUBLISHED / "by_round.csv")
    for name, figure in figures_of(PUBLISHED / "by_round.csv").items():
        title = figure.axes[0].get_title(loc="left")
        assert rows["experiment"].iloc[0] not in title
        assert name.split("_M")[1].split("_")[0] in title.replace("M = ", "").split("\n")[-1]
    (figure,) = figures_of(PUBLISHED / "bounds" / "lower_bounds.csv").values()
    title = figure.texts[0]
    assert title.get_window_extent(figure.canvas.get_renderer()).x1 <= figure.bbox.x1


def test_what_has_no_figure_is_refused_in_one_line(tmp_path, capsys):
    for path, told in (
        (PUBLISHED / "privacy.csv", "must be a table of"),
        (PUBLISHED / "bounds" / "participation.csv", "check: 'participation': must be one of"),
    ):
        assert redraw(path, tmp_path / "out") == 2
        said = capsys.readouterr().err
        assert told in said
        assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_every_bound_of_figure_2_has_a_line():
    assert set(BOUNDS) == {*LINES, *BAND}
