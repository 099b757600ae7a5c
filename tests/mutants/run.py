"""Wrong lines that the tests have to feel: each is put in place, and its tests run to the first failure.

    python tests/mutants/run.py [--room privacy] [--only 3,17] [--share 1/4] [--seconds 60] [--log FILE]
    python tests/mutants/run.py --drawn 5 --seed 7 --seconds 600

`mutants.txt` holds, in blocks: the tests' names after `tests:`, lines that start with `-`, those that replace them with
`+`, and for a change that nobody can see its reason after `equivalent:`. The lines are looked for in all files of
src/silodp, so that a file may move; lines that are not found exactly once are an error. Exit code 1 below 90 % in a
room that was run.

`--drawn` changes operators and numbers of the syntax tree at places that the seed draws, so many in each room that
computes what is published or promised; there the file's own tests run, those of the folder that mirrors its own, all
that import it or name its algorithm, and those that hold the published tables.
"""

import argparse
import ast
import functools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
WANTED = 0.9


class Mutant(NamedTuple):
    """Lines `old` of a room, what replaces them, and the tests that have to fail; a reason where none can."""

    number: int
    room: str
    tests: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    equivalent: str = ""
    path: Path = Path()  # of one that was drawn


def read_mutants(text: str) -> list[Mutant]:
    found, room = [], ""
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line and not line.startswith("#!")]
        if lines and lines[0].startswith("# "):
            room, lines = lines[0][2:].strip(), lines[1:]
        if not lines:
            continue
        said = dict(line.split(": ", 1) for line in lines if line.startswith(("tests: ", "equivalent: ")))
        old, new = (tuple(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
        tests = tuple(name.strip() for name in said.get("tests", "").split(",") if name.strip())
        found.append(Mutant(len(found) + 1, room, tests, old, new, said.get("equivalent", "")))
    return found


def place(mutant: Mutant, sources: dict[Path, list[str]]) -> tuple[Path, int]:
    """The one file and line where the old lines begin; ValueError otherwise."""
    size, places = len(mutant.old), []
    for path, lines in sources.items():
        stripped = [line.strip() for line in lines]
        places += [(path, k) for k in range(len(lines)) if tuple(stripped[k : k + size]) == mutant.old]
    if len(places) != 1 or not size:
        raise ValueError(f"mutant {mutant.number} ({mutant.room}): {mutant.old[:1]} is found {len(places)} times")
    return places[0]


def changed(lines: list[str], start: int, mutant: Mutant) -> str:
    indent = re.match(r"\s*", lines[start])
    assert indent is not None
    new = [indent[0] + line for line in mutant.new]
    return "\n".join([*lines[:start], *new, *lines[start + len(mutant.old) :]]) + "\n"


def test_ids(names: tuple[str, ...], tests: Path) -> list[str]:
    files = sorted(tests.rglob("test_*.py"))
    found = {name: [f for f in files if re.search(rf"^def {name}\(", f.read_text(), re.MULTILINE)] for name in names}
    missing = [name for name, of in found.items() if not of]
    if missing:
        raise ValueError(f"tests: {', '.join(missing)}: no such test")
    return [f"{file}::{name}" for name, of in found.items() for file in of]


# Where a wrong line changes a number that is published, or a promise.
ROOMS = ("privacy", "verdicts", "audit", "partition", "federation", "silos", "experiments", "workflow", "algorithms")
ROOMS += ("models",)
SWAPPED: dict[type, type] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}


def draw(count: int, seed: int) -> list[Mutant]:
    """Lines of one statement each with one operator or number changed: so many of each room, drawn by the seed."""
    package = ROOT / "src" / "silodp"
    found: dict[str, list[tuple[Path, str, int]]] = {room: [] for room in ROOMS}
    files = [path for room in ROOMS for path in sorted((package / room).rglob("*.py"))]
    for path in files:
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        # No kernels, which are compiled for minutes or ask for a GPU; no texts of errors, no dashes of lines.
        if {"gpu", "cpu"} & set(path.parts):
            continue
        for statement in ast.walk(ast.parse(source)):
            simple = isinstance(statement, (ast.Assign, ast.Return, ast.AugAssign, ast.Expr))
            if simple and statement.lineno == statement.end_lineno:  # type: ignore[attr-defined]
                line = lines[statement.lineno - 1]  # type: ignore[attr-defined]
                once = [other.strip() for other in lines].count(line.strip()) == 1
                once &= not re.search(r"(Error|Look)\(", line)
                places = sum(1 for _ in changes(ast.parse(line.strip())))
                room = path.relative_to(package).parts[0]
                found[room] += [(path, line.strip(), place) for place in range(places) if once]
    generator, drawn = random.Random(seed), []
    for room, places in found.items():
        for path, line, place in generator.sample(places, count):
            tree = ast.parse(line)
            list(changes(tree))[place]()
            drawn.append(Mutant(len(drawn) + 1, room, (), (line,), (ast.unparse(tree),), path=path))
    return drawn


def changes(tree: ast.AST) -> Iterator[Callable[[], None]]:
    """What swaps an operator of a statement, or adds one to a number."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAPPED:
            yield functools.partial(setattr, node, "op", SWAPPED[type(node.op)]())
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield functools.partial(node.ops.__setitem__, 0, SWAPPED[type(node.ops[0])]())
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield functools.partial(setattr, node, "value", node.value + 1)


def tests_of(path: Path, tests: Path) -> list[str]:
    """Tests of a source file: its own, the nearest folder's, those that use it, then those of published tables."""
    inner = path.relative_to(ROOT / "src" / "silodp")
    alone = tests / inner.with_name(f"test_{inner.name}")
    folders = [tests / one for one in inner.parents[:-1] if (tests / one).is_dir()]
    module = ".".join(inner.with_suffix("").parts).removesuffix(".__init__")
    # An algorithm is made by its name.
    named = f'|"{inner.stem}"' if inner.parts[0] == "algorithms" else ""
    used = re.compile(rf"from silodp\.{re.escape(module)} import {named}")
    users = [file for file in sorted(tests.rglob("test_*.py")) if used.search(file.read_text(encoding="utf-8"))]
    felt = [alone] * alone.is_file() + folders[:1] + users
    # What silos do on a device is tested with the models' forms there.
    felt += [tests / "models" / "gpu"] * (inner.parts[0] == "federation")
    # No published table is made by silos that are programs.
    published = [] if inner.parts[0] == "silos" else sorted(tests.rglob("test_published_*.py"))
    return [str(one) for one in felt + published]


def outcome(mutant: Mutant, copy: Path, seconds: float) -> str:
    """What the tests say: killed (2: they cannot be collected), survived, an error of pytest itself, or out of time."""
    tests = copy / "tests"
    ids = test_ids(mutant.tests, tests) if mutant.tests else tests_of(mutant.path, tests)
    paths = os.pathsep.join([str(copy / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command.append("--hypothesis-profile=mutants")
    try:
        done = subprocess.run(
            [*command, *ids],
            cwd=copy,
            env=environment,
            timeout=seconds,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "out of time"
    return {0: "survived", 1: "killed", 2: "killed"}.get(done.returncode, f"error {done.returncode}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--room")
    parser.add_argument("--only", help="numbers, separated by commas")
    parser.add_argument("--share", default="1/1", help="i/k: every k-th, from the i-th on")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--log", type=Path, help="what was run is kept here, and not run again")
    parser.add_argument("--check", action="store_true", help="only look whether all lines and tests are there")
    parser.add_argument("--drawn", type=int, help="that many changes of the syntax tree of each room, no list")
    parser.add_argument("--seed", type=int, default=1, help="of the draws")
    options = parser.parse_args()
    listed = read_mutants(Path(__file__).with_name("mutants.txt").read_text(encoding="utf-8"))
    mutants = draw(options.drawn, options.seed) if options.drawn else listed
    sources = {path: path.read_text(encoding="utf-8").splitlines() for path in sorted(ROOT.glob("src/**/*.py"))}
    of = {mutant.number: {mutant.path: sources[mutant.path]} if options.drawn else sources for mutant in mutants}
    places = {mutant.number: place(mutant, of[mutant.number]) for mutant in mutants}
    for mutant in mutants:
        test_ids(mutant.tests, ROOT / "tests")
    print(f"{len(mutants)} mutants, {sum(bool(mutant.equivalent) for mutant in mutants)} that nobody can see")
    if options.check:
        return 0
    first, step = map(int, options.share.split("/"))
    only = {int(number) for number in (options.only or "").split(",") if number}
    kept = options.log.read_text(encoding="utf-8").splitlines() if options.log and options.log.exists() else []
    known = dict(line.split("\t")[:2] for line in kept)
    told: dict[str, list[str]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in (
            "src",
            "tests",
            "config",
            "workflow",
            "docs",
            "benchmarks",
            "results",
            "Snakefile",
            "pyproject.toml",
        ):
            source = ROOT / name
            if name == "results":  # large, and only read
                (copy / name).symlink_to(source)
            elif source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, copy / name)
        for mutant in mutants:
            chosen = mutant.number in only if only else (mutant.number - first) % step == 0
            if not chosen or mutant.equivalent or (options.room and mutant.room != options.room):
                continue
            key = "|".join((mutant.room, *mutant.old, *mutant.new))
            if key in known:
                told[mutant.room].append(known[key])
                continue
            path, start = places[mutant.number]
            target = copy / path.relative_to(ROOT)
            target.write_text(changed(sources[path], start, mutant), encoding="utf-8")
            began = time.monotonic()
            found = outcome(mutant, copy, options.seconds)
            shutil.copy2(path, target)
            told[mutant.room].append(found)
            if options.log:
                with options.log.open("a", encoding="utf-8") as log:
                    log.write(f"{key}\t{found}\n")
            if not found.startswith("killed"):
                print(f"{mutant.number:4d} {mutant.room}: {found}: {mutant.old[0]} → {mutant.new[:1]}", flush=True)
            elif time.monotonic() - began > options.seconds / 2:
                print(f"{mutant.number:4d} {mutant.room}: {found} in {time.monotonic() - began:.0f} s", flush=True)
    short = 0
    for room, outcomes in told.items():
        killed = sum(one.startswith("killed") for one in outcomes)
        short += killed < WANTED * len(outcomes)
        print(f"{room}: {killed} of {len(outcomes)} killed ({killed / len(outcomes):.0%})")
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
