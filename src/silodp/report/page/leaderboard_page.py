"""The page's section of the leaderboard: who is compared with whom at equal certified ε, and what came out."""

import pandas as pd

from silodp.files import read_table
from silodp.report.cells import PUBLISHED
from silodp.report.figures.reader_words import short_title
from silodp.report.figures.style import short_label
from silodp.report.page.blocks import Block, Figures, Section, Table, Text
from silodp.report.page.figure_list import Page
from silodp.verdicts.comparisons import AHEAD, BEHIND

CAPTIONS = {
    "leaderboard": "Test error against certified ε, by data set",
    "leaderboard_heterogeneity": "Test error with a correction minus without it, by heterogeneity",
}
COMPARED = ["experiment", "epsilon", "first", "second", "outcome", "axis", "holm"]
AXES = {"": "data sets", "silos.mixed": "share of records from all digits", "silos.alpha": "Dirichlet shares"}


def board(page: Page) -> list[Section]:
    """Counts of comparisons, the best single models, and figures of `board/`; no section where a run has none."""
    folder = page.folder / "board"
    if not (folder / "leaderboard.csv").is_file():
        return []
    table = read_table(folder / "leaderboard.csv", COMPARED).fillna({"axis": ""})
    page.standing |= {name: "in the leaderboard" for name in table["experiment"]}
    rows = [_counted(part) for _, part in table.groupby(["axis", "first", "second"], sort=False)]
    heading = ["first", "second", "over", "cells", "first better", "second better"]
    caption = f"Comparisons of test error at equal certified ε ({PUBLISHED}); in brackets: what Holm's correction keeps"
    best = read_table(folder / "leaderboard_best.csv", ["experiment", "epsilon", "best", "test_error"])
    links = page.csv(folder / "leaderboard.csv", "Every comparison (CSV)")
    links += page.csv(folder / "leaderboard_best.csv", "The best single models (CSV)")
    errors, corrections = (
        Figures([figure for figure in [page.picture(folder / f"{name}.svg", text)] if figure.svg])
        for name, text in CAPTIONS.items()
    )
    blocks: list[Block] = [Table(caption, heading, rows), errors, _best(best), corrections, Text("", "settings", links)]
    return [Section("leaderboard", "Leaderboard", blocks)]


def _counted(rows: pd.DataFrame) -> list[str]:
    axis, *pair = rows[["axis", "first", "second"]].iloc[0]
    kept = rows[rows["holm"]]
    counts = [f"{(rows['outcome'] == word).sum()} ({(kept['outcome'] == word).sum()})" for word in (AHEAD, BEHIND)]
    return [*map(short_label, pair), AXES[axis], str(len(rows)), *counts]


def _best(best: pd.DataFrame) -> Table:
    """The single model with the smallest training loss at each data set and ε, with its test error."""
    cells = best.assign(words=[f"{short_label(row.best)} {row.test_error:.3f}" for row in best.itertuples()])
    wide = cells.pivot(index="experiment", columns="epsilon", values="words").fillna("")
    rows = [
        [short_title(str(name)).removesuffix(", leaderboard"), *words]
        for name, words in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    caption = "The single model with the smallest training loss, and its test error"
    return Table(caption, ["data", *(f"ε = {epsilon:g}" for epsilon in wide.columns)], rows)
