"""The documentation site: it builds without a word, its links lead somewhere, and it asks no other host."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs `make install EXTRA=docs`"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built strictly: a broken link between pages ends the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=570)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return folder


def test_every_link_leads_to_a_file_and_a_place_in_it(site):
    lost = []
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for address in re.findall(r'(?:href|src)="([^"]+)"', text):
            path, place = urldefrag(unquote(address.replace("&amp;", "&")))
            if re.match(r"[a-z]+:|//", path) or page.name == "404.html":
                continue
            target = page if not path else (page.parent / path).resolve()
            there = target.is_file() or (target / "index.html").is_file()
            if there and place and target.suffix == ".html":
                there = f'id="{place}"' in target.read_text(encoding="utf-8")
            if not there:
                lost.append((page.name, address))
    assert lost == []


def test_the_home_has_the_findings_and_the_published_page_is_there(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    assert "provably break it" in text
    assert (site / "published" / "report.html").is_file()
    assert (site / "published" / "figures" / "paired_spider-minibatch_sgd.svg").is_file()


def test_no_other_host_is_asked_for_anything(site):
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//(?!silodp)[^"]*"', text), (
            page
        )
