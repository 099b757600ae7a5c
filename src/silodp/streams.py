"""Named random streams: a stream's state depends on the seed and its name alone.

So results do not depend on how a run is cut into jobs, on the cores, or on the order of work.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Streams:
    """The tree of named streams below a run's seed; `path` holds the names joined so far.

    The seed is public: a real silo draws from secret streams (`silos/secret_draws.py`).
    """

    seed: int
    path: tuple[str, ...] = ()

    def child(self, *names: object) -> Self:
        """The subtree below `names`."""
        return replace(self, path=self.path + tuple(str(name) for name in names))

    def generator(self, *names: object) -> np.random.Generator:
        """A fresh generator for the stream called `names`; the same name always gives the same numbers."""
        return np.random.Generator(np.random.SFC64(np.frombuffer(self.digest(*names), dtype=np.uint32).tolist()))

    def digest(self, *names: object) -> bytes:
        """The 32 bytes that the stream called `names` is seeded by."""
        parts = [str(self.seed), *self.path, *(str(name) for name in names)]
        # A separator that no name may hold, so that ("a", "bc") and ("ab", "c") are different streams.
        if any("\x1f" in part for part in parts):
            raise ValueError(f"stream {parts[1:]!r}: a name must not hold the separator '\\x1f'")
        return hashlib.sha256("\x1f".join(parts).encode()).digest()
