"""Jobs as they really run: every function of the package that a job calls is in what its digest is made from."""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import small
import yaml

from silodp.cli import main
from silodp.experiments.validation import load
from silodp.workflow import plan as plans
from silodp.workflow.closure import ROOT, Sources

# Tracing slows down the compilation of kernels.
pytestmark = pytest.mark.slow
HERE = Sources()
SMALL = {"trials": 1, "epsilons": [2.0], "stepsizes": {"low": -2, "high": 0, "points": 2}, "reports": [{}]}
RUN = {
    "run": "traced",
    "experiments": {
        "wbcd_mlp": SMALL | {"settings": [{"M": 2, "R": 2}], "clips": [1.0], "phase_lengths": [1, 2]},
        "wbcd_calibrated": SMALL | {"settings": [{"M": 2, "R": 2}], "clips": [1.0], "phase_lengths": [1, 2]},
        "diabetes_linear": SMALL | {"settings": [{"M": 3, "R": 2}], "clips": [1.0]},
    },
}


@functools.cache
def definitions(file: str) -> list[tuple[int, int, str]]:
    """First line, last line and name of every top-level definition and assignment of a file."""
    found = []
    for node in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        stored = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
        found.append((first, node.end_lineno or first, getattr(node, "name", None) or "".join(stored[:1])))
    return found


def module_of(file: str) -> str:
    parts = Path(file).relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def called_by(entry: str, aside: set[str], arguments: list) -> set[str]:
    """Definitions called while `entry` runs, those inside functions put aside and on imports left out."""
    found: set[str] = set()
    stack: list[str] = []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call":
            name = ""
            if code.co_filename.startswith(str(ROOT)):
                line = code.co_firstlineno
                named = (one for first, last, one in definitions(code.co_filename) if first <= line <= last)
                name = f"{module_of(code.co_filename)}:{next(named, '')}"
            if code.co_name == "<module>":
                name = "<module>"
            stack.append(name)
            left_out = any(one in aside or one == "<module>" for one in stack)
            if name and entry in stack and not left_out:
                found.add(name)
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(note)
    try:
        code = main([str(one) for one in arguments])
    finally:
        sys.setprofile(None)
    assert code == 0
    return found


@pytest.fixture
def traced(monkeypatch):
    """(digest method, its words, arguments of the command) → nothing; fails where a call is not in the digest."""

    def run(method, words, *arguments) -> None:
        asked = []
        real = plans.computed_by
        monkeypatch.setattr(plans, "computed_by", lambda *given: asked.append(given) or real(*given))
        method(*words)
        monkeypatch.setattr(plans, "computed_by", real)
        entry, scope = asked[-1][0], asked[-1][1] if len(asked[-1]) > 1 else plans.Asked()
        names = HERE.closure([entry], scope.chosen, scope.aside).names()
        called = called_by(entry, set(scope.aside), [*arguments, "-q"])
        assert entry in called
        assert called <= names | set(scope.aside), sorted(called - names - set(scope.aside))

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    import torch

    threads = torch.get_num_threads()
    folder = tmp_path_factory.mktemp("traced")
    (folder / "run.yaml").write_text(yaml.safe_dump(RUN))
    yield folder
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("experiment", "algorithm", "setting"),
    [
        ("wbcd_mlp", "fedprox_spider", "M2_R2"),
        ("wbcd_calibrated", "minibatch_sgd", "M2_R2"),
        ("diabetes_linear", "local_sgd", "M3_R2"),
    ],
)
def test_from_silos_to_a_figure(experiment, algorithm, setting, folder, traced):
    run_file = folder / "run.yaml"
    plan = plans.Plan(load(run_file))
    own = folder / experiment
    silos, grid, chosen, delivered, table = (
        own / name for name in ("silos", "grid", "chosen", "privacy.csv", "table.csv")
    )
    name = [run_file, experiment]
    traced(plan.partition_digest, [experiment], "partition", *name, "--output", silos / "default")
    words = [*name, algorithm, setting, "--silos", silos / "default"]
    traced(plan.training_digest, [experiment, algorithm], "train", *words, "--output", grid)
    traced(plan.selection_digest, [experiment], "select", *name, "--trials", grid, "--output", chosen)
    fresh = own / "fresh"
    traced(plan.training_digest, [experiment, algorithm], "train", *words, "--chosen", chosen, "--output", fresh)
    made = ["--chosen", chosen, "--silos", silos / "default", "--output", delivered]
    traced(plan.privacy_digest, [experiment], "privacy", *name, *made)
    made = ["--grid", grid, "--fresh", fresh, "--chosen", chosen, "--privacy", delivered, "--output", table]
    traced(plan.table_digest, [experiment], "table", *name, *made)
    figures = [one for one, kind in plan.figure_names(experiment).items() if kind["kind"] == "error_vs_epsilon"]
    rows = pd.read_csv(table)
    figures = [one for one in figures if f"_M{rows['M'][0]}_R{rows['R'][0]}" in one][:1]
    made = ["--table", table, "--silos", silos, "--folder", own]
    traced(plan.figure_digest, [experiment, "error_vs_epsilon"], "figure", *name, *figures, *made)


def test_checks_claims_and_redrawn_figures(folder, traced):
    plan = plans.Plan(load(folder / "run.yaml"))
    made = folder / "participation.csv"
    traced(plan.check_digest, ["participation"], "check", "participation", folder / "run.yaml", "--output", made)
    published = small.ROOT / "results" / "published"
    traced(plan.redraw_digest, [], "redraw", published / "bounds" / "trust_models.csv", "--folder", folder)
    traced(plan.claims_digest, [], "claims", published, "--output", folder / "claims.csv")
