"""Which printed constants of the theorems nothing feels but their second copy, tests/theory/test_formulas.py.

Each factor of a theorem whose constants are printed is doubled and halved in turn. What can feel it: the bounds that
published tables hold runs against, formulas of claims, the accountant, and the other tests of tests/theory.
`python benchmarks/mutants.py [KEY...]`: all theorems by default, a quarter of an hour.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("helpers", "privacy", "verdicts/checks", "verdicts/claims")]
import test_noise_of_theorems as noise  # noqa: E402
import test_published_bounds as bounds  # noqa: E402
import test_theory as formulas  # noqa: E402

from silodp.theory import THEOREMS  # noqa: E402
from silodp.theory.theorem import Theorem  # noqa: E402
from silodp.verdicts.claims.expressions import evaluated  # noqa: E402

OPTIONS = ["-x", "-q", "-n", "0", "--tb=no", "--no-header"]
OTHERS = ["tests/theory/test_composition.py", "tests/theory/test_theorem.py", "tests/theory/problems"]
OTHERS += ["tests/privacy/test_noise_of_theorems.py"]


def function_of(theorem: Theorem) -> Any:
    """The function with the formula, under the decorators that check it."""
    function = theorem.function
    while inner := [c.cell_contents for c in function.__closure__ or () if inspect.isfunction(c.cell_contents)]:
        function = inner[0]
    return function


def factors(tree: ast.AST) -> list[ast.Constant]:
    """Numbers from 2 on that a product or quotient has; no exponents."""
    sides = [
        side
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)
        for side in (node.left, node.right)
    ]
    return [s for s in sides if isinstance(s, ast.Constant) and isinstance(s.value, int | float) and s.value >= 2]


def mutants() -> Iterator[tuple[str, str]]:
    """Key and what is changed, while the theorem computes with it."""
    for key, theorem in THEOREMS.items():
        if sys.argv[1:] and key not in sys.argv[1:]:
            continue
        function = function_of(theorem)
        source = textwrap.dedent(inspect.getsource(function))
        for place in range(len(factors(ast.parse(source))) if theorem.constant == "printed" else 0):
            for factor in (2.0, 0.5):
                tree = ast.parse(source)
                tree.body[0].decorator_list = []
                number = factors(tree)[place]
                said, number.value = f"{key}, factor {place + 1}: {number.value:g} × {factor:g}", number.value * factor
                names: dict[str, Any] = {}
                exec(compile(ast.fix_missing_locations(tree), key, "exec"), function.__globals__, names)
                kept, function.__code__ = function.__code__, names[function.__name__].__code__
                yield key, said
                function.__code__ = kept


def probes() -> dict[str, Callable[[], np.ndarray]]:
    """What is looked at, as numbers."""
    found: dict[str, Callable[[], np.ndarray]] = {}
    for check in sorted(set(bounds.CHECKS) - bounds.SLOW):
        found[check] = lambda check=check: bounds.bounds_without_training(check)[bounds.NUMBERS].to_numpy(float)
    for name, rows in formulas.FORMULAS.items():
        found[name] = lambda rows=rows: np.array([getattr(evaluated(rows), key) for key in ("value", "high", "slack")])
    return found | {name: lambda of=of: np.array([of()]) for name, (of, _) in noise.SLACKS.items()}


def asked(probe: Callable[[], np.ndarray]) -> tuple[set[str], np.ndarray]:
    """Keys of the theorems that a probe evaluates, and its numbers."""
    keys: set[str] = set()
    call = Theorem.__call__
    Theorem.__call__ = lambda self, **point: (keys.add(self.key), call(self, **point))[1]  # type: ignore[method-assign]
    try:
        return keys, probe()
    finally:
        Theorem.__call__ = call  # type: ignore[method-assign]


def feels(probe: Callable[[], np.ndarray], before: np.ndarray) -> bool:
    try:
        return not np.allclose(probe(), before, rtol=0.05, atol=0, equal_nan=True)
    except Exception:
        return True


if __name__ == "__main__":
    known = {name: (probe, *asked(probe)) for name, probe in probes().items()}
    living, count = [], 0
    for key, said in mutants():
        count += 1
        if any(key in keys and feels(probe, before) for probe, keys, before in known.values()):
            continue
        if pytest.main([*OPTIONS, f"tests/theory/{key.partition('-')[0]}", *OTHERS]) == 0:
            living.append(said)
            print("lives:", said, flush=True)
    print(f"{len(living)} of {count} mutants live without the second copy")
