"""A place is reached by the tests that run its statement, wherever they start it."""

import subprocess
import sys

import pytest
from small import ROOT

sys.path.insert(0, str(ROOT / "tests" / "mutants"))
from drawn import changes
from reach import MODULE, NAME, mark, read_reached, statement_line

sys.path.pop(0)  # another `run` is in benchmarks

SOURCE = """
TOP = 1


def f(x=2):
    if x == 3:
        return 4
    elif x == 5:
        return lambda: (
            6
        )
    else:
        try:
            return 7
        except ValueError:
            return 8


@jit
def g():
    return 9


class A:
    def h(self):
        def inner(y=10):
            return 11

        return inner
"""
# Number → line of the statement that a call stands before.
LINES = {1: 0, 2: 0, 3: 6, 4: 7, 5: 6, 6: 9, 7: 14, 8: 16, 9: 0, 10: 26, 11: 27}


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "f.py"
    path.write_text(SOURCE)
    return {int(one.new[1:-1]) - 1: one for one in changes(path) if one.kind == "number"}


def test_a_call_stands_before_the_innermost_statement_of_a_function(numbers):
    assert {number: statement_line(change) for number, change in numbers.items()} == LINES


def test_a_place_names_the_files_of_tests_that_run_it(numbers, tmp_path):
    ((path, text),) = mark(numbers.items()).items()
    path.write_text("jit = lambda f: f\n" + text + "\nimport sys\nf(int(sys.argv[1]))\n")
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    for test, given in (("a.py::t (call)", "3"), ("a.py::u (call)", "3"), ("b.py::t (setup)", "0")):
        subprocess.run([sys.executable, path, given], env={"PYTEST_CURRENT_TEST": test}, check=True)
    reached = {number: read_reached(tmp_path, number) for number in numbers}
    files = {3: ["a.py", "b.py"], 5: ["a.py", "b.py"], 4: ["a.py"], 7: ["b.py"]}
    assert reached == {number: files.get(number, ["-"]) for number in numbers}
    subprocess.run([sys.executable, path, "3"], env={}, check=True)
    assert read_reached(tmp_path, 4) == ["*"]
