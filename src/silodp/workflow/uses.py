"""What is in a piece of syntax: the names it takes from outside itself, the modules it imports, and its digest.

A digest leaves out what changes no result: comments, layout, docstrings, annotations of functions, descriptions of
configuration keys and the `look` of a class. Names are told apart by scope, so that a local variable is not taken for a
definition.
"""

import ast
import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

# Nobody can tell from the text what these run or change.
_FORBIDDEN = {"eval", "exec", "compile", "globals", "__import__"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITION = (*FUNCTION, ast.ClassDef)
_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Use:
    """A name that a statement refers to.

    Attributes:
        name: the name.
        path: attributes asked of it, as in `kernels.LOGISTIC`.
        key: the word it is subscripted with, as in `MODELS["linear"]`.
        decorates: whether it only decorates the statement.
        annotates: whether it only stands in the annotation of a function.
    """

    name: str
    path: tuple[str, ...] = ()
    key: str | None = None
    decorates: bool = False
    annotates: bool = False


@dataclass(frozen=True)
class Target:
    """What an import binds: a module, or a name in it."""

    module: str
    name: str | None = None


@dataclass(frozen=True)
class Text:
    """What is in a statement.

    Attributes:
        digest: SHA-256 of what counts of its syntax.
        uses: names that it takes from outside itself.
        imports: local name → what an import inside it binds it to.
        dynamic: modules that it imports by name; `package.*` for those whose name is not known before.
        words: strings in it, which may name files.
    """

    digest: str
    uses: frozenset[Use]
    imports: dict[str, Target]
    dynamic: frozenset[str]
    words: frozenset[str]


class _Scope:
    """Names that a function or comprehension uses, and those that are its own."""

    def __init__(self, is_class: bool = False):
        self.is_class = is_class
        self.uses: set[Use] = set()
        self.own: set[str] = set()
        self.shared: set[str] = set()

    def free(self) -> set[Use]:
        """Uses of names that come from outside; in a class a name may be the module's until it is bound."""
        own = set() if self.is_class else self.own - self.shared
        return {use for use in self.uses if use.name not in own}


class Reader:
    """Reads one statement: what counts of its syntax, and what it refers to."""

    def __init__(self, module: str, package: str):
        self.module, self.package = module, package
        self.written: list[str] = []
        self.scopes = [_Scope(is_class=True)]
        self.imports: dict[str, Target] = {}
        self.dynamic: set[str] = set()
        self.words: set[str] = set()
        self.decorates = False

    def read(self, names: tuple[str, ...], nodes: list[ast.AST]) -> Text:
        """The text of a statement that binds `names`."""
        for node in nodes:
            self.visit(node, top=True)
        text = f"{self.module}:{','.join(names)}\n{' '.join(self.written)}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        uses = frozenset(self.scopes[0].free())
        return Text(digest, uses, self.imports, frozenset(self.dynamic), frozenset(self.words))

    def visit(self, node: ast.AST, top: bool = False) -> None:
        """Write a node and note what it refers to."""
        kind = type(node)
        self.written.append(kind.__name__)
        own = _VISIT.get(kind)
        if kind in DEFINITION:
            self._definition(node, top)  # type: ignore[arg-type]
        elif own is None:
            self._fields(node)
        else:
            own(self, node)

    def _fields(self, node: ast.AST) -> None:
        for name in _fields_of(type(node)):  # type: ignore[arg-type]
            value = getattr(node, name)
            if isinstance(value, list):
                self._list(value)
            elif isinstance(value, ast.AST):
                self.visit(value)
            else:
                self.written.append(repr(value))

    def _list(self, nodes: list) -> None:
        self.written.append("[")
        for one in nodes:
            if isinstance(one, ast.AST):
                if not (is_docstring(one) or never_runs(one)):
                    self.visit(one)
            else:
                self.written.append(repr(one))
        self.written.append("]")

    def _use(self, node: ast.AST, path: list[str], key: str | None = None, annotates: bool = False) -> None:
        if path[:2] == ["sys", "modules"]:
            raise self._wrong(node, "sys.modules", "a module must be imported")
        self.scopes[-1].uses.add(Use(path[0], tuple(path[1:]), key, self.decorates, annotates))

    def _quietly(self, node: ast.AST | None) -> None:
        """Note what an annotation refers to, in quotes too as Pydantic reads these, and write nothing."""
        for one in ast.walk(node) if node is not None else ():
            if isinstance(one, ast.Name | ast.Attribute) and (path := path_of(one)):
                self._use(one, path, annotates=True)
            elif (word := text_of(one)) and all(part.isidentifier() for part in word.split(".")):
                self._use(one, word.split("."), annotates=True)

    def _within(self, scope: _Scope, body: list) -> None:
        self.scopes.append(scope)
        self._list(body)
        self.scopes.pop()
        self.scopes[-1].uses |= scope.free()

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, top: bool) -> None:
        self.scopes[-1].own.add(node.name)
        self.written.append(node.name)
        self.decorates = top
        self._list(node.decorator_list)
        self.decorates = False
        if isinstance(node, ast.ClassDef):
            if any(one.arg == "metaclass" for one in node.keywords):
                raise self._wrong(node, "metaclass", "a class must not be registered by its making")
            self._list(node.bases)
            self._list(node.keywords)
            self._within(_Scope(is_class=True), [one for one in node.body if not _is_look(one)])
            return
        if node.name == "__init_subclass__":
            raise self._wrong(node, node.name, "a class must not be registered by its making")
        self._quietly(node.returns)
        self._within(self._arguments(node.args), node.body)

    def _arguments(self, given: ast.arguments) -> _Scope:
        scope = _Scope()
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        scope.own |= {one.arg for one in every}
        for one in every:
            self._quietly(one.annotation)
        counts = (len(given.posonlyargs), len(given.args), len(given.kwonlyargs), bool(given.vararg), bool(given.kwarg))
        self.written.append(f"{counts} {' '.join(one.arg for one in every)}")
        self._list(given.defaults)
        self._list([one or ast.Pass() for one in given.kw_defaults])
        return scope

    def _lambda(self, node: ast.Lambda) -> None:
        self._within(self._arguments(node.args), [node.body])

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first, *rest = node.generators
        # The first iterable is made outside.
        self.visit(first.iter)
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inner = [part for one in rest for part in (one.target, one.iter, *one.ifs)]
        self._within(_Scope(), [first.target, *first.ifs, *inner, *made])
        self.written.append(str([(len(one.ifs), one.is_async) for one in node.generators]))

    def _name(self, node: ast.Name) -> None:
        self.written.append(node.id)
        if not isinstance(node.ctx, ast.Load):
            self.scopes[-1].own.add(node.id)
            return
        if node.id in _FORBIDDEN:
            raise self._wrong(node, node.id, "code must stand where it is used")
        self._use(node, [node.id])

    def _attribute(self, node: ast.Attribute) -> None:
        path = path_of(node)
        if not path:
            self._fields(node)
            return
        self.written.append(".".join(path))
        self._use(node, path)

    def _subscript(self, node: ast.Subscript) -> None:
        path, key = path_of(node.value), text_of(node.slice)
        if path and key is not None:
            self.written.append(f"{'.'.join(path)} {key!r}")
            self._use(node, path, key)
        else:
            self._fields(node)

    def _constant(self, node: ast.Constant) -> None:
        self.written.append(repr(node.value))
        if isinstance(node.value, str):
            self.words.add(node.value)

    def _joined(self, node: ast.JoinedStr) -> None:
        # Python 3.12 ends a format that ends in a field, as in f"{x:>{w}}", with an empty text.
        self._list([one for one in node.values if text_of(one) != ""])

    def _changed(self, node: ast.AugAssign) -> None:
        if path := path_of(node.target):
            self._use(node, path)
        self._fields(node)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.annotation, ast.Name):
            self._quietly(node.annotation)
        self._fields(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.imports |= bound_by(node, self.module, self.package)
        self._fields(node)

    def _named_scope(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scopes[-1].shared |= set(node.names)
        self._fields(node)

    def _bound_by_word(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.scopes[-1].own.add(node.name)
        self._fields(node)

    def _call(self, node: ast.Call) -> None:
        called = last_name(node.func)
        if called == "import_module":
            self.dynamic.add(self._imported(node))
        if called == "Field":
            self.visit(node.func)
            self._list(node.args)
            self._list([one for one in node.keywords if one.arg != "description"])
        else:
            self._fields(node)

    def _imported(self, node: ast.Call) -> str:
        """The module that `import_module` imports, or `package.*`."""
        given = node.args[0] if node.args else None
        if (text := text_of(given)) is not None:
            return text
        first, *rest = given.values if isinstance(given, ast.JoinedStr) else [None]
        if isinstance(first, ast.FormattedValue) and last_name(first.value) == "__name__":
            dot = text_of(rest[0]) if rest else None
            if dot is not None and dot.startswith("."):
                return f"{self.module}{dot.rpartition('.')[0]}.*"
        if (text := text_of(first)) is not None and "." in text:
            return f"{text.rpartition('.')[0]}.*"
        raise self._wrong(node, "import_module", 'the name must begin with its package, as in f"silodp.checks.{name}"')

    def _wrong(self, node: ast.AST, what: str, why: str) -> ValueError:
        return ValueError(f"{self.module}:{getattr(node, 'lineno', 0)}: {what}: cannot be followed: {why}")


_VISIT: dict[type, Callable[..., None]] = {
    ast.Name: Reader._name,
    ast.Attribute: Reader._attribute,
    ast.Subscript: Reader._subscript,
    ast.Constant: Reader._constant,
    ast.JoinedStr: Reader._joined,
    ast.AnnAssign: Reader._annotated,
    ast.AugAssign: Reader._changed,
    ast.Import: Reader._import,
    ast.ImportFrom: Reader._import,
    ast.Global: Reader._named_scope,
    ast.Nonlocal: Reader._named_scope,
    ast.ExceptHandler: Reader._bound_by_word,
    ast.MatchAs: Reader._bound_by_word,
    ast.MatchStar: Reader._bound_by_word,
    ast.Call: Reader._call,
    ast.Lambda: Reader._lambda,
    **dict.fromkeys(_COMPREHENSION, Reader._comprehension),
}


@functools.cache
def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """Fields that count; whether a name is read or bound follows from its place."""
    return tuple(name for name in kind._fields if name not in ("ctx", "type_comment", "kind"))


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_look(node: ast.AST) -> bool:
    """How figures draw what a class stands for: in their digests by value, and in nobody else's."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return isinstance(node, ast.Assign | ast.AnnAssign) and [last_name(one) for one in targets if one] == ["look"]


def never_runs(node: ast.AST) -> bool:
    """`if TYPE_CHECKING` and `if __name__ == "__main__"`, without an else."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    test = node.test
    script = isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
    return last_name(test) == "TYPE_CHECKING" or script


def last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def text_of(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def path_of(node: ast.AST) -> list[str]:
    """Names of `a.b.c`; empty for anything else."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return [node.id, *reversed(attributes)] if isinstance(node, ast.Name) else []


def base_of(node: ast.ImportFrom, package: str) -> str:
    """The module that names are imported from."""
    parts = package.split(".")[: 1 - node.level or None] if node.level else []
    return ".".join([*parts, *((node.module,) if node.module else ())])


def bound_by(node: ast.Import | ast.ImportFrom, module: str, package: str) -> dict[str, Target]:
    """Names that an import binds."""
    if isinstance(node, ast.Import):
        firsts = [(one.asname or one.name.split(".")[0], one.name if one.asname else one.name.split(".")[0])
                  for one in node.names]  # fmt: skip
        return {name: Target(other) for name, other in firsts}
    if any(one.name == "*" for one in node.names):
        raise ValueError(f"{module}:{node.lineno}: import *: cannot be followed: names must be given")
    return {one.asname or one.name: Target(base_of(node, package), one.name) for one in node.names}
