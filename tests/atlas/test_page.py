"""The atlas page and the letters are what the presets say, and every row keeps the page's rules."""

import runpy
from pathlib import Path

import pytest
from small import ROOT

from silodp.atlas.mechanism import SYSTEMS, load_mechanism


def test_page_and_letters_follow_from_the_presets():
    files = runpy.run_path(str(ROOT / ".ci" / "atlas-page"))["files"]()
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run .ci/atlas-page"
    assert set((SYSTEMS / "unasked").glob("*.md")) == set(files) - {ROOT / "docs" / "atlas.md"}
    for path in (SYSTEMS / "unasked").glob("*.yaml"):
        assert path.stem not in files[ROOT / "docs" / "atlas.md"]


@pytest.mark.parametrize("path", sorted(SYSTEMS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_row_names_a_shipped_configuration_and_quotes_its_claim(path: Path):
    about = load_mechanism(path).about
    assert about is not None
    assert about.configuration
    assert about.right
    assert len(about.words.split()) <= 15
    assert ":" in about.evidence or "cells" in about.evidence
    asked = path.parent == SYSTEMS
    assert about.ran or not asked
    assert bool(about.question) != asked
