"""Modules of the package as syntax: their top-level statements, and what each refers to (`silodp.workflow.uses`)."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from silodp.workflow.uses import (
    DEFINITION,
    FUNCTION,
    Reader,
    Target,
    Text,
    Use,
    base_of,
    bound_by,
    is_docstring,
    last_name,
    never_runs,
    path_of,
    text_of,
)

_CONTAINERS = {"dict", "list", "set", "defaultdict"}


@dataclass
class Statement:
    """One top-level statement of a module, or one entry of a top-level dict of strings.

    Attributes:
        module: dotted name of its module.
        package: that of the package the module is in; its own for a package.
        names: names that it binds.
        nodes: its syntax; an entry's key and value.
        entries: parts of a dict of strings, by key; the statement itself is then the bare name.
        runs: it runs on import for more than the names it binds.
        container: it binds an empty container, which others fill.
    """

    module: str
    package: str
    names: tuple[str, ...]
    nodes: list[ast.AST]
    entries: dict[str, "Statement"] = field(default_factory=dict)
    runs: bool = False
    container: bool = False

    @functools.cached_property
    def text(self) -> Text:
        """What is in it; ValueError for what cannot be followed."""
        return Reader(self.module, self.package).read(self.names, self.nodes)

    @functools.cached_property
    def registers(self) -> list[tuple[Use, str]]:
        """What it is decorated or made by, each with the first word given there, its key in a registry."""
        node = self.nodes[0] if self.nodes else None
        if isinstance(node, DEFINITION):
            makers: list[ast.expr] = node.decorator_list
        else:
            makers = [one for one in ast.walk(node) if isinstance(one, ast.Call)] if node is not None else []
        found = []
        for maker in makers:
            call = maker if isinstance(maker, ast.Call) else None
            path = path_of(call.func if call else maker)
            if path:
                key = text_of(call.args[0]) if call and call.args else None
                found.append((Use(path[0], tuple(path[1:])), key or ""))
        return found

    @functools.cached_property
    def returned(self) -> list[Use]:
        """Names in the annotation of what a function returns."""
        nodes = [node.returns for node in self.nodes if isinstance(node, FUNCTION) and node.returns]
        return [Use(one.id) for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)]


@dataclass(frozen=True)
class Module:
    """A module's statements.

    Attributes:
        name: dotted name.
        statements: all but imports, docstrings and what is only for type checkers.
        defined: name → places of the statements that bind it.
        imports: name → what a top-level import binds it to.
        loaded: modules that are imported when this one is.
    """

    name: str
    statements: list[Statement]
    defined: dict[str, list[int]]
    imports: dict[str, Target]
    loaded: frozenset[str]

    @functools.cached_property
    def runs(self) -> list[int]:
        """Places of the statements that run on import for more than the names they bind."""
        return [place for place, statement in enumerate(self.statements) if statement.runs]


@functools.lru_cache(maxsize=1024)
def parsed(name: str, is_package: bool, source: str) -> Module:
    """The module called `name`; ValueError for what cannot be followed, naming module, line and what is allowed."""
    package = name if is_package else name.rpartition(".")[0]
    statements: list[Statement] = []
    imports: dict[str, Target] = {}
    loaded: set[str] = set()
    for node in ast.parse(source).body:
        if is_docstring(node) or never_runs(node):
            continue
        for one in [] if isinstance(node, DEFINITION) else _outside_functions(node):
            if isinstance(one, ast.Import | ast.ImportFrom):
                imports |= bound_by(one, name, package)
                loaded |= {target.module for target in bound_by(one, name, package).values()}
                if isinstance(one, ast.Import):
                    loaded |= {alias.name for alias in one.names}
                else:
                    loaded |= {f"{base_of(one, package)}.{alias.name}" for alias in one.names}
        if not isinstance(node, ast.Import | ast.ImportFrom):
            statements.append(_statement(node, name, package))
    defined: dict[str, list[int]] = {}
    for place, statement in enumerate(statements):
        for bound in statement.names:
            defined.setdefault(bound, []).append(place)
    if "__getattr__" in defined:
        raise ValueError(f"{name}: __getattr__: cannot be followed: names must be defined")
    return Module(name, statements, defined, imports, frozenset(loaded))


def _statement(node: ast.stmt, module: str, package: str) -> Statement:
    if isinstance(node, DEFINITION):
        return Statement(module, package, (node.name,), [node])
    stored = (one for one in _outside_functions(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    inner = (one.name for one in ast.walk(node) if isinstance(one, DEFINITION))
    names = tuple(dict.fromkeys([*(one.id for one in stored), *inner]))
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not all(
        isinstance(t, ast.Name | ast.Tuple) for t in targets
    ):
        return Statement(module, package, names, [node], runs=True)
    value = node.value
    if isinstance(value, ast.Dict) and value.keys and len(names) == 1 and all(text_of(key) for key in value.keys):
        entries = {
            text_of(key) or "": Statement(module, package, names, [key or value, one])
            for key, one in zip(value.keys, value.values, strict=True)
        }
        annotation = [node.annotation] if isinstance(node, ast.AnnAssign) else []
        return Statement(module, package, names, [*annotation], entries)
    empty = (isinstance(value, ast.Dict) and not value.keys) or (isinstance(value, ast.List) and not value.elts)
    made = isinstance(value, ast.Call) and last_name(value.func) in _CONTAINERS
    return Statement(module, package, names, [node], container=empty or made)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run with a statement, and not when something in it is called."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*FUNCTION, ast.Lambda)):
            yield from _outside_functions(child)
