"""Wrong lines drawn by a seed from every file of the package: operators, numbers, conditions, calls, arguments.

A change replaces one expression by its place in the text, so that a statement may be of any kind and of several lines.
"""

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OTHER: dict[type, type] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("idxmin", "idxmax"), ("floor", "ceil")]
OTHER_NAME = {one: other for pair in [*PAIRS, ("any", "all")] for one, other in (pair, pair[::-1])}
# What gives a value of the kind that it is given, so that it is felt by its numbers alone where it is dropped.
DROPPED = {"abs", "sqrt", "isqrt", "exp", "expm1", "log", "log1p", "log2", "square", "floor", "ceil", "round", "int"}
DROPPED |= {"float", "sigmoid", "ndtr", "nan_to_num", "sum", "mean", "max", "min", "cumsum", "clamp", "clip"}
DROPPED |= {"sorted", "reversed", "unique", "sort", "set", "list", "strip", "lower", "casefold"}
DROPPED |= {"fillna", "dropna", "drop_duplicates", "sort_values", "sort_index", "reset_index"}
MODULES = {"np", "math", "torch", "scipy", "special"}
# Their arguments may stand in any order, or are of two kinds.
SYMMETRIC = {"min", "max", "minimum", "maximum", "hypot", "gcd", "logaddexp", "isinstance", "getattr"}
SYMMETRIC |= {"equal", "array_equal"}
# Kernels are compiled for minutes, or ask for a GPU.
LEFT_OUT = {"gpu", "cpu"}


class Change(NamedTuple):
    """Bytes from `start` to `stop` of a file that become `new`."""

    path: Path
    start: int
    stop: int
    new: str
    kind: str

    @property
    def room(self) -> str:
        """The folder below the package, or "files" for those at its top."""
        inner = self.path.parts[self.path.parts.index("silodp") + 1 :]
        return inner[0] if len(inner) > 1 else "files"

    def text(self) -> str:
        """The file with the change."""
        source = self.path.read_bytes()
        return (source[: self.start] + self.new.encode() + source[self.stop :]).decode()

    def lines(self) -> tuple[str, str]:
        """The lines in question as they are and as they become, each as one."""
        source = self.path.read_bytes()
        first, last = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.stop)
        changed = source[first : self.start] + self.new.encode() + source[self.stop : last]
        return " ".join(source[first:last].decode().split()), " ".join(changed.decode().split())


def draw(package: Path, count: int, seed: str) -> list[Change]:
    """So many changes, room by room in turn, without one twice."""
    generator, rooms = random.Random(seed), {}
    for path in sorted(package.rglob("*.py")):
        if not LEFT_OUT & set(path.parts):
            for change in changes(path):
                rooms.setdefault(change.room, []).append(change)
    for found in rooms.values():
        generator.shuffle(found)
    drawn: list[Change] = []
    while len(drawn) < count and any(rooms.values()):
        drawn += [found.pop() for found in rooms.values() if found]
    return drawn[:count]


def changes(path: Path) -> Iterator[Change]:
    """All changes of a file, with no text of an error, annotation, decorator or part of a formatted string."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _computing(ast.parse(source)):
        for place, new, kind in _of_node(node):
            start = starts[place.lineno - 1] + place.col_offset
            yield Change(path, start, starts[place.end_lineno - 1] + place.end_col_offset, new, kind)


def _computing(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes in which something is computed."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text(child):
                yield child
                yield from _computing(child)


def _is_text(node: ast.AST) -> bool:
    """Whether a node is a message or an import: nobody's number."""
    if isinstance(node, ast.Call):
        return _called(node).endswith(("Error", "Look")) or ast.unparse(node.func).startswith("log.")
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test)
    return isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _of_node(node: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    """(expression, what stands in its place, kind of change) of one node."""
    if isinstance(node, ast.BinOp) and type(node.op) in OTHER:
        yield node, _text(ast.BinOp(node.left, OTHER[type(node.op)](), node.right)), "operator"
    if isinstance(node, ast.BoolOp):
        yield node, _text(ast.BoolOp(OTHER[type(node.op)](), node.values)), "operator"
    for place, op in enumerate(node.ops if isinstance(node, ast.Compare) else ()):
        ops = [*node.ops[:place], OTHER[type(op)](), *node.ops[place + 1 :]]
        yield node, _text(ast.Compare(node.left, ops, node.comparators)), "operator"
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield node, _text(ast.Constant(node.value + 1)), "number"
    for test in getattr(node, "ifs", [node.test] if isinstance(node, (ast.If, ast.IfExp, ast.While)) else []):
        yield test, _text(ast.UnaryOp(ast.Not(), test)), "condition"
    if isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_call(call: ast.Call) -> Iterator[tuple[ast.expr, str, str]]:
    name, function, given = _called(call), call.func, call.args
    if name in OTHER_NAME:
        other = ast.Name(OTHER_NAME[name]) if isinstance(function, ast.Name) else None
        yield function, ast.unparse(other or ast.Attribute(function.value, OTHER_NAME[name])), "min and max"  # type: ignore[attr-defined]
    if name in DROPPED:
        method = isinstance(function, ast.Attribute) and getattr(function.value, "id", "") not in MODULES
        kept = [function.value] if isinstance(function, ast.Attribute) and method else given
        yield from ((call, _text(one), "call dropped") for one in kept[:1] if not isinstance(one, ast.Starred))
    texts = any(isinstance(one, ast.Starred | ast.JoinedStr) or _is_word(one) for one in given)
    if len(given) > 1 and not texts and name not in SYMMETRIC and ast.dump(given[0]) != ast.dump(given[1]):
        swapped = [given[1], given[0], *given[2:]]
        yield call, _text(ast.Call(function, swapped, call.keywords)), "arguments swapped"


def _is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _text(expression: ast.expr) -> str:
    return f"({ast.unparse(expression)})"
