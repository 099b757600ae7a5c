"""The papers behind a run, and what they say about their figures beside what the run finds."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from silodp.report.cells import PUBLISHED, counts_of_cells
from silodp.report.figures.style import short_label
from silodp.report.paper_figures import figure_sentence
from silodp.verdicts.words import AGAINST, Verdict

# Verdicts as a reader wants to meet them: what speaks against the paper first.
ORDER = (
    *(*AGAINST, Verdict.OPEN, Verdict.NOT_CONTRADICTED, Verdict.CONFIRMED, Verdict.DERIVATION, Verdict.VACUOUS),
    Verdict.NOT_TESTABLE,
)


class Paper(NamedTuple):
    """A paper: the short name that experiments and claims begin with, its title, authors and year, and its preprint."""

    name: str
    title: str
    authors: str
    arxiv: str

    @property
    def year(self) -> str:
        return self.authors.rpartition(" ")[2]


PAPERS = (
    Paper(
        "convex paper",
        "Private Federated Learning Without a Trusted Server: Optimal Algorithms for Convex Losses",
        "Andrew Lowy and Meisam Razaviyayn, 2021",
        "2106.09779",
    ),
    Paper(
        "non-convex paper",
        "Private Non-Convex Federated Learning Without a Trusted Server",
        "Andrew Lowy, Ali Ghafelebashi and Meisam Razaviyayn, 2022",
        "2203.06735",
    ),
    Paper(
        "check-ins paper",
        "Privacy Amplification via Random Check-Ins",
        "Borja Balle, Peter Kairouz, H. Brendan McMahan, Om Thakkar and Abhradeep Thakurta, 2020",
        "2007.06605",
    ),
)


def paper_of(source: str) -> str:
    """Short name of the paper that an experiment's or a claim's source begins with; empty for none."""
    return next((paper.name for paper in PAPERS if source.startswith(paper.name)), "")


def cards(claims: Iterable[Any], experiments: Iterable[str]) -> list[tuple[Paper, str]]:
    """Papers that a claim or the source of an experiment is about, each with a sentence on its verdicts."""
    claims, run = list(claims), {paper_of(source) for source in experiments}
    shown = []
    for paper in PAPERS:
        verdicts = [claim.verdict for claim in claims if paper_of(claim.source) == paper.name]
        counts = ", ".join(f"{verdicts.count(word)} {word}" for word in ORDER if word in verdicts)
        if verdicts:
            shown.append((paper, f"Verdicts on its claims: {counts}."))
        elif paper.name in run:
            shown.append((paper, "This run decides no claim of this paper."))
    return shown


def paper_sentence(experiment: str, M: int, R: int, cells: pd.DataFrame | None) -> str:
    """What the paper says about its figure of a setting, and what `silodp.report.cells` say; "" without a figure."""
    words = figure_sentence(experiment, M, R)
    if not words or cells is None:
        return f"In the paper {words}." if words else ""
    rows = cells[(cells["reading"] == "") & (cells["experiment"] == experiment) & (cells["M"] == M) & (cells["R"] == R)]
    outcomes = [_outcome(pair, part) for pair, part in rows.groupby(["first", "second"], sort=False)]
    return f"In the paper {words}." + (f" Here: {'; '.join(outcomes)}." if outcomes else "")


def _outcome(pair: Sequence[str], rows: pd.DataFrame) -> str:
    first, second = map(short_label, pair)
    counts, by = counts_of_cells(rows), "with tuning, by fresh trials" if rows["decided"].all() else PUBLISHED
    return f"{first} ahead of {second} at {counts.ahead} of {counts.cells} ε, behind at {counts.behind} ({by})"
