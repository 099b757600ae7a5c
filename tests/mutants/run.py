"""Wrong lines that the tests have to feel: each is put in place, and its tests run to the first failure.

    python tests/mutants/run.py [--room privacy] [--only 3,17] [--share 1/4] [--seconds 60] [--log FILE]
    python tests/mutants/run.py --drawn 150 --log FILE [--whole] [--slow] [--share 1/4] [--seed SHA]

`mutants.txt` holds, in blocks: the tests' names after `tests:`, lines that start with `-`, those that replace them with
`+`, and for a change that nobody can see its reason after `equivalent:`. The lines are looked for in all files of
src/silodp, so that a file may move; lines that are not found exactly once are an error. Exit code 1 below 90 % in a
room that was run.

`--drawn` changes as many places as it says, which the seed draws from all rooms in turn (drawn.py); the seed is the
last commit of tests but of these. The tests that import the changed file and those of its folder run first; with
`--whole` what survives meets the rest of `make test`, with `--slow` then `make test-slow`: of these the files that
reach the place, as a first run of all tests has found (reach.py). `equivalents.tsv` has those that nobody can see, each
with its reason. What `--log` holds is not run again, so a measurement may stop and go on. Exit code 1 below 85 %, or
95 % with `--slow`.

On the code as it is all these tests have to pass before, and each that killed something again behind it: else exit
code 2.
"""

import argparse
import csv
import functools
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drawn import Change, draw
from reach import MODULE, NAME, mark, read_reached, statement_line

ROOT = Path(__file__).parents[2]
WANTED, WANTED_DRAWN = 0.9, {"": 0.85, "slow": 0.95}
# What tests import of others: loaded once, in the process from which those of all mutants are forked.
LOADED = ["torch", "scipy.stats", "pandas", "sklearn.pipeline", "numba", "pydantic", "hypothesis", "dp_accounting"]
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=mutants"]
ONLY = "--only-file="
SLOW = ["-m", "slow", "tests"]
LONGEST = 7200  # seconds of all tests, with the calls that tell what they reach
OPTIONS += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]


class Mutant(NamedTuple):
    """Lines `old` of a room, what replaces them, and the tests that have to fail; a reason where none can."""

    number: int
    room: str
    tests: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    equivalent: str = ""
    drawn: Change | None = None

    @property
    def key(self) -> str:
        return "|".join((self.room, *self.old, *self.new))


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


