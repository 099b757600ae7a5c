"""What the site adds to docs/: the published run's figures and page, its findings in words, and the order of pages."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from silodp.files import read_json
from silodp.report.page.papers import cards
from silodp.verdicts.words import Verdict

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "results" / "published"
# What a reader of the site gets of the published run, below published/.
TAKEN = ("report.html", "*.csv", "figures/*.svg", "bounds/*.csv", "bounds/*.svg", "checkins/*.csv", "checkins/*.svg",
         "tables/*.csv", "reported/*.csv")  # fmt: skip
# Section → pages; those that are not there are left out, and others follow at the end.
ORDER = {
    "Replicate": ("figures", "results", "certified", "tuning", "outputs", "claims", "errata", "papers"),
    "Use": ("own-data", "own_data", "owndata", "configuration", "cluster", "reliability", "performance"),
    "Privacy": ("privacy", "accounting", "shuffling", "trust", "attacks"),
    "Develop": ("api", "freshness", "contributing", "extending"),
}
# Patterns of names, which Markdown would take for links.
_PATTERN = re.compile(r"(?<!\\)\[(A-Za-z0-9[^\]]*)\]")
_LINK = re.compile(r"\]\((\.\./[^)#\s]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages in order."""
    there = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    sections: list[Any] = [{"Home": "index.md"}]
    for title, names in ORDER.items():
        own = [name for name in names if name in there]
        there -= set(own)
        sections += [{title: [f"{name}.md" for name in own]}] if own else []
    sections += [{"More": [f"{name}.md" for name in sorted(there)]}] if there else []
    config.nav = sections
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the published run."""
    for pattern in TAKEN:
        for path in sorted(PUBLISHED.glob(pattern)):
            place = f"published/{path.relative_to(PUBLISHED).as_posix()}"
            files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the findings; a link to a file of the repository that the site does not have becomes its name."""
    markdown = markdown.replace("<!-- findings -->", findings())

    def replaced(found: re.Match[str]) -> str:
        path, place = found[1], found[2] or ""
        inside = path.removeprefix("../results/")
        if path.startswith("../results/published/") and files.get_file_from_path(inside):
            return f"]({inside}{place})"
        return f'](index.md "{path.removeprefix("../")} in the repository")'

    return _LINK.sub(replaced, _PATTERN.sub(r"\\[\1\\]", markdown))


def findings() -> str:
    """A line for each paper, by the published verdicts and comparisons."""
    table = pd.read_csv(PUBLISHED / "claims.csv").fillna({"source": "", "kind": "experiment"})
    whole = table[~table["claim"].str.contains(": ")]
    claims = [
        {"name": row["claim"], "source": row["source"], "statement": row["statement"], "kind": row["kind"],
         "verdict": row["verdict"], "sign": Verdict(row["verdict"]).sign, "style": Verdict(row["verdict"]).style}
        for row in whole.to_dict("records")
    ]  # fmt: skip
    config = read_json(PUBLISHED / "config.json")
    sources = {name: about.get("paper") or "" for name, about in config["experiments"].items()}
    compared = PUBLISHED / "comparisons.csv"
    rows = pd.read_csv(compared) if compared.is_file() else None
    lines = []
    for card in cards(claims, rows, sources):
        paper = card["paper"]
        tally = ", ".join(f"{one['count']} {one['verdict']}" for one in card["empirical"])
        others = ", ".join(f"{one['count']} {one['verdict']}" for one in card["others"])
        lines.append(
            f"- **[{paper.title}](https://arxiv.org/abs/{paper.arxiv})** ({paper.authors}, {paper.year}). "
            f"{card['finding']} Claims about experiments: {tally or 'none'}. "
            f"Theorems and derivations: {others or 'none'}."
        )
    return "\n".join(lines)
