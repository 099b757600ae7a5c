"""README and docs say what is there: links, paths, commands, and their size. Numbers are held by `test_packaging`."""

import re
import shlex

import pytest
from small import ROOT

from silodp.cli import main

DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "ARTIFACT.md", ROOT / "config" / "README.md", *DOCS]
PAGES += sorted((ROOT / "docs" / "proofs").glob("*.md"))
TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
# Folders of the repository that a path in a page begins with, and what a run makes below them.
PATH = re.compile(
    r"(?:src|tests|config|docs|benchmarks|workflow|requirements|\.ci|results/published|results/decided)/[\w./-]*\w"
)
MADE = ("config/patients.yaml", "config/mine.yaml")


def headings(text: str) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*?) *$", re.sub(r"(?ms)^```.*?^```", "", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "", title).lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    missing = []
    for path, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", TEXT[page]):
        target = (page.parent / path).resolve() if path else page
        # The page of the built site links to files that only the site has.
        if "://" in path or path.startswith("mailto:") or (page.name == "index.md" and not target.exists()):
            continue
        if not target.exists() or (anchor and target in TEXT and anchor not in headings(TEXT[target])):
            missing.append(f"{path}#{anchor}")
    assert missing == []


def shown() -> list[tuple[str, str]]:
    """(page, line) of code that the pages show, without comments, and without what follows a pipe or `--`."""
    found = []
    for page, text in TEXT.items():
        blocks = "\n".join(re.findall(r"(?ms)^ *```\w*\n(.*?)^ *```", text)).replace("\\\n", " ").splitlines()
        lines = [*blocks, *re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^ *```.*?^ *```", "", text))]
        found += [(page.name, re.split(r"\s#|[|;&]| -- ", line.strip())[0].strip()) for line in lines]
    return found


def test_every_path_that_is_shown_exists():
    paths = {(page, path) for page, line in shown() if "<" not in line for path in PATH.findall(line)}
    assert len(paths) > 30
    assert {(page, path) for page, path in paths if not (ROOT / path).exists() and path not in MADE} == set()


def test_every_target_of_make_that_is_shown_exists():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {(page, line.split()[1]) for page, line in shown() if re.match(r"make [a-z]", line)}
    assert len(asked) > 10
    assert {(page, target) for page, target in asked if target not in targets} == set()


def test_every_command_of_silodp_that_is_shown_has_the_options_that_are_shown(capsys):
    helps: dict[tuple[str, ...], str] = {}

    def help_of(*command: str) -> str:
        if command not in helps:
            helps[command] = capsys.readouterr().out if main([*command, "--help"]) == 0 else ""
        return helps[command]

    wrong = []
    for page, line in sorted(set(shown())):
        words = shlex.split(line.replace("…", ""))[1:] if line.startswith("silodp ") else []
        command = tuple(word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]+", word))
        text = help_of(*command[:1]) if words else ""
        if len(command) == 2 and re.search(rf"^\s+{command[1]}\b|[{{,]{command[1]}[}},]", text, re.MULTILINE):
            text = help_of(*command)
        options = [word.split("=")[0] for word in words if word.startswith("--")]
        wrong += [(page, line)] if words and (not text or any(option not in text for option in options)) else []
    assert len(helps) > 10
    assert wrong == []


def test_the_readme_is_short_and_names_every_package():
    readme = TEXT[ROOT / "README.md"]
    assert len(readme.splitlines()) <= 90
    packages = {path.parent.name for path in (ROOT / "src" / "silodp").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in readme} == set()


def test_the_docs_have_at_most_ninety_kilobytes():
    assert sum(len(TEXT[page].encode()) for page in DOCS) <= 90_000
