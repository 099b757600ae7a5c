"""Numba's compiler with a cache that is named by all that a kernel compiles in: functions and constants of any file."""

import builtins
import dis
import hashlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import platformdirs
from numba import njit as numba_njit
from numba.core import config
from numba.core.dispatcher import Dispatcher

_PARENT = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(platformdirs.user_cache_dir(), "silodp")


def njit(**options: Any) -> Callable[[Callable], Callable]:
    """`numba.njit` with a folder of its own for each kernel's compiled forms; a decorator."""

    def compiled(function: Callable) -> Callable:
        folder = os.path.join(_PARENT, f"kernels-{_digest(function, options)[:16]}")
        former, config.CACHE_DIR = config.CACHE_DIR, folder  # type: ignore[attr-defined]
        try:
            return numba_njit(**options)(function)
        finally:
            config.CACHE_DIR = former  # type: ignore[attr-defined]

    return compiled


def _digest(function: Callable, options: Mapping[str, Any]) -> str:
    """SHA-256 of a kernel's source and options, and of the values, and kernels, that it names."""
    chosen = {name: sorted(value) if isinstance(value, set) else value for name, value in options.items()}
    parts = [inspect.getsource(function), repr(sorted(chosen.items()))]
    for name, value in sorted(_named_values(function).items()):
        if isinstance(value, Dispatcher):
            parts.append(f"{name} {_digest(value.py_func, value.targetoptions)}")
        elif isinstance(value, FunctionType):
            raise ValueError(f"{function.__name__}: {name}: must be a compiled function")
        elif not isinstance(value, ModuleType) and not callable(value):
            parts.append(f"{name} {value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _named_values(function: Any) -> dict[str, Any]:
    """Globals and enclosing names of a function → their values; ValueError for a global that is not there yet."""
    known = vars(builtins) | function.__globals__
    names = {
        step.argval
        for code in _codes(function.__code__)
        for step in dis.get_instructions(code)
        if step.opname == "LOAD_GLOBAL"
    }
    if missing := sorted(names - known.keys()):
        raise ValueError(f"{function.__name__}: {missing[0]}: must stand above the function")
    return {name: known[name] for name in names} | dict(inspect.getclosurevars(function).nonlocals)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
