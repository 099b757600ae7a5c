"""Which source files a job is computed by, and their digest: a Merkle tree over contents and imports.

A module counts as its syntax, with the imports cut out, and as what it imports: each object, its local name and the
digest of its module, at its place. No digest holds the name of a module, so a file that is moved changes nobody's.
A registry imports its entries by name: a job adds the entries that it uses to its entry modules.
"""

import ast
import functools
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

from silodp.files import read_json, write_text

ROOT = Path(__file__).resolve().parents[1]
_IN_PROJECT = re.compile(r"project_root\(\)( / '\w+')* / '\w+\.\w+'")


class Import(NamedTuple):
    """One name that a file imports.

    Attributes:
        block: the number of the block of imports in which it stands; the order within a block computes nothing.
        module: as the file has it, with dots where it is relative.
        name: the object, "" where the module itself is imported.
        local: the name in the file.
        number: the place of the local name in the order of first use, −1 where the file does not use it.
    """

    block: int
    module: str
    name: str
    local: str
    number: int


class Source(NamedTuple):
    """What counts of a file: SHA-256 of its syntax without imports, the imports, and the data files that it names.

    A data file is a name beside the file, a suffix in place of `.py`, or a path from the project's top after a "/".
    """

    syntax: str
    imports: tuple[Import, ...]
    data: tuple[str, ...]


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
            content: Source(syntax, tuple(Import(*one) for one in imports), tuple(data))
            for content, (syntax, imports, data) in saved.get("sources", {}).items()
        }
        self._contents: dict[str, str] = saved.get("contents", {}) if frozen else {}
        # Modules that are left out → the digests of the others.
        self._digests: dict[frozenset[str], dict[str, str]] = {}
        self.path = functools.cache(self._path)
        self.source = functools.cache(self._source)
        self.targets = functools.cache(self._targets)

    def save(self, snapshot: Path) -> None:
        for name, root in self.roots.items():
            for file in root.rglob("*.py") if root.is_dir() else ():
                parts = file.relative_to(root).with_suffix("").parts
                self.source(".".join((name, *(parts[:-1] if file.name == "__init__.py" else parts))))
        used = {content: self._parsed[content] for content in self._contents.values()}
        write_text(json.dumps({"contents": self._contents, "sources": used}), snapshot)

    def _path(self, module: str) -> Path | None:
        """The file of a module; None where there is no such module in the package or the plug-ins."""
        first, *rest = module.split(".")
        base = self.roots.get(first)
        if base is None or base.suffix == ".py":
            return None if rest else base
        base = base.joinpath(*rest)
        return next((file for file in (base / "__init__.py", base.with_suffix(".py")) if file.is_file()), None)

    def file(self, module: str) -> Path:
        path = self.path(module)
        if path is None:
            raise ValueError(f"{module}: no such module")
        return path

    def _source(self, module: str) -> Source:
        path = self.file(module)
        content = self._contents.get(str(path))
        if content is None or content not in self._parsed:
            text = path.read_bytes()
            content = self._contents[str(path)] = hashlib.sha256(text).hexdigest()
            if content not in self._parsed:
                self._parsed[content] = parse(text)
        return self._parsed[content]

    def _targets(self, module: str) -> list[tuple[Import, str, bool]]:
        """Each import of a module with the module that it reads, and whether it is that module as a whole.

        Packages on the way to a module are not read: their `__init__` files compute nothing.
        """
        package = module if self.file(module).name == "__init__.py" else module.rpartition(".")[0]
        found = []
        for one in self.source(module).imports:
            base = resolve_name(one.module, package)
            whole = not one.name or self.path(f"{base}.{one.name}") is not None
            found.append((one, f"{base}.{one.name}" if one.name and whole else base, whole))
        return found

    def closure(self, entries: Iterable[str], excluded: Iterable[str] = ()) -> set[str]:
        """Names of the modules that `entries` import, directly or not; `excluded` modules are not followed."""
        left_out, reached, waiting = self._existing(excluded), set[str](), set(entries)
        while waiting:
            module = waiting.pop()
            reached.add(module)
            targets = {target for _, target, _ in self.targets(module) if self.path(target)}
            waiting |= targets - reached - left_out
        return reached

    def digest(self, entries: Iterable[str], excluded: Iterable[str] = ()) -> str:
        """SHA-256 of entry modules, in their order, and all that they import; ValueError for no such module or file."""
        left_out = self._existing(excluded)
        known = self._digests.setdefault(left_out, {})
        for entry in (entries := list(entries)):
            if entry not in known:
                self._enter(entry, left_out, known, {}, [])
        return _sha256([known[entry] for entry in entries])

    def _existing(self, modules: Iterable[str]) -> frozenset[str]:
        return frozenset(module for module in modules if self.file(module))

    def _enter(
        self, module: str, left_out: Collection[str], known: dict[str, str], places: dict[str, int], path: list[str]
    ) -> int:
        """Digest a module after those that it imports; modules that import each other are digested as one.

        Tarjan's algorithm: `path` holds the modules that wait for a circle's first. Returns the first that is reached.
        """
        places[module] = first = len(places)
        path.append(module)
        for _, target, _ in self.targets(module):
            if target in known or target in left_out or self.path(target) is None:
                continue
            reached = self._enter(target, left_out, known, places, path) if target not in places else places[target]
            first = min(first, reached)
        if first == places[module]:
            circle = path[path.index(module) :]
            del path[path.index(module) :]
            # After as many rounds as it has modules, each digest holds what every other is.
            digests = dict.fromkeys(circle, "")
            for _ in circle:
                digests = {member: self._digest_module(member, {**known, **digests}) for member in circle}
            known |= digests
        return first

    def _digest_module(self, module: str, digests: Mapping[str, str]) -> str:
        """The digest of a module by those of its imports; "" stands for a module that is left out."""
        source, path, imports = self.source(module), self.file(module), []
        for one, target, whole in self.targets(module):
            digest = digests.get(target, "") if self.path(target) else target
            names = ("", "") if whole and self.path(target) else (one.name, one.local)
            imports.append((one.block, *names, digest, one.number))
        contents = [hashlib.sha256(self._data(path, name).read_bytes()).hexdigest() for name in source.data]
        return _sha256([source.syntax, sorted(imports), contents])

    def _data(self, path: Path, name: str) -> Path:
        file = path.with_suffix(name) if name[0] == "." else path.parent / name
        file = self.root.parents[1] / name[1:] if name[0] == "/" else file
        if not file.is_file():
            raise ValueError(f"{file}: missing: {path} names it")
        return file


