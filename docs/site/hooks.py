"""The documentation site: docs/, all keys, the published runs, and the findings of the README on the home page."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from silodp.cli.reference import reference_text

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
# Files of a published run that the site has, below the run's name.
TAKEN = ("report.html", "*.csv", *(f"{folder}/*.svg" for folder in ("figures", "board", "bounds", "checkins")))
TAKEN += tuple(f"{folder}/*.csv" for folder in ("board", "bounds", "checkins", "tables", "reported", "silos/*/*"))
# Names with brackets, which Markdown would take for links.
_BRACKETS = re.compile(r"(?<!\\)\[(A-Za-z0-9[^\]]*)\]")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((\.\./[^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the keys, the published runs, and what lays white figures on a mat in the dark."""
    for page, of in (("configuration.md", "run"), ("federate_keys.md", "federation")):
        files.append(File.generated(config, page, content=reference_text(of)))
    files.append(File.generated(config, "mat.css", abs_src_path=str(ROOT / "docs" / "site" / "mat.css")))
    for pattern in TAKEN:
        for path in sorted(RESULTS.glob(f"published*/{pattern}")):
            files.append(File.generated(config, path.relative_to(RESULTS).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the findings; a link to a file that the site does not have becomes a name."""

    def target(link: re.Match[str]) -> str:
        picture, words, path, place = link.groups()
        path = path.removeprefix("../results/")
        if files.get_file_from_path(path):
            return f"{picture}[{words}]({path}{place or ''})"
        return words

    markdown = markdown.replace("<!-- findings -->", findings())
    return _LINK.sub(target, _BRACKETS.sub(r"\\[\1\\]", markdown))


def findings() -> str:
    """The section "What came out" of the README, with links as the site has them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("## What came out\n")[1].split("\n## ")[0]
    return text.replace("](docs/", "](").replace("](results/", "](").strip()
