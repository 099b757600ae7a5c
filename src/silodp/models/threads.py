"""Threads of a job: points of the stack side by side, matrix products on one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import scipy.linalg  # noqa: F401, whose library the kernels' matrix products use: loaded later it would keep all cores
import torch
from threadpoolctl import threadpool_limits

_pool: ThreadPoolExecutor | None = None
_threads = 1


def use_threads(threads: int) -> None:
    """Work on points with `threads` threads; matrix products stay single-threaded, as cores would change results."""
    global _pool, _threads
    if _pool is not None:
        _pool.shutdown()
    _pool = ThreadPoolExecutor(threads) if threads > 1 else None
    _threads = threads
    threadpool_limits(1, user_api="blas")
    torch.set_num_threads(1)


def side_by_side(work: Callable[[int, int], object], count: int) -> None:
    """Call `work(start, stop)` so that 0 … count − 1 are covered once, side by side where threads are allowed."""
    if _pool is None or count < _threads:
        work(0, count)
        return
    bounds = [count * t // _threads for t in range(_threads + 1)]
    list(_pool.map(work, bounds[:-1], bounds[1:]))
