"""The report page in a real browser, from a file: it opens, asks for nothing, shows every figure, and links."""

import base64
import io
import re
import shutil
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

import driver
import pytest
from PIL import Image

from silodp.jobs.__main__ import main as run_job

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[3]
WIDTHS = {"phone": 390, "desktop": 1280}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of the published tables, with verdicts."""
    folder = tmp_path_factory.mktemp("page") / "published"
    shutil.copytree(ROOT / "results" / "published", folder)
    assert run_job(["claims", f"folder={folder}", f"output={folder / 'claims.csv'}"]) == 0
    assert run_job(["report", f"folder={folder}", f"output={folder / 'report.html'}"]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module", params=WIDTHS)
def browser(request, page):
    """A window on the page, as wide as a phone or a desktop."""
    lacking = driver.missing()
    assert not lacking, f"install {lacking} (Debian: apt-get install chromium chromium-driver)"
    window = driver.Browser(WIDTHS[request.param])
    window.open(page)
    yield window
    window.close()


def wait(browser, script, *arguments):
    """What a script returns as soon as that is true: figures are unpacked when their part is opened."""
    for _ in range(2400):
        if value := browser.run(script, *arguments):
            return value
        time.sleep(0.05)
    raise AssertionError(f"never true: {script}")


def unfold(browser):
    """Open everything that is folded, and wait until it is filled."""
    wait(browser, "return document.readyState === 'complete'")
    # What is folded, hidden by a tab or packed; packed parts hold folded ones.
    wait(
        browser,
        "document.querySelectorAll('details').forEach((part) => (part.open = true));"
        "document.querySelectorAll('figure').forEach((figure) => (figure.hidden = false));"
        "document.querySelectorAll('.drawing, .packed').forEach(unpack);"
        "return !document.querySelector('main script[type=\"text/plain\"]')",
    )


def test_it_opens_without_a_word_in_the_console_and_asks_for_nothing(browser, page):
    browser.log("browser")
    browser.open(page, "#claims")
    browser.run("location.reload()")
    assert wait(browser, "return document.readyState === 'complete'")
    assert "replicated" in browser.run("return document.querySelector('h1').textContent")
    unfold(browser)
    assert browser.log("browser") == []
    addresses = browser.addresses()
    assert any(urlparse(address).path == urlparse(page.as_uri()).path for address in addresses)
    assert {urlparse(address).scheme for address in addresses} <= {"file", "data", "blob"}


def test_it_is_small_and_opens_with_findings_and_a_picture(browser, page):
    browser.open(page)
    # 56 experiments on one page.
    assert page.stat().st_size <= 2_400_000
    # The papers' figures are in the page itself, for readers without a script.
    assert browser.run("return document.querySelectorAll('*').length") <= 11_000
    found = browser.run("return [...document.querySelectorAll('.finding h2')].map((finding) => finding.textContent)")
    assert len(found) == 3
    assert "the newer SPIDER" in found[0]
    assert all(len(sentence.split()) <= 15 for sentence in found)
    # On a desktop's first screen two pictures are whole, and the third finding begins; on a phone's the first begins.
    boxes = browser.run(
        "const drawings = [...document.querySelectorAll('.finding .drawing')].filter((one) => one.offsetParent);"
        "return drawings.map((one) => one.getBoundingClientRect()).map((box) => [box.top, box.bottom])"
    )
    phone = browser.run("return innerWidth") < 600
    assert boxes[0][0] < 900
    assert phone or (boxes[1][1] < 900 and boxes[2][0] < 900)
    assert phone or browser.run("return document.documentElement.scrollHeight") <= 13_000
    assert browser.run(
        "const a = document.querySelector('.drawing svg'), b = document.querySelector('table, details.claim');"
        "return Boolean(a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING)"
    )


def test_every_figure_is_visible(browser, page):
    browser.open(page)
    unfold(browser)
    sizes = browser.run(
        "return [...document.querySelectorAll('figure .drawing')].map((picture) => ["
        "picture.getBoundingClientRect().width, picture.getBoundingClientRect().height,"
        " picture.getAttribute('aria-label').length])"
    )
    published = ROOT / "results" / "published"
    drawn = [
        file for folder in ("figures", "bounds", "checkins", "board") for file in (published / folder).glob("*.svg")
    ]
    # An experiment whose figures stand elsewhere links to its others.
    linked = browser.run("return document.querySelectorAll('p.settings a[href$=\".svg\"]').length")
    assert len(sizes) + linked == len(drawn)
    assert all(width > 100 and height > 100 and words > 0 for width, height, words in sizes)


def test_nothing_is_wider_than_the_window(browser, page):
    browser.open(page)
    unfold(browser)
    # Not innerWidth: a phone makes that as wide as the widest thing on the page.
    place = "document.documentElement"
    assert browser.run(f"return {place}.scrollWidth - {place}.clientWidth") <= 0
    over = browser.run(
        "return [...document.querySelectorAll('table')].filter((table) =>"
        " table.scrollWidth > document.documentElement.clientWidth && !table.closest('.scroll')).length"
    )
    assert over == 0


def test_text_of_every_drawing_is_at_least_9_px_and_panels_stand_one_by_row_on_a_phone(browser, page):
    browser.open(page)
    unfold(browser)
    small = browser.run(
        "return [...document.querySelectorAll('.drawing svg:not(.shared)')].flatMap((svg) => {"
        "const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;"
        "return [...svg.querySelectorAll('text')].map((text) => ["
        "scale * parseFloat(getComputedStyle(text).fontSize), text.textContent]);"
        "}).filter(([size]) => size && size < 9)"
    )
    assert small == []
    rows = browser.run(
        "return [...document.querySelectorAll('.drawing.panels')].map((drawing) => {"
        "const tops = [...drawing.querySelectorAll('svg:not(.shared)')].map((svg) => svg.getBoundingClientRect().top);"
        "return [tops.length, new Set(tops).size]})"
    )
    assert len(rows) > 5
    assert all(count == lines if browser.run("return innerWidth") < 600 else lines < count for count, lines in rows)


def test_a_drawing_is_saved_as_a_png(browser, page):
    browser.open(page)
    unfold(browser)
    browser.run(
        "HTMLAnchorElement.prototype.click = function () { window.saved = [this.download, this.href]; };"
        "document.querySelector('.numbered .png').click()"
    )
    name, address = wait(browser, "return window.saved")
    assert name.startswith("figure-figures-")
    picture = Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,"))))
    assert picture.width > 900
    assert picture.convert("RGB").getpixel((1, 1)) == (255, 255, 255)


def test_points_say_their_values_and_folded_parts_open_by_the_keyboard(browser, page):
    browser.open(page)
    words = browser.run("return document.querySelector('.finding use title').textContent")
    assert "MNIST: +0.0095" in words or "CIFAR-10" in words
    unfold(browser)
    words = browser.run("return document.querySelector('.numbered use title').textContent")
    assert "at ε =" in words
    assert "true ε in [" in words
    browser.open(page)
    (summary, *_) = browser.find(".finding details summary")
    browser.type(summary, driver.ENTER)
    assert browser.run("return document.querySelector('.finding details').open")


def test_every_link_leads_somewhere(browser, page):
    browser.open(page)
    unfold(browser)
    links = browser.run("return [...document.querySelectorAll('a')].map((link) => link.getAttribute('href'))")
    inside = [link[1:] for link in links if link.startswith("#")]
    assert len(inside) > 50
    assert browser.run("return arguments[0].filter((id) => !document.getElementById(id))", sorted(set(inside))) == []
    outside = [link for link in links if link.startswith("https:")]
    assert len(set(outside)) == 3
    assert all(link.startswith("https://arxiv.org/abs/") for link in outside)
    files = [unquote(link) for link in links if not link.startswith(("#", "https:", "data:"))]
    assert files
    assert [file for file in files if not (page.parent / file).is_file()] == []


def test_a_link_to_a_claim_opens_its_numbers(browser, page):
    browser.open(page)
    place = browser.run("return document.querySelector('[id^=claim-]').id")
    browser.run("location.hash = encodeURIComponent(arguments[0])", place)
    assert wait(browser, "return document.getElementById(arguments[0]).open", place)
    assert wait(browser, "return document.getElementById(arguments[0]).textContent.includes('Rule:')", place)
    assert browser.run("return document.getElementById(arguments[0]).getBoundingClientRect().height", place) > 0


def test_it_is_dark_where_the_system_asks_for_it(browser, page):
    browser.open(page)
    light = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.scheme("dark")
    dark = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.scheme("light")
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(22, 24, 27)")


def test_it_prints_on_few_pages(browser, page, tmp_path):
    browser.open(page)
    browser.media("print")
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.media("")
    text = browser.printed(page, tmp_path)
    assert text.startswith(b"%PDF")
    assert 3 < len(re.findall(rb"/Type\s*/Page[^s]", text)) < 50
