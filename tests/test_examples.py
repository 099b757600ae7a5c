"""What stands in docstrings: examples that run, and when a plan holds."""

import ast
import doctest
import re
import sys
from importlib import import_module

import pytest

from silodp.algorithms import ALGORITHMS, base
from silodp.workflow.closure import ROOT

SHOWN = ["federation.clipped_sums", "federation.draws", "privacy.calibration", "privacy.plan"]


@pytest.mark.parametrize("module", SHOWN)
def test_the_examples_of_a_module_print_what_they_say(module):
    done = doctest.testmod(import_module(f"silodp.{module}"))
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize("file", sorted((ROOT / "algorithms").glob("*.py")), ids=lambda path: path.stem)
def test_a_plan_says_last_when_it_holds(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    plans = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "plan"]
    for plan in plans:
        last = (ast.get_docstring(plan) or "").splitlines()[-1]
        assert last.startswith("Holds if ")
        assert last.endswith(".")


@pytest.mark.parametrize("kind", ALGORITHMS.values(), ids=ALGORITHMS)
def test_a_formula_of_an_algorithm_has_its_symbols_explained(kind):
    if "←" in (kind.__doc__ or ""):
        assert re.search(r"(?m)^\S{1,3} = ", sys.modules[kind.__module__].__doc__ or "")


def test_every_algorithm_has_a_plan_that_says_so():
    assert all("Holds if " in (kind.plan.__doc__ or "") for kind in [base.Algorithm, *ALGORITHMS.values()])
