"""The report page in a real browser, from a file: it opens, asks for nothing, shows every figure, sorts, and links."""

import os
import re
import shutil
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

import driver
import pytest

from silodp.cli import main

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[3]
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
            ("experiment", "#experiment-mnist_mlp"),
            ("privacy", "#privacy"),
        ):
            window.open(page, fragment)
            window.picture(Path(os.environ["SILODP_PICTURES"]) / f"{request.param}-{name}.png")
    window.close()


def wait(browser, script, *arguments):
    """What a script returns as soon as that is true: parts of the page are unpacked when they are opened."""
    for _ in range(100):
        if found := browser.run(script, *arguments):
            return found
        time.sleep(0.05)
    raise AssertionError(f"never true: {script}")


def unfold(browser):
    """Open everything that is folded, and wait until it is filled."""
    browser.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    wait(browser, "return !document.querySelector('.packed script, .drawing script')")


def test_it_opens_without_a_word_in_the_console_and_asks_for_nothing(browser, page):
    browser.log("browser")
    browser.open(page, "#claims")
    browser.run("location.reload()")
    assert wait(browser, "return document.readyState === 'complete'")
    assert "replicated" in browser.run("return document.querySelector('h1').textContent")
    unfold(browser)
    assert browser.log("browser") == []
    addresses = browser.addresses()
    assert any(urlparse(one).path == urlparse(page.as_uri()).path for one in addresses)
    assert {urlparse(one).scheme for one in addresses} <= {"file", "data", "blob"}


def test_it_is_small_when_it_opens(browser, page):
    browser.open(page)
    assert page.stat().st_size <= 3_000_000
    assert browser.run("return document.querySelectorAll('*').length") <= 15_000
    cards = browser.run("return [...document.querySelectorAll('.card')].map((one) => one.textContent)")
    assert len(cards) == 3
    assert all("arXiv:" in card for card in cards)
    # The finding and the first picture come before any table.
    assert browser.run(
        "const a = document.querySelector('.drawing svg'), b = document.querySelector('table, details.claim');"
        "return Boolean(a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING)"
    )


def test_every_figure_is_visible(browser, page):
    browser.open(page)
    unfold(browser)
    sizes = browser.run(
        "return [...document.querySelectorAll('.drawing svg')].map((one) => [one.getBoundingClientRect().width,"
        " one.getBoundingClientRect().height, one.getAttribute('aria-label').length])"
    )
    published = ROOT / "results" / "published"
    drawn = [file for folder in ("figures", "bounds", "checkins") for file in (published / folder).glob("*.svg")]
    assert len(sizes) == len(drawn)
    assert all(width > 100 and height > 100 and words > 0 for width, height, words in sizes)


def test_nothing_is_wider_than_the_window(browser, page):
    browser.open(page)
    unfold(browser)
    # Not innerWidth: a phone makes that as wide as the widest thing on the page.
    place = "document.documentElement"
    assert browser.run(f"return {place}.scrollWidth - {place}.clientWidth") <= 0
    over = browser.run(
        "return [...document.querySelectorAll('table')].filter((one) =>"
        " one.scrollWidth > document.documentElement.clientWidth && !one.closest('.scroll')).length"
    )
    assert over == 0


ROWS = """
const table = document.querySelector(arguments[0]);
const heading = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden);
const rows = shown.map((row) => [...row.cells].map((one) => one.textContent));
return [heading, rows];
"""
RESULTS, PRIVACY = "#results .packed table", "#privacy .packed table"


def opened(browser, page):
    browser.open(page)
    browser.run("document.querySelectorAll('details.rows').forEach((one) => (one.open = true))")
    wait(browser, "return document.querySelectorAll('.packed table').length === 2")


def choose(browser, name, value):
    browser.run(
        "const one = document.querySelector(`form.filters [name='${arguments[0]}']`); one.value = arguments[1];"
        "one.dispatchEvent(new Event('input', { bubbles: true }))",
        name,
        value,
    )


def test_filters_narrow_all_tables_and_the_figures(browser, page):
    opened(browser, page)
    choose(browser, "experiment", "wbcd_mlp")
    choose(browser, "ε", "3")
    for table in (RESULTS, PRIVACY):
        heading, rows = browser.run(ROWS, table)
        assert rows
        assert {row[heading.index("experiment")] for row in rows} == {"wbcd_mlp"}
        assert {row[heading.index("ε")] for row in rows} == {"3"}
    shown = browser.run(
        "return [...document.querySelectorAll('section[data-experiment]')].filter((one) => !one.hidden)"
        ".map((one) => one.dataset.experiment)"
    )
    assert shown == ["wbcd_mlp"]
    choose(browser, "search", "local sgd")
    heading, rows = browser.run(ROWS, RESULTS)
    assert rows
    assert {row[heading.index("algorithm")] for row in rows} == {"ISRL-DP Local SGD"}
    browser.click(browser.find("form.filters button[type='reset']")[0])
    caption = f"return document.querySelector('{RESULTS} caption').textContent"
    wait(browser, caption.replace("return ", "return /: (\\d+) of \\1 rows/.test(") + ")")


def test_a_long_table_is_shown_in_part_until_all_is_asked_for(browser, page):
    opened(browser, page)
    assert len(browser.run(ROWS, RESULTS)[1]) == 100
    browser.click(browser.find("#results button.more")[0])
    total = sum(len(path.read_text().splitlines()) - 1 for path in (page.parent / "tables").glob("*.csv"))
    assert len(browser.run(ROWS, RESULTS)[1]) == total


