"""Runs of the workflow through a private Slurm, and the table of faults that comes of them."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

from faults import Fault, page_with, table  # noqa: E402

PAGE = ROOT / "docs" / "cluster.md"
_FOUND: list[Fault] = []


@pytest.fixture(scope="session")
def slurm():
    """A private Slurm that lives as long as the tests."""
    from private_slurm import Unavailable, private_slurm

    context = private_slurm()
    try:
        running = context.__enter__()
    except Unavailable as error:
        pytest.exit(str(error), returncode=1)
    try:
        yield running
    finally:
        context.__exit__(None, None, None)


@pytest.fixture(scope="session")
def faults():
    """Where tests leave what they saw."""
    return _FOUND


def pytest_terminal_summary(terminalreporter, exitstatus):
    """Print the table of faults; where all went well, write it to the page."""
    if _FOUND:
        terminalreporter.write_line(f"\n{table(_FOUND)}")
        if exitstatus == 0:
            PAGE.write_text(page_with(_FOUND, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
            terminalreporter.write_line(f"written to {PAGE.relative_to(ROOT)}")
