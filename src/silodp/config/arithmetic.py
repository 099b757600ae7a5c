"""Arithmetic in files, as in `2*C*sqrt(2*ln(1.25/delta))/epsilon`: parsed by Python, evaluated node by node."""

import ast
import math
import operator
from collections.abc import Callable, Mapping

_OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "ln": math.log,
    "exp": math.exp,
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
}


def evaluate(
    text: str | float, names: Mapping[str, float], functions: Mapping[str, Callable[..., float]] | None = None
) -> float:
    """The number that an expression of + − * / **, names, numbers and known functions comes to.

    ValueError in one line for anything else, an unknown name, a division by zero, or a result that is not finite.
    """
    known = _FUNCTIONS | dict(functions or {})

    def value(node: ast.AST) -> float:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return float(number)
            case ast.Name(id=name):
                if name not in names:
                    raise ValueError(f"unknown name {name}: must be one of {', '.join(sorted(names))}")
                return names[name]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in known:
                return known[name](*map(value, arguments))
        raise ValueError(f"only + - * / **, numbers, names and {', '.join(known)} are allowed")

    try:
        result = value(ast.parse(str(text), mode="eval").body)
    except (SyntaxError, RecursionError):
        raise ValueError("not an arithmetic expression") from None
    except (ZeroDivisionError, OverflowError, TypeError) as error:
        raise ValueError(f"cannot be computed: {error}") from None
    if not math.isfinite(result):
        raise ValueError("must be finite")
    return result
