"""`silodp redraw`: a table is told by its columns, and its figures come from it alone."""

import shutil

import pandas as pd
import pytest
import small

from silodp.cli import main
from silodp.experiments.checkins.figure_2 import BOUNDS
from silodp.report.figures import BOUNDS_FIGURES
from silodp.report.figures.checkin_lines import LINES
from silodp.report.figures.from_tables import figures_of

PUBLISHED = small.ROOT / "results" / "published"
TABLES = [
    *sorted(path for path in PUBLISHED.glob("bounds/*.csv") if path.stem in BOUNDS_FIGURES),
    *sorted(PUBLISHED.glob("checkins/*.csv")),
    PUBLISHED / "formulas.csv",
    PUBLISHED / "by_round.csv",
]


# Those of many panels take seconds each.
QUICK = [
    pytest.param(path, marks=[pytest.mark.slow] * path.stem.startswith(("rates_", "lower_", "upper_")))
    for path in TABLES
]


@pytest.mark.parametrize("path", QUICK, ids=[path.stem for path in TABLES])
def test_every_published_table_is_drawn_under_the_names_of_its_figures(path, tmp_path):
    assert len(TABLES) == len(BOUNDS_FIGURES) + 4
    shutil.copy(path, tmp_path / path.name)
    assert main(["redraw", str(tmp_path / path.name), "--folder", str(tmp_path / "out"), "-q"]) == 0
    stems = ["formulas_convex", "formulas_nonconvex"] if path.stem == "formulas" else [path.stem]
    if path.stem == "by_round":
        settings = pd.read_csv(path)[["experiment", "M", "R"]].drop_duplicates().itertuples(index=False)
        stems = sorted(f"{name}_M{M}_R{R}_by_round" for name, M, R in settings)
        assert len(stems) > 1
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        f"{stem}.{suffix}" for stem in stems for suffix in ("pdf", "png", "svg")
    ]


def test_axes_of_bounds_say_what_stands_on_them():
    rounds = figures_of(PUBLISHED / "bounds" / "rounds_to_target.csv")["rounds_to_target"].axes[0]
    assert (rounds.get_xlabel(), rounds.get_ylabel()) == ("β", "rounds to the target")
    assert [label.get_text() for label in rounds.get_xticklabels()] == ["2", "4", "8", "16", "32"]
    trust = figures_of(PUBLISHED / "bounds" / "trust_models.csv")["trust_models"].axes[0]
    assert (trust.get_xlabel(), trust.get_ylabel()) == ("N", "excess risk")
    panels = figures_of(PUBLISHED / "bounds" / "upper_bounds.csv")["upper_bounds"].axes
    assert "n (linear, beta near 0)" in [axes.get_xlabel() for axes in panels]


def test_what_has_no_figure_is_refused_in_one_line(tmp_path, capsys):
    for path, told in (
        (PUBLISHED / "privacy.csv", "must be a table of"),
        (PUBLISHED / "bounds" / "participation.csv", "check: 'participation': must be one of"),
    ):
        assert main(["redraw", str(path), "--folder", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert told in said
        assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_every_bound_of_figure_2_has_a_line():
    assert set(BOUNDS) == set(LINES)
