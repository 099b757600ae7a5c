"""Compiled kernels are those of the sources as they are."""

import shutil
import subprocess
import sys

import pytest
from numba import vectorize

from silodp.models.cpu import compiled

KERNEL = """
from toy.compiled import njit
from room.parts import factor
@njit(cache=True)
def kernel(x):
    return factor(x) + 1
print(kernel(10))
"""
PARTS = """
from numba import njit
@njit
def factor(x):
    return {} * x
"""
FLOORED = """
from toy.compiled import njit
from room.parts import LEAST
@njit(cache=True)
def inner(x):
    return max(x, LEAST)
@njit(cache=True)
def kernel(x):
    return inner(x)
print(kernel(10))
"""
LISTED = """
from toy.compiled import njit
from room.parts import LIST
@njit(cache=True)
def kernel(place):
    return LIST[place]
print(kernel(0), kernel(1500))
"""
ARRAY = "import numpy as np; LIST = np.zeros(3000); LIST[0] = {}"
FAST = """
from toy.compiled import njit
from room.parts import OPTIONS
@njit(cache=True, **OPTIONS)
def kernel(x):
    return x * x
print(kernel(10), kernel.targetoptions.get("fastmath"))
"""


@pytest.mark.parametrize(
    ("kernel", "parts", "printed"),
    [
        (KERNEL, [PARTS.format(2), PARTS.format(3)], ["21", "31"]),
        (FLOORED, ["LEAST = 20", "LEAST = 30", "LEAST = 20"], ["20", "30", "20"]),
        (LISTED, [ARRAY.format("1.0"), ARRAY.format("1.0 + 1e-10")], ["1.0 0.0", "1.0000000001 0.0"]),
        (LISTED, [ARRAY.format("1.0"), ARRAY.format("1.0; LIST[1500] = 2")], ["1.0 0.0", "1.0 2.0"]),
        (FAST, ["OPTIONS = {}", "OPTIONS = {'fastmath': {'nsz'}}"], ["100 None", "100 {'nsz'}"]),
    ],
)
def test_a_kernel_is_compiled_again_when_what_it_uses_of_another_folder_changes(
    tmp_path, monkeypatch, kernel, parts, printed
):
    folder = tmp_path / "toy"
    folder.mkdir()
    (tmp_path / "room").mkdir()
    shutil.copy(compiled.__file__, folder)
    (folder / "kernel.py").write_text(kernel)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    found, command = [], [sys.executable, "-m", "toy.kernel"]
    for text in parts:
        (tmp_path / "room" / "parts.py").write_text(text)
        found.append(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip())
    assert found == printed
    # A state that comes back finds what was compiled for it.
    kernels = kernel.count("@njit(cache=True")
    assert len(list((tmp_path / "cache").iterdir())) == kernels * len(set(parts))


def plain(x):
    return x + 1


@vectorize
def each(x):
    return x + 1


class Constants:
    LEAST = 1


@pytest.mark.parametrize(
    "kernel",
    [lambda x: plain(x), lambda x: each(x), lambda x: compiled.config.CACHE_DIR, lambda x: x + Constants.LEAST],
    ids=["function", "vectorize", "module", "class"],
)
def test_a_kernel_names_nothing_whose_change_goes_unseen(kernel):
    with pytest.raises(ValueError, match=r"<lambda>: \w+: must be a compiled function or a value, and must be named"):
        compiled.njit()(kernel)


def test_a_kernel_stands_below_what_it_names():
    def kernel(x):
        return later(x)  # noqa: F821

    with pytest.raises(ValueError, match="kernel: later: must stand above the function"):
        compiled.njit()(kernel)
