"""The atlas page is what the presets say."""

import runpy
from pathlib import Path

import pytest
from small import ROOT


@pytest.fixture(scope="module")
def files() -> dict[Path, str]:
    return runpy.run_path(str(ROOT / ".ci" / "atlas-page"))["files"]()


def test_page_figure_and_texts_follow_from_the_presets(files):
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run .ci/atlas-page"
    reports = set((ROOT / "docs" / "atlas" / "reports").glob("*.md"))
    assert reports == {path for path in files if path.parent.name == "reports"}


def test_good_citizens_lead_and_no_system_is_called_broken(files):
    page = files[ROOT / "docs" / "atlas.md"]
    rows = [line for line in page.splitlines() if line.startswith("| [")]
    assert len(rows) >= 12
    infinite = ["∞" in row for row in rows]
    assert infinite == sorted(infinite)
    for text in files.values():
        assert "broken" not in text
