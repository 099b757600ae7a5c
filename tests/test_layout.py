"""The house: few rooms, imports in one direction, no circle between modules."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import silodp

PACKAGE = Path(silodp.__file__).parent
# A room may import from those behind it; one that stands with another in a set does not import it.
ORDER = [
    {"__main__"},
    {"cli"},
    {"workflow"},
    {"report"},
    {"verdicts", "experiments"},
    {"algorithms"},
    {"federation"},
    {"privacy"},
]
ORDER += [{"theory"}]
GROUND = {"config", "datasets", "files", "__init__"}
# Pure, or given plain values: no configuration there.
WITHOUT_CONFIG = {"algorithms", "privacy", "theory"}


def _imports(path: Path) -> set[str]:
    """Modules of the package that a file imports anywhere, `TYPE_CHECKING` blocks aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [one for one in ast.walk(tree) if isinstance(one, ast.If) and "TYPE_CHECKING" in ast.dump(one.test)]
    typing_only = {id(node) for block in blocks for node in ast.walk(block)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
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


def test_the_package_has_few_rooms():
    assert len([one for one in PACKAGE.iterdir() if one.name != "__pycache__"]) <= 15


def test_no_module_imports_itself_in_a_circle():
    TopologicalSorter({name: found - {name} for name, found in _graph().items()}).prepare()


def test_imports_go_one_way():
    level = {room: place for place, rooms in enumerate(ORDER) for room in rooms}
    for module, found in _graph().items():
        room = module.split(".")[0]
        for other in {name.split(".")[0] for name in found} - {room}:
            assert room not in GROUND or other in {"__init__"}, f"{module} imports {other}"
            assert other in GROUND or level[other] > level[room], f"{module} imports {other}"
            assert not (other == "config" and room in WITHOUT_CONFIG), f"{module} imports {other}"