def test_a_heading_sorts_by_pointer_and_by_keyboard(browser, page):
    """All rows by delivered ε as numbers, what has none last; and back by the keyboard."""
    opened(browser, page)
    heading, _ = browser.run(ROWS, RESULTS)
    place = heading.index("delivered ε")
    (button,) = browser.find(f"{RESULTS} th:nth-child({place + 1}) button")
    browser.click(button)
    shown = [row[place].replace(" ▲", "") for row in browser.run(ROWS, RESULTS)[1]]
    numbers = [float(one) for one in shown]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 2
    sort = f"return document.querySelector('{RESULTS} th:nth-child({place + 1})').getAttribute('aria-sort')"
    assert browser.run(sort) == "ascending"
    browser.type(button, driver.ENTER)
    assert browser.run(sort) == "descending"
    assert browser.run(ROWS, RESULTS)[1][0][place] != shown[0]


def test_a_pointer_on_a_point_shows_its_values(browser, page):
    browser.open(page)
    browser.run("document.querySelector('#experiment-mnist_mlp figure').scrollIntoView()")
    said = browser.run(
        "const point = [...document.querySelectorAll('#experiment-mnist_mlp figure use')]"
        ".find((one) => one.querySelector('title'));"
        "const words = point.querySelector('title').textContent, box = point.getBoundingClientRect();"
        "point.dispatchEvent(new PointerEvent('pointerover', { bubbles: true, clientX: box.x, clientY: box.y }));"
        "const tip = document.getElementById('tip'), place = tip.getBoundingClientRect();"
        "return [words, tip.textContent, tip.hidden, place.left >= 0 && place.right <= innerWidth]"
    )
    words, tip, hidden, inside = said
    assert words == tip
    assert "at ε =" in tip
    assert "delivered ε" in tip
    assert not hidden
    assert inside
    browser.run("document.querySelector('h1').dispatchEvent(new PointerEvent('pointerover', { bubbles: true }))")
    assert browser.run("return document.getElementById('tip').hidden")


def test_the_legend_shows_and_hides_a_curve(browser, page):
    browser.open(page)
    state = (
        "const svg = document.querySelector('#experiment-mnist_mlp figure svg');"
        "const all = [...svg.querySelectorAll('[data-series]')].filter((one) => one.dataset.series === 'local_sgd');"
        "const key = [...svg.querySelectorAll('[data-key]')].find((one) => one.dataset.key === 'local_sgd');"
    )
    hidden = f"{state} return [all.length, all.filter((one) => getComputedStyle(one).display === 'none').length]"
    count, before = browser.run(hidden)
    assert count >= 2
    assert before == 0
    browser.run(f"{state} key.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))")
    assert browser.run(hidden) == [count, count]
    assert browser.run(f"{state} return key.getAttribute('aria-pressed')") == "false"
    browser.run(f"{state} key.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter', bubbles: true }}))")
    assert browser.run(hidden) == [count, 0]


def test_every_link_leads_somewhere(browser, page):
    browser.open(page)
    unfold(browser)
    found = browser.run("return [...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))")
    inside = [one[1:] for one in found if one.startswith("#")]
    assert len(inside) > 50
    assert browser.run("return arguments[0].filter((id) => !document.getElementById(id))", sorted(set(inside))) == []
    outside = [one for one in found if one.startswith("https:")]
    assert len(outside) == 3
    assert all(one.startswith("https://arxiv.org/abs/") for one in outside)
    files = [unquote(one) for one in found if not one.startswith(("#", "https:"))]
    assert files
    assert [one for one in files if not (page.parent / one).is_file()] == []


def test_a_link_to_a_claim_opens_its_numbers(browser, page):
    browser.open(page)
    (link, *_) = browser.find(".card a[href^='#claim-']")
    browser.click(link)
    place = browser.run("return decodeURIComponent(location.hash.slice(1))")
    assert wait(browser, "return document.getElementById(arguments[0]).closest('details').open", place)
    assert wait(browser, "return document.getElementById(arguments[0]).textContent.includes('Rule:')", place)
    assert browser.run("return document.getElementById(arguments[0]).getBoundingClientRect().height", place) > 0


def test_claims_are_narrowed_by_verdict(browser, page):
    browser.open(page)
    browser.run(
        "const one = document.querySelector(\"form.narrow [name='verdict']\"); one.value = 'refuted';"
        "one.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    shown = "[...document.querySelectorAll('details.claim')].filter((one) => !one.hidden)"
    verdicts = browser.run(f"return {shown}.map((one) => one.dataset.verdict)")
    assert verdicts
    assert set(verdicts) == {"refuted"}


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
    assert 3 < len(re.findall(rb"/Type\s*/Page[^s]", text)) < 40


def test_axe_finds_no_violation_with_everything_open(browser, page):
    """Needs axe-core's axe.min.js: SILODP_AXE names it, else npm's folder beside the tests' temporary files."""
    axe = os.environ.get("SILODP_AXE")
    if not axe:
        pytest.skip("SILODP_AXE names no axe.min.js (npm pack axe-core)")
    for scheme in ("light", "dark"):
        browser.open(page)
        browser.scheme(scheme)
        unfold(browser)
        browser.run(Path(axe).read_text(encoding="utf-8"))
        found = browser.run_async(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, { resultTypes: ['violations'] }).then((all) => done(all.violations.map((one) =>"
            " [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200)])))"
        )
        browser.scheme("light")
        assert found == [], scheme
