"""The picture of a run's rules in the tutorial: what it folds and leaves out, and that it shows the rules there are."""

import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from silodp.experiments.validation import load
from silodp.workflow.job_digest import RunPlan
from silodp.workflow.outputs import OUTPUTS

ROOT = Path(__file__).resolve().parents[2]

DOT = """
    0[label = "all"]; 1[label = "select"]; 2[label = "evaluate_a_0"]; 3[label = "evaluate_b_0"]; 4[label = "table"];
    1 -> 2
    1 -> 3
    1 -> 4
    2 -> 4
    3 -> 4
    4 -> 0
"""


@pytest.fixture(scope="module")
def picture():
    loader = SourceFileLoader("rules_picture", str(ROOT / ".ci" / "rules-picture"))
    module = module_from_spec(spec_from_loader("rules_picture", loader))
    loader.exec_module(module)
    return module


def test_rules_of_one_kind_are_folded_and_an_arrow_beside_a_longer_path_is_left_out(picture, tmp_path):
    arrows = picture.read_graph(DOT)
    assert arrows == {("select", "evaluate"), ("select", "table"), ("evaluate", "table")}
    assert picture.without_repeats(arrows) == {("select", "evaluate"), ("evaluate", "table")}
    assert picture.places(picture.without_repeats(arrows)) == {"select": (0, 0), "evaluate": (0, -1), "table": (0, -2)}
    for name in ("one.svg", "two.svg"):
        picture.draw(arrows, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_the_picture_shows_what_makes_the_files_of_the_smoke_run(picture):
    plan = RunPlan(load(ROOT / "config" / "smoke.yaml"))
    shown = re.findall(r">(\w+)</text>", picture.PICTURE.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted({output.job for output in OUTPUTS if plan.files(output.job)})
