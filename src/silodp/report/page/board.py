"""The page's leaderboard: what `silodp leaderboard` wrote into a run's folder, or into board/ in it."""

from silodp.files import reading
from silodp.report.figures.words import in_words
from silodp.report.page.blocks import Figures, Link, Section, Table, Text
from silodp.report.page.figures import Page

NAME = "leaderboard"
CAPTIONS = {
    NAME: "Test error against true ε, by data set",
    f"{NAME}_heterogeneity": "Test error with a correction minus without it, by heterogeneity",
}


def board(page: Page) -> list[Section]:
    """Verdicts, table and figures of leaderboard.md and .svg; no section where a run has no leaderboard.csv."""
    folder = next((one for one in (page.folder / "board", page.folder) if (one / f"{NAME}.csv").is_file()), None)
    if folder is None:
        return []
    path = folder / f"{NAME}.md"
    with reading(path):
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    links: list[Link] = page.csv(folder / f"{NAME}.csv", "Every comparison (CSV)")
    verdicts = [in_words(line[2:], page.titles) for line in lines if line.startswith("- ")]
    heading, _, *rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")] or [[], []]
    cells = [[in_words(cell, page.titles) for cell in row] for row in rows]
    figures = [page.picture(folder / f"{name}.svg", text) for name, text in CAPTIONS.items()]
    return [
        Section(
            NAME,
            "Leaderboard",
            [
                Text("At each true ε the best algorithm of each data set, by rules that were written before the run."),
                *(Text(f"{text[:1].upper()}{text[1:]}") for text in verdicts),
                Table(
                    "The best single model; gains are differences of test error, n.s.: not after Holm", heading, cells
                ),
                Figures([figure for figure in figures if figure.svg]),
                Text("", "settings", links),
            ],
        )
    ]
