"""The published page and figures are what today's code makes of their tables; `make report` renews them."""

import base64
import gzip
import re

import pandas as pd
import pytest
from alike import assert_alike
from small import ROOT

from silodp.config.board import on_board
from silodp.experiments.validation import load
from silodp.experiments.variants import figure_names
from silodp.jobs.__main__ import main as run_job
from silodp.report.figures import BOUNDS_FIGURES

RESULTS = ROOT / "results"
PUBLISHED = RESULTS / "published"
# A figure of every kind, (experiment, figure).
KINDS: dict[str, tuple[str, str]] = {}
for experiment, config in load(PUBLISHED / "config.json").experiments.items():
    for figure, shows in figure_names(experiment, config).items():
        KINDS.setdefault(f"{shows['kind']} {config.label == 'target'}", (experiment, figure))
TABLES = [*(f"bounds/{name}" for name in BOUNDS_FIGURES), "checkins/figure_2", "checkins/mnist_logistic"]
TABLES += ["by_round", "comparisons", "formulas"]


def unpacked(text: str) -> str:
    """A page with its packed parts as text, as compression may write the same text otherwise."""
    pattern = r'(?<=<script type="text/plain">)[^<]+'
    return re.sub(pattern, lambda packed: unpacked(gzip.decompress(base64.b64decode(packed[0])).decode()), text)


@pytest.mark.parametrize("run", ["published", "published-protocols"])
def test_the_published_page_is_todays(run, tmp_path):
    for path in (RESULTS / run).iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert run_job(["report", f"folder={tmp_path}", f"output={tmp_path / 'made.html'}"]) == 0
    made, published = (unpacked((tmp_path / name).read_text()) for name in ("made.html", "report.html"))
    assert_alike(made, published)


@pytest.mark.parametrize("kind", KINDS)
def test_a_published_figure_of_every_kind_is_todays(kind, tmp_path):
    experiment, name = KINDS[kind]
    files = [f"table={PUBLISHED}/tables/{experiment}.csv", f"reported={PUBLISHED}/reported/{experiment}.csv"]
    words = [f"run_file={PUBLISHED / 'config.json'}", f"experiment={experiment}", f"names={name}", *files]
    assert run_job(["figure", *words, f"folder={tmp_path}", "formats=svg"]) == 0
    assert_alike((tmp_path / f"{name}.svg").read_text(), (PUBLISHED / "figures" / f"{name}.svg").read_text())


@pytest.mark.parametrize("table", TABLES)
def test_figures_of_other_tables_are_todays(table, tmp_path):
    file = PUBLISHED / f"{table}.csv"
    if table == "by_round":  # a figure for each experiment and setting
        rows = pd.read_csv(file, dtype=str, keep_default_na=False)
        rows.merge(rows[["experiment", "M", "R"]][:1]).to_csv(file := tmp_path / "by_round.csv", index=False)
    assert run_job(["redraw", f"tables={file}", f"folder={tmp_path}", "formats=svg"]) == 0
    made = list(tmp_path.glob("*.svg"))
    for path in made:
        (published,) = PUBLISHED.rglob(path.name)
        assert_alike(path.read_text(), published.read_text())
    assert made


def test_the_published_board_is_todays(tmp_path):
    board = [name for name in load(PUBLISHED / "config.json").experiments if on_board(name)]
    files = [f"{PUBLISHED}/reported/{name}.csv" for name in board]
    first, *rest = files
    assert run_job(["leaderboard", f"reported={first}", *rest, f"folder={tmp_path}", "formats=svg"]) == 0
    made = [path for path in tmp_path.iterdir() if path.suffix in (".svg", ".csv")]
    assert {path.name for path in made} == {path.name for path in (PUBLISHED / "board").iterdir()}
    for path in made:
        assert_alike(path.read_text(), (PUBLISHED / "board" / path.name).read_text())
