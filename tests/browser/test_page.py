"""The report page in a real browser, from a file: it opens, asks for nothing, shows every figure, sorts, and links."""

import os
import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import driver
import pytest

from silodp.cli import main

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
WIDTHS = {"phone": 390, "desktop": 1280}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of the published tables, with verdicts."""
    folder = tmp_path_factory.mktemp("page") / "published"
    shutil.copytree(ROOT / "results" / "published", folder)
    assert main(["-q", "claims", str(folder), "--output", str(folder / "claims.csv")]) == 0
    assert main(["-q", "report", str(folder), "--output", str(folder / "report.html")]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module", params=WIDTHS)
def browser(request, page):
    """A window on the page, as wide as a phone or a desktop."""
    lacking = driver.missing()
    assert not lacking, (
        f"install {lacking} (Debian: apt-get install chromium chromium-driver), as make test-browser does"
    )
    window = driver.Browser(WIDTHS[request.param])
    window.open(page)
    yield window
    # Pictures to look at, where they are asked for.
    if os.environ.get("SILODP_PICTURES"):
        for name, fragment in (
            ("top", ""),
            ("claim", "#claim-C1"),
            ("experiment", "#experiment-1"),
            ("privacy", "#privacy"),
        ):
            window.open(page, fragment)
            window.picture(Path(os.environ["SILODP_PICTURES"]) / f"{request.param}-{name}.png")
    window.close()


def test_it_opens_without_a_word_in_the_console_and_asks_for_nothing(browser, page):
    browser.log("browser")
    browser.open(page, "#claims")
    browser.run("location.reload()")
    assert browser.run("return document.readyState") in ("complete", "interactive")
    assert browser.run("return document.querySelector('h1').textContent").startswith("Run")
    assert browser.log("browser") == []
    addresses = browser.addresses()
    assert any(urlparse(one).path == urlparse(page.as_uri()).path for one in addresses)
    assert {urlparse(one).scheme for one in addresses} <= {"file", "data"}


def test_every_figure_is_visible(browser):
    browser.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    sizes = browser.run(
        "return [...document.images].map((one) => [one.complete, one.naturalWidth, one.offsetWidth, one.alt.length])"
    )
    published = ROOT / "results" / "published"
    drawn = [file for folder in ("figures", "bounds", "checkins") for file in (published / folder).glob("*.png")]
    assert len(sizes) == len(drawn)
    assert all(complete and natural > 0 and shown > 100 and words > 0 for complete, natural, shown, words in sizes)


def test_nothing_is_wider_than_the_window(browser):
    browser.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    # Not innerWidth: a phone makes that as wide as the widest thing on the page.
    page = "document.documentElement"
    assert browser.run(f"return {page}.scrollWidth - {page}.clientWidth") <= 0


SORTED = """
const table = document.querySelectorAll("table.sortable")[arguments[0]];
return [...table.tBodies[0].rows].map((row) => row.cells[arguments[1]].textContent);
"""


def runs(values):
    """The values without those that repeat the one before."""
    return [value for value, before in zip(values, [None, *values], strict=False) if value != before]


def test_a_heading_sorts_by_pointer_and_by_keyboard(browser):
    """The verdicts by name; and a table of results by claimed ε, as numbers with what has none last."""
    before = browser.run(SORTED, 0, 1)
    assert len(runs(before)) > len(set(before)) > 2
    (verdict, *_) = browser.find("#claims table.claims th:nth-child(2) button")
    browser.click(verdict)
    upwards = browser.run(SORTED, 0, 1)
    assert sorted(upwards) == sorted(before)
    assert len(runs(upwards)) == len(set(before))
    heading = "return document.querySelector('#claims table.claims th:nth-child(2)').getAttribute('aria-sort')"
    assert browser.run(heading) == "ascending"
    browser.type(verdict, driver.ENTER)
    assert runs(browser.run(SORTED, 0, 1)) == runs(upwards)[::-1]
    assert browser.run(heading) == "descending"
    place = browser.run(
        "return [...document.querySelectorAll('table.sortable')].indexOf("
        "document.querySelector('#experiment-1 table.sortable'))"
    )
    (epsilon, *_) = browser.find("#experiment-1 table.sortable th:nth-child(2) button")
    browser.click(epsilon)
    shown = browser.run(SORTED, place, 1)
    numbers = [float(one) for one in shown if one != "–"]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 2
    assert "–" in shown
    assert shown[: len(numbers)] == [one for one in shown if one != "–"]


def test_every_link_leads_somewhere(browser, page):
    found = browser.run("return [...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))")
    inside = [one[1:] for one in found if one.startswith("#")]
    assert len(inside) > 50
    assert browser.run("return arguments[0].filter((id) => !document.getElementById(id))", sorted(set(inside))) == []
    files = [unquote(one) for one in found if not one.startswith("#")]
    assert files
    assert [one for one in files if not (page.parent / one).is_file()] == []


def test_choosing_a_claim_opens_its_numbers(browser, page):
    browser.open(page)
    (link, *_) = browser.find("#claims table.claims a[href='#claim-N1']")
    browser.click(link)
    assert browser.run("return document.getElementById('claim-N1').closest('details').open")
    assert browser.run("return document.getElementById('claim-N1').getBoundingClientRect().height") > 0


def test_it_prints(browser):
    browser.media("print")
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.media("")
    text = browser.printed()
    assert text.startswith(b"%PDF")
    assert text.count(b"/Type /Page") > 3