def _sha256(obj: object) -> str:
    return hashlib.sha256(json.dumps(obj).encode()).hexdigest()


@functools.lru_cache(maxsize=4096)
def parse(text: bytes) -> Source:
    plain = _StrippedSyntax()
    tree = plain.visit(ast.parse(text))
    numbers: dict[str, int] = {}
    _Numbered(plain.imports, numbers).visit(tree)
    imports = tuple(one._replace(number=numbers.get(one.local, -1)) for one in plain.imports)
    return Source(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imports, tuple(plain.data))


class _StrippedSyntax(ast.NodeTransformer):
    """Takes out what computes nothing: docstrings, imports for type checkers, what an error says; and all imports."""

    def __init__(self) -> None:
        self.imports: list[Import] = []
        self.data: list[str] = []
        self._blocks = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and any(isinstance(each, ast.stmt) for each in value):
                setattr(node, field, self._without_imports(value))
        return super().generic_visit(node)

    def _without_imports(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements with an empty one in place of each block of imports."""
        kept: list[ast.stmt] = []
        for statement in statements:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                kept.append(statement)
                continue
            if not kept or not isinstance(kept[-1], ast.Import):
                kept.append(ast.Import(names=[]))
                self._blocks += 1
            for alias in statement.names:
                module, name = alias.name, ""
                if isinstance(statement, ast.ImportFrom):
                    module, name = "." * statement.level + (statement.module or ""), alias.name
                self.imports.append(Import(self._blocks, module, name, alias.asname or alias.name, -1))
        return kept

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse:
            return None
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`Path(__file__).with_name("table.csv")` and `.with_suffix(".csv")` name a data file."""
        if ast.unparse(node.func) in ("Path(__file__).with_name", "Path(__file__).with_suffix"):
            self.data.append(ast.literal_eval(node.args[0]))
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """So does `project_root() / "config" / "table.csv"`."""
        if match := _IN_PROJECT.fullmatch(ast.unparse(node)):
            self.data.append(match[0].replace("'", "").replace(" / ", "/").removeprefix("project_root()"))
        return self.generic_visit(node)


class _Numbered(ast.NodeTransformer):
    """Puts numbers, in the order of first use, in place of the local names of imports."""

    def __init__(self, imports: Iterable[Import], numbers: dict[str, int]):
        self.locals, self.numbers = {one.local for one in imports}, numbers
        self.dotted = {local for local in self.locals if "." in local}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._numbered(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`import a.b` is used as `a.b.name`."""
        name = ast.unparse(node) if self.dotted else ""
        return self._numbered(node, name) if name in self.dotted else self.generic_visit(node)

    def _numbered(self, node: ast.AST, name: str) -> ast.AST:
        if name not in self.locals:
            return node
        return ast.Name(f"{self.numbers.setdefault(name, len(self.numbers))}", ast.Load())
