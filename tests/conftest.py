"""Fixtures of the whole suite."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from measured import PAGE, Tried, page_with

ROOT = Path(__file__).resolve().parents[1]


def _where(name: str) -> Path | None:
    """A folder that holds the dataset's files with the right checksums, fetched from the set mirror if need be."""
    from silodp.datasets.cache import FetchError, cache_folder, local_files
    from silodp.datasets.fetch import fetch

    mirror = os.environ.get("SILODP_DATA_MIRROR")
    # A mirror folder is laid out as the cache, so it is read in place.
    folders = [cache_folder(), *([Path(mirror)] if mirror else []), ROOT.parent / "shared" / "data"]
    for folder in folders:
        try:
            local_files(name, cache=folder)
        except FetchError:
            continue
        return folder
    if mirror:
        try:
            fetch(name, progress=False)
        except FetchError:
            return None
        return cache_folder()
    return None


@pytest.fixture(scope="session")
def needs_data() -> Callable[[str], Path]:
    """`needs_data("mnist")` gives a folder for `load(cache=…)`; skips where there is none, but fails when CI is set."""
    known: dict[str, Path | None] = {}

    def folder(name: str) -> Path:
        if name not in known:
            known[name] = _where(name)
        found = known[name]
        if found is None:
            reason = f"{name} is neither in the cache nor in a mirror; run `silodp fetch {name}`"
            if os.environ.get("CI"):
                pytest.fail(f"{reason} (in CI data must be there)")
            pytest.skip(reason)
        return found

    return folder


_TRIED: list[Tried] = []


@pytest.fixture(scope="session")
def tried() -> list[Tried]:
    """Rows for the table of faults in docs/reliability.md; a slow test adds its own before it judges them."""
    return _TRIED


def pytest_terminal_summary(terminalreporter):
    """Write what slow tests counted, survived or not."""
    if _TRIED:
        PAGE.write_text(page_with(_TRIED, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        terminalreporter.write_line(f"{len(_TRIED)} rows written to docs/{PAGE.name}")
