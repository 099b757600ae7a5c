"""Which files of tests reach a changed place: a survivor meets these alone, as no other test runs the place.

Before the statement of each change stands a call that writes down the test at hand, in a process that a test starts,
too. A file of tests counts as a whole, as its tests share what they have made. What a process keeps from an earlier
file is not seen: the rate of what is killed may be too low for that, never too high.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from drawn import Change

# Lies beside the package, so that every process that imports the package finds this module.
NAME = "reached_places"
MODULE = """
import os
from pathlib import Path

known = set()


def note(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
    if (number, test) not in known:
        known.add((number, test))
        with Path(__file__).with_name(f"{number}.reached").open("a") as file:
            file.write(test + "\\n")
"""
BLOCKS = ("body", "orelse", "finalbody")


def mark(changes: Iterable[tuple[int, Change]]) -> dict[Path, str]:
    """The files with a call before the statement of each (number, change) that lies within a function."""
    marks: dict[Path, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, change in changes:
        line = statement_line(change)
        if line:
            marks[change.path][line].append(number)
    return {path: _marked(path, found) for path, found in marks.items()}


def _marked(path: Path, marks: dict[int, list[int]]) -> str:
    lines = []
    for place, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        indent = line[: len(line) - len(line.lstrip())]
        lines += [f'{indent}__import__("{NAME}").note({number})' for number in marks.get(place, ())]
        lines.append(line)
    return "\n".join(lines) + "\n"


def statement_line(change: Change) -> int:
    """Line of the innermost statement that a call may stand before; 0 where all tests have to run.

    That is outside functions, which is run by whoever imports it first, and in functions that are compiled.
    """
    source = change.path.read_bytes()
    first = source.count(b"\n", 0, change.start) + 1
    found, inside = 0, False
    statements: list[Any] = list(ast.parse(source).body)
    while statements:
        node = statements.pop()
        starts = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        if not starts <= first <= node.end_lineno:
            continue
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and "jit" in "".join(map(ast.dump, node.decorator_list)):
            return 0
        if inside and not source.splitlines()[starts - 1].lstrip().startswith(b"elif"):
            found = starts
        blocks = [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]
        statements = [one for block in blocks for name in BLOCKS for one in getattr(block, name, ())]
        if is_function and any(one.lineno <= first <= one.end_lineno for one in statements):
            inside = True
    return found


def read_reached(folder: Path, number: int) -> list[str]:
    """The files of tests that reach a place: ["-"] where none does, ["*"] where a process outside any test does."""
    place = folder / f"{number}.reached"
    files = set(place.read_text().splitlines()) if place.exists() else {"-"}
    return ["*"] if "" in files else sorted(files)
