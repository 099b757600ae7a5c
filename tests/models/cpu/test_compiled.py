"""Compiled kernels are those of the sources as they are."""

import shutil
import subprocess
import sys

from silodp.experiments.checkins import kernel
from silodp.models.cpu import compiled, kernels

KERNEL = """
from toy.compiled import njit
from toy.parts import factor
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


def test_a_kernel_is_compiled_again_when_a_function_of_another_file_changes(tmp_path, monkeypatch):
    folder = tmp_path / "toy"
    folder.mkdir()
    shutil.copy(compiled.__file__, folder)
    (folder / "kernel.py").write_text(KERNEL)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    printed = []
    for number in (2, 3):
        (folder / "parts.py").write_text(PARTS.format(number))
        command = [sys.executable, "-m", "toy.kernel"]
        printed.append(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip())
    assert printed == ["21", "31"]


def test_all_kernels_share_the_cache_of_this_state_of_the_sources():
    for function in (kernel._walk, kernels._affine_steps):
        assert compiled.CACHE in function.stats.cache_path
