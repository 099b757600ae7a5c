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


FILES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "algorithms").glob("*.py"))}
# Whoever puts it into the package passes too.
PAGE = (ROOT.parents[1] / "docs" / "extend.md").read_text(encoding="utf-8")
FILES["docs/extend.md"] = PAGE.split("```python\n")[1].split("```")[0]


@pytest.mark.parametrize("name", FILES)
def test_an_algorithm_says_where_it_is_from_and_its_plan_last_when_it_holds(name):
    tree = ast.parse(FILES[name])
    plans = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "plan"]
    assert name == "base" or not plans or "paper" in (ast.get_docstring(tree) or "")
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
