"""Where slow tests leave their counts, and the page that these are written to."""

import pytest
from measured import PAGE, Tried, page_with

_TRIED: list[Tried] = []


@pytest.fixture(scope="session")
def tried():
    """Rows for the table of faults; a test adds its own before it judges them."""
    return _TRIED


def pytest_terminal_summary(terminalreporter):
    """Write what was counted, survived or not."""
    if _TRIED:
        PAGE.write_text(page_with(_TRIED, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        terminalreporter.write_line(f"{len(_TRIED)} rows written to docs/{PAGE.name}")
