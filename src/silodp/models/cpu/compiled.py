"""Numba's compiler with a cache that is named by all that a kernel compiles in: functions and constants of any file."""

import builtins
import dis
import hashlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import platformdirs
from numba import njit as numba_njit
from numba.core import config
from numba.core.dispatcher import Dispatcher

_PARENT = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(platformdirs.user_cache_dir(), "silodp")
# Of other modules a kernel names what it uses one by one, so that a change of it is seen.
_LIBRARIES = ("builtins", "math", "numpy")


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
        is_module = isinstance(value, ModuleType)
        of = value.__name__ if is_module else getattr(value, "__module__", None) if callable(value) else None
        if of not in _LIBRARIES:
            parts.append(f"{name} {_value_text(f'{function.__name__}: {name}', value)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _value_text(place: str, value: Any) -> str:
    """All that a value compiles in; ValueError, which says `place`, where a change of it would not be seen."""
    if isinstance(value, Dispatcher):
        return _digest(value.py_func, value.targetoptions)
    if isinstance(value, ModuleType) or callable(value):
        raise ValueError(f"{place}: must be a compiled function or a value, and must be named itself")
    if isinstance(value, tuple):
        return f"{getattr(value, '_fields', '')}{[_value_text(place, one) for one in value]}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.descr} {value.shape} {value.tobytes().hex()}"
    return repr(value)


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
