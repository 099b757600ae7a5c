"""Which source files a job is computed by, and their digest: the import closure of the job's entry modules.

A file counts as syntax without docstrings, a data file that a string of the code names as bytes. A registry imports its
entries by name: a job adds the entries that it uses to its entry modules.
"""

import ast
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

from silodp.files import read_json, write_text

ROOT = Path(__file__).resolve().parents[1]
_DATA_SUFFIXES = {".csv", ".css", ".j2", ".js", ".json", ".yaml", ".yml"}
# The command line imports every subcommand; a job names the module of its own.
_DISPATCHER = "silodp.cli"


class Source(NamedTuple):
    """What counts of a file: SHA-256 of its syntax without docstrings, imports, strings that may name data files."""

    syntax: str
    imports: tuple[str, ...]
    words: tuple[str, ...]


class CodeSources:
    """The package's source files, as they are when they are first read.

    `plugins` maps the first word of other modules' names to file or folder; `root` is the package's folder in place of
    this one; `snapshot`, a file of `save`, spares parsing, and is believed whatever the files hold now if `frozen`.
    """

    def __init__(
        self,
        plugins: Mapping[str, Path] | None = None,
        root: Path | None = None,
        snapshot: Path | None = None,
        frozen: bool = False,
    ):
        self.root = root or ROOT
        self.roots = {self.root.name: self.root, **(plugins or {})}
        saved = read_json(snapshot) if snapshot else {}
        self._parsed = {
            content: Source(syntax, tuple(imports), tuple(words))
            for content, (syntax, imports, words) in saved.get("parsed", {}).items()
        }
        self._contents: dict[str, str] = saved.get("contents", {}) if frozen else {}
        self.path = functools.cache(self._path)
        self.source = functools.cache(self._source)

    def save(self, snapshot: Path) -> None:
        for name, root in self.roots.items():
            for file in root.rglob("*.py") if root.is_dir() else ():
                parts = file.relative_to(root).with_suffix("").parts
                self.source(".".join((name, *(parts[:-1] if file.name == "__init__.py" else parts))))
        used = {content: self._parsed[content] for content in self._contents.values()}
        write_text(json.dumps({"contents": self._contents, "parsed": used}), snapshot)

    def _path(self, module: str) -> Path | None:
        """The file of a module; None where there is no such module in the package or the plug-ins."""
        first, *rest = module.split(".")
        base = self.roots.get(first)
        if base is None or base.suffix == ".py":
            return None if rest else base
        base = base.joinpath(*rest)
        return next((file for file in (base / "__init__.py", base.with_suffix(".py")) if file.is_file()), None)

    def _source(self, module: str) -> Source:
        path = self.path(module)
        if path is None:
            raise ValueError(f"{module}: no such module")
        content = self._contents.get(str(path))
        if content is None or content not in self._parsed:
            text = path.read_bytes()
            content = self._contents[str(path)] = hashlib.sha256(text).hexdigest()
            if content not in self._parsed:
                self._parsed[content] = parse(text)
        return self._parsed[content]

    def _imported(self, module: str) -> set[str]:
        path = self.path(module)
        package = module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]
        names = {resolve_name(name, package) for name in self.source(module).imports} | {module}
        names |= {
            ".".join(parts[:end]) for name in names for parts in [name.split(".")] for end in range(1, len(parts))
        }
        return {name for name in names if self.path(name) is not None}

    def closure(self, entries: Iterable[str], excluded: Iterable[str] = ()) -> set[str]:
        """Names of the modules that `entries` import, directly or not; `excluded` modules are not followed."""
        left_out = {_DISPATCHER, *excluded}
        reached: set[str] = set()
        waiting = set(entries)
        while waiting:
            module = waiting.pop()
            reached.add(module)
            waiting |= self._imported(module) - reached - left_out
        return reached

    def digest(self, entries: Iterable[str], excluded: Iterable[str] = ()) -> str:
        """SHA-256 of the modules of a closure and of the data files that they name; ValueError for no such module."""
        lines: set[str] = set()
        for module in self.closure(entries, excluded):
            lines.add(f"{module} {self.source(module).syntax}")
            for file in self._data_files(module):
                lines.add(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}")
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()

    def _data_files(self, module: str) -> Iterable[Path]:
        path = self.path(module)
        folders = [
            path.parent if path else self.root,
            self.root,
            *(parent / "config" for parent in self.root.parents[:2]),
        ]
        files = (folder / word for folder in folders for word in self.source(module).words)
        return (file for file in files if file.is_file())


@functools.lru_cache(maxsize=4096)
def parse(text: bytes) -> Source:
    tree = _WithoutComments().visit(ast.parse(text))
    imports, words = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            dot = "." if node.module else ""
            imports |= {base, *(f"{base}{dot}{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= {node.value} if Path(node.value).suffix in _DATA_SUFFIXES else set()
    syntax = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return Source(syntax, tuple(sorted(imports)), tuple(sorted(words)))


class _WithoutComments(ast.NodeTransformer):
    """Takes out what computes nothing: strings as statements, and imports for type checkers."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse:
            return None
        return self.generic_visit(node)
