"""Numba's compiler with a cache that is named by the sources of all kernels, as a kernel may use another file's."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
from numba import njit as numba_njit
from numba.core import config

_SOURCES = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
_PARENT = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(platformdirs.user_cache_dir(), "silodp")
CACHE = os.path.join(_PARENT, f"kernels-{hashlib.sha256(_SOURCES).hexdigest()[:16]}")


def njit(**options: Any) -> Callable[[Callable], Callable]:
    """`numba.njit` with the cache in `CACHE`; a decorator."""

    def compiled(function: Callable) -> Callable:
        former, config.CACHE_DIR = config.CACHE_DIR, CACHE  # type: ignore[attr-defined]
        try:
            return numba_njit(**options)(function)
        finally:
            config.CACHE_DIR = former  # type: ignore[attr-defined]

    return compiled
