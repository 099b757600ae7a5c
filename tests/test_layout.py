"""The house: rooms on floors, imports in one direction, no circle between modules."""

import ast
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import silodp
from silodp.cli import COMMANDS

PACKAGE = Path(silodp.__file__).parent
# A room imports from those before it in this list.
FLOORS = ["config", "datasets", "theory", "files", "streams", "models", "privacy", "partition", "federation"]
FLOORS += ["algorithms", "extending", "experiments", "audit", "silos", "own_data", "verdicts", "report"]
FLOORS += ["workflow", "jobs", "cli"]
# Pure, or given plain values: no configuration there.
WITHOUT_CONFIG = {"algorithms", "privacy", "theory"}


def _imports(path: Path) -> set[str]:
    """Modules of the package that a file imports anywhere, for types too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "silodp":
            base = node.module.removeprefix("silodp").lstrip(".")
            found |= {f"{base}.{one.name}".lstrip(".") if _is_module(base, one.name) else base for one in node.names}
        if isinstance(node, ast.Import):
            found |= {one.name.removeprefix("silodp.") for one in node.names if one.name.startswith("silodp.")}
    return {name or "__init__" for name in found}


def _is_module(base: str, name: str) -> bool:
    path = PACKAGE.joinpath(*base.split("."), name)
    return path.with_suffix(".py").is_file() or path.is_dir()


def _graph() -> dict[str, set[str]]:
    files = {".".join(file.relative_to(PACKAGE).with_suffix("").parts): file for file in PACKAGE.rglob("*.py")}
    return {name.removesuffix(".__init__"): _imports(file) for name, file in files.items()}


def test_no_module_imports_itself_in_a_circle():
    TopologicalSorter({name: found - {name} for name, found in _graph().items()}).prepare()


def test_imports_go_one_way():
    for module, found in _graph().items():
        room = module.split(".")[0].strip("_")
        if room in ("init", "main"):
            continue
        for other in {name.split(".")[0] for name in found} - {room, "__init__"}:
            assert FLOORS.index(other) < FLOORS.index(room), f"{module} imports {other}"
            assert not (other == "config" and room in WITHOUT_CONFIG), f"{module} imports {other}"


def test_no_two_files_have_one_name_but_a_command_a_job_and_a_papers_theorems():
    """Beside `__init__` and `base`, which says in its first line what it is the base of."""
    counted = Counter[str]()
    for path in PACKAGE.rglob("*.py"):
        room, *_ = path.relative_to(PACKAGE).parts
        is_door = path.stem in ("__init__", "__main__", "base") or room == "jobs"
        is_door |= room == "cli" and path.stem in COMMANDS
        counted[path.stem] += not is_door and path.parent.parent.name != "theory"
    assert [name for name, count in counted.items() if count > 1] == []


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("base.py")), ids=lambda path: path.parent.name)
def test_a_base_says_what_it_is_the_base_of(path):
    assert path.read_text(encoding="utf-8").startswith('"""The base of every ')


@pytest.mark.parametrize(
    "room", [path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()], ids=lambda path: path.name
)
def test_a_room_says_in_few_lines_what_it_holds(room):
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert 1 <= len(text.splitlines()) <= 5
    named = re.findall(r"`(\w+\.py)`", text)
    assert named, f"{room.name}: names no file to read first"
    assert all((room / name).is_file() for name in named)


def test_the_listed_mutants_stand_in_the_package_and_name_tests_that_are_there():
    run = Path(__file__).parent / "mutants" / "run.py"
    done = subprocess.run([sys.executable, run, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