def draw_mutants(count: int, seed: str) -> list[Mutant]:
    with Path(__file__).with_name("equivalents.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        known = {(row["file"], row["line"], row["changed"]): row["reason"] for row in rows}
    found = []
    for number, change in enumerate(draw(ROOT / "src" / "silodp", count, seed), 1):
        (old, new), file = change.lines(), change.path.relative_to(ROOT / "src" / "silodp").as_posix()
        found.append(Mutant(number, change.room, (), (old,), (new,), known.get((file, old, new), ""), change))
    return found


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def stripped_lines(path: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in text_of(path).splitlines())


def place(mutant: Mutant, sources: dict[Path, list[str]]) -> tuple[Path, int]:
    """The one file and line where the old lines begin; ValueError otherwise."""
    size, places = len(mutant.old), []
    for path in sources:
        lines = stripped_lines(path)
        places += [(path, k) for k in range(len(lines)) if lines[k : k + size] == mutant.old]
    if len(places) != 1 or not size:
        raise ValueError(f"mutant {mutant.number} ({mutant.room}): {mutant.old[:1]} is found {len(places)} times")
    return places[0]


def changed(lines: list[str], start: int, mutant: Mutant) -> str:
    indent = re.match(r"\s*", lines[start])
    assert indent is not None
    new = [indent[0] + line for line in mutant.new]
    return "\n".join([*lines[:start], *new, *lines[start + len(mutant.old) :]]) + "\n"


def put_in_place(mutant: Mutant, sources: dict[Path, list[str]]) -> tuple[Path, str]:
    """The changed file, and its text."""
    if mutant.drawn:
        return mutant.drawn.path, mutant.drawn.text()
    path, start = place(mutant, sources)
    return path, changed(sources[path], start, mutant)


def test_ids(names: tuple[str, ...], tests: Path) -> list[str]:
    files = sorted(tests.rglob("test_*.py"))
    found = {name: [f for f in files if f"\ndef {name}(" in text_of(f)] for name in names}
    missing = [name for name, of in found.items() if not of]
    if missing:
        raise ValueError(f"tests: {', '.join(missing)}: no such test")
    return [f"{file.relative_to(tests.parent)}::{name}" for name, of in found.items() for file in of]


def tests_of(path: Path) -> list[str]:
    """Tests of a source file: its own, those that import it or name its algorithm, then the nearest folder's."""
    inner, tests = path.relative_to(ROOT / "src" / "silodp"), ROOT / "tests"
    alone = tests / inner.with_name(f"test_{inner.name}")
    folders = [tests / one for one in inner.parents[:-1] if (tests / one).is_dir()]
    *room, name = inner.with_suffix("").parts
    within = ".".join(["silodp", *room])
    used = rf"(from|import) {within}\.{name}\b|from {within} import .*\b{name}\b"
    used = rf"(from|import) {within}\b" if name == "__init__" else used
    # An algorithm is made by its name.
    used += f'|"{name}"' if room[:1] == ["algorithms"] else ""
    users = [file for file in sorted(tests.rglob("test_*.py")) if re.search(used, text_of(file))]
    # What silos do on a device is tested with the models' forms there.
    felt = [alone] * alone.is_file() + users + folders[:1] + [tests / "models" / "gpu"] * (room[:1] == ["federation"])
    return list(dict.fromkeys(str(one.relative_to(ROOT)) for one in felt))


class FirstFailure:
    """A plug-in of pytest that writes down which test fails first."""

    def __init__(self, place: Path):
        self.place = place

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.place.exists():
            self.place.write_text(report.nodeid, encoding="utf-8")


class Only:
    """A plug-in of pytest that leaves all files of tests out but these."""

    def __init__(self, files: Sequence[Path]):
        self.files = set(files)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return (collection_path.is_file() and collection_path not in self.files) or None


def run_pytest(copy: Path, words: Sequence[str]) -> None:
    """In a process of its own: exit with pytest's code."""
    import pytest

    os.setsid()
    os.chdir(copy)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(copy / "src"), str(copy)]  # as `python -m pytest` in the copy
    os.environ |= {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    quiet = os.open(copy / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    files = [copy / word.removeprefix(ONLY) for word in words if word.startswith(ONLY)]
    words = [word for word in words if not word.startswith(ONLY)]
    plugins = [FirstFailure(copy / "felt"), *([Only(files)] if files else [])]
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os._exit(int(pytest.main([*OPTIONS, *words], plugins=plugins)))


class Copy:
    """A copy of the tree in which tests run, each time in a process that has loaded the packages already."""

    def __init__(self, folder: Path, seconds: float):
        self.folder, self.seconds = folder, seconds
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(LOADED)
        (folder / "results").symlink_to(ROOT / "results")  # large, and only read
        listed = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.check_output(listed, text=True).splitlines():
            if (ROOT / name).is_file() and not name.startswith("results/"):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def outcome(self, words: Sequence[str], seconds: float | None = None) -> tuple[str, str]:
        """What pytest says, killed also where it cannot begin or collect, and the test that failed."""
        felt = self.folder / "felt"
        felt.unlink(missing_ok=True)
        process = self.context.Process(target=run_pytest, args=(self.folder, words))
        process.start()
        process.join(seconds or self.seconds)
        if process.is_alive():
            os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
            return "out of time", ""
        said = {0: "survived", 1: "killed", 2: "killed", 4: "killed", 5: "survived"}.get(
            process.exitcode or 0, f"error {process.exitcode}"
        )
        return said, felt.read_text(encoding="utf-8") if felt.exists() else ""

    def with_change(self, path: Path, text: str, words: Sequence[str]) -> tuple[str, str]:
        target = self.folder / path.relative_to(ROOT)
        target.write_text(text, encoding="utf-8")
        try:
            return self.outcome(words)
        finally:
            shutil.copy2(path, target)

    def reached(self, mutants: Sequence[Mutant], words: Sequence[str]) -> dict[str, list[str]]:
        """Files of tests that reach each drawn mutant's place, by key; ["*"] where all may."""
        places = [(one.number, one.drawn) for one in mutants if one.drawn and statement_line(one.drawn)]
        placed, marked = {change for _, change in places}, mark(places)
        source = self.folder / "src"
        (source / f"{NAME}.py").write_text(MODULE, encoding="utf-8")
        for path, text in marked.items():
            (self.folder / path.relative_to(ROOT)).write_text(text, encoding="utf-8")
        try:
            said, test = self.outcome(["--maxfail=0", *words], LONGEST)
            print(f"reached: {said} {test}", flush=True)
            return {one.key: read_reached(source, one.number) if one.drawn in placed else ["*"] for one in mutants}
        finally:
            for path in marked:
                shutil.copy2(path, self.folder / path.relative_to(ROOT))
            for made in [source / f"{NAME}.py", *source.glob("*.reached")]:
                made.unlink()


def stages(mutant: Mutant, options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Names of what runs one after the other while it survives, and pytest's words."""
    if mutant.drawn is None:
        yield "", test_ids(mutant.tests, ROOT / "tests")
        return
    near = tests_of(mutant.drawn.path)
    yield "", near
    if options.whole or options.slow:
        yield "whole", ["tests", *(f"--ignore={one}" for one in near)]
    if options.slow:
        yield "slow", SLOW


def narrowed(key: str, stage: str, words: list[str], known: dict[tuple[str, str], tuple[str, str]]) -> list[str]:
    """The words, for the files alone that reach the mutant's place; none where no file does."""
    files = known.get((key, "reached slow" if stage == "slow" else "reached"), ("*", ""))[0].split(" ")
    if files == ["*"]:
        return words
    return [*words, *(ONLY + file for file in files)] if files != ["-"] else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room")
    parser.add_argument("--only", help="numbers, separated by commas")
    parser.add_argument("--share", default="1/1", help="i/k: every k-th, from the i-th on")
    parser.add_argument("--seconds", type=float, default=600, help="of one run of tests")
    parser.add_argument("--log", type=Path, help="what was run is kept here, and not run again")
    parser.add_argument("--check", action="store_true", help="only look whether all lines and tests are there")
    parser.add_argument("--drawn", type=int, help="that many changes drawn from all rooms, no list")
    parser.add_argument("--seed", help="of the draws")
    parser.add_argument("--whole", action="store_true", help="all tests for what survives those of its file")
    parser.add_argument("--slow", action="store_true", help="the slow ones, too")
    options = parser.parse_args()
    last = ["git", "-C", str(ROOT), "log", "-1", "--format=%H", "--", "tests", ":!tests/mutants"]
    seed = options.seed or (subprocess.check_output(last, text=True).strip() if options.drawn else "")
    listed = read_mutants(Path(__file__).with_name("mutants.txt").read_text(encoding="utf-8"))
    mutants = draw_mutants(options.drawn, seed) if options.drawn else listed
    sources = {path: text_of(path).splitlines() for path in sorted(ROOT.glob("src/**/*.py"))}
    places = {mutant.number: put_in_place(mutant, sources) for mutant in mutants}
    for mutant in mutants:
        test_ids(mutant.tests, ROOT / "tests")
    print(f"{len(mutants)} mutants, {sum(bool(mutant.equivalent) for mutant in mutants)} that nobody can see", seed)
    if options.check:
        return 0
    first, step = map(int, options.share.split("/"))
    only = {int(number) for number in (options.only or "").split(",") if number}
    chosen = [
        mutant
        for mutant in mutants
        if (mutant.number in only if only else (mutant.number - first) % step == 0)
        and not mutant.equivalent
        and options.room in (None, mutant.room)
    ]
    with tempfile.TemporaryDirectory() as folder:
        return measure(mutants, chosen, places, Copy(Path(folder), options.seconds), options)


def measure(
    mutants: list[Mutant], chosen: list[Mutant], places: dict[int, Any], copy: Copy, options: argparse.Namespace
) -> int:
    """Run what the log does not hold, print what lives and the rates; the exit code."""
    kept = options.log.read_text(encoding="utf-8").splitlines() if options.log and options.log.exists() else []
    known = {(key, stage): (said, test) for key, stage, said, test in (line.split("\t") for line in kept)}

    def keep(key: str, stage: str, said: str, test: str) -> None:
        known[key, stage] = said, test
        if options.log:
            with options.log.open("a", encoding="utf-8") as log:
                log.write("\t".join((key, stage, said, test)) + "\n")

    def run(key: str, stage: str, words: Sequence[str], *change: Any) -> tuple[str, str]:
        if (key, stage) not in known:
            keep(key, stage, *(copy.with_change(*change, words) if change else copy.outcome(words)))
        return known[key, stage]

    def is_sound(stage: str, words: Sequence[str]) -> bool:
        said, test = run(" ".join(sorted(words)), stage, sorted(words)) if words else ("survived", "")
        print(f"{stage}: {said} {test}")
        return said == "survived"

    whole = options.whole or options.slow
    every = {"tests"} if whole else {word for mutant in chosen for word in next(stages(mutant, options))[1]}
    if not is_sound("before", list(every)):
        return 2
    if whole:
        for kind, words in (("reached", ["tests"]), *([("reached slow", SLOW)] if options.slow else [])):
            if any((mutant.key, kind) not in known for mutant in mutants):
                for key, files in copy.reached(mutants, words).items():
                    keep(key, kind, " ".join(files), "")
    told: dict[str, list[str]] = defaultdict(list)
    killers = set()
    for mutant in chosen:
        for stage, words in stages(mutant, options):
            said, test = ("survived", "")
            if words := narrowed(mutant.key, stage, words, known):
                said, test = run(mutant.key, stage, words, *places[mutant.number])
            if said != "survived":
                break
        told[mutant.room].append(said)
        killers |= {test} - {""}
        if said != "killed":
            print(f"{mutant.number:4d} {mutant.room}: {said}: {mutant.old[0]} → {mutant.new[:1]}", flush=True)
    for room, outcomes in told.items():
        print(f"{room}: {outcomes.count('killed')} of {len(outcomes)} killed")
    rates = [outcomes.count("killed") / len(outcomes) for outcomes in told.values()]
    ends = [one for outcomes in told.values() for one in outcomes]
    print(f"all: {ends.count('killed')} of {len(ends)} killed")
    if not is_sound("after", list(killers)):
        return 2
    if options.drawn:
        return int(ends.count("killed") < WANTED_DRAWN["slow" if options.slow else ""] * len(ends))
    return int(min(rates, default=1) < WANTED)


if __name__ == "__main__":
    sys.exit(main())
