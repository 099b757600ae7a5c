"""The papers behind a run, as the page's first screen shows them: a card each, with the finding in plain words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from silodp.files import with_reading
from silodp.report.figures.paired_differences import EQUAL, FIRST, SECOND, outcomes
from silodp.report.figures.style import label
from silodp.report.paper_figures import said_of
from silodp.verdicts.words import Verdict

# Verdicts as a reader wants to meet them: what was found against the paper first.
ORDER = (
    Verdict.REFUTED,
    Verdict.DEPENDS,
    Verdict.INCONCLUSIVE,
    Verdict.ORDER_AGREES,
    Verdict.NOT_CONTRADICTED,
    Verdict.CONFIRMED,
    Verdict.DERIVATION,
    Verdict.VACUOUS,
    Verdict.NOT_TESTABLE,
)
EXPERIMENT = "experiment"


@dataclass(frozen=True)
class Paper:
    """What identifies a paper.

    Attributes:
        name: the short name that experiments and claims begin with.
        title, authors, year: as on its first page.
        arxiv: number of the preprint.
        pair: the two algorithms whose comparison sums the paper's experiments up; None without experiments of ours.
    """

    name: str
    title: str
    authors: str
    year: int
    arxiv: str
    pair: tuple[str, str] | None = None


PAPERS = (
    Paper(
        "convex paper",
        "Private Federated Learning Without a Trusted Server: Optimal Algorithms for Convex Losses",
        "Andrew Lowy and Meisam Razaviyayn",
        2021,
        "2106.09779",
        ("minibatch_sgd", "local_sgd"),
    ),
    Paper(
        "non-convex paper",
        "Private Non-Convex Federated Learning Without a Trusted Server",
        "Andrew Lowy, Ali Ghafelebashi and Meisam Razaviyayn",
        2022,
        "2203.06735",
        ("spider", "minibatch_sgd"),
    ),
    Paper(
        "check-ins paper",
        "Privacy Amplification via Random Check-Ins",
        "Borja Balle, Peter Kairouz, H. Brendan McMahan, Om Thakkar and Abhradeep Thakurta",
        2020,
        "2007.06605",
    ),
)


def paper_of(source: str) -> str:
    """Short name of the paper that an experiment's or a claim's source begins with; empty for none."""
    return next((paper.name for paper in PAPERS if source.startswith(paper.name)), "")


def cards(
    claims: Sequence[Mapping[str, Any]], comparisons: pd.DataFrame | None, experiments: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A card for every paper that a claim or an experiment is about.

    Args:
        claims: each with `source`, `kind`, `verdict`, `sign`, `style` and `statement`.
        comparisons: the run's table of paired comparisons, if it has one; those of the default reading are counted.
        experiments: experiment → its source.
    """
    found = []
    if comparisons is not None:
        comparisons = comparisons[with_reading(comparisons)["reading"] == ""]
    for paper in PAPERS:
        own = [claim for claim in claims if paper_of(claim["source"]) == paper.name]
        run = {name for name, source in experiments.items() if paper_of(source) == paper.name}
        if not own and not run:
            continue
        empirical = [claim for claim in own if claim["kind"] == EXPERIMENT]
        rows = None if comparisons is None else comparisons[comparisons["experiment"].isin(run)]
        found.append(
            {
                "paper": paper,
                "finding": _finding(paper, rows, own),
                "empirical": counts(empirical),
                "others": counts([claim for claim in own if claim["kind"] != EXPERIMENT]),
                "worst": [claim for claim in empirical if claim["verdict"] == "refuted"],
            }
        )
    return found


def counts(claims: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many claims have each verdict, refuted first; verdicts that none has are left out."""
    claims = list(claims)
    by_verdict = [(word, [claim for claim in claims if claim["verdict"] == word]) for word in ORDER]
    return [
        {"verdict": word.value, "count": len(own), "sign": own[0]["sign"], "style": own[0]["style"]}
        for word, own in by_verdict
        if own
    ]


def beside(experiment: str, M: int, R: int, comparisons: pd.DataFrame | None) -> str:
    """What the paper says about its figure of a setting, and what the paired comparisons say; "" where it shows none.

    Args:
        experiment, M, R: of the figure.
        comparisons: the run's table of paired comparisons, if it has one.
    """
    said = said_of(experiment, M, R)
    if not said:
        return ""
    found = []
    if comparisons is not None:
        own = with_reading(comparisons)
        own = own[(own["experiment"] == experiment) & (own["M"] == M) & (own["R"] == R) & (own["reading"] == "")]
        for (first, second), rows in own.groupby(["first", "second"], sort=False):
            ends = outcomes(rows)
            names = [label(name).removeprefix("ISRL-DP ") for name in (first, second)]
            found.append(
                f"{names[0]} clearly ahead of {names[1]} at {(ends == FIRST).sum()} of {len(rows)} ε, "
                f"clearly behind at {(ends == SECOND).sum()}"
            )
    return f"In the paper {said}." + (f" Here: {'; '.join(found)}." if found else "")


def _finding(paper: Paper, rows: pd.DataFrame | None, claims: Sequence[Mapping[str, Any]]) -> str:
    """One sentence: how the paper's own algorithm does against its rival, else how its claims come out."""
    if paper.pair and rows is not None:
        own = rows[(rows["first"] == paper.pair[0]) & (rows["second"] == paper.pair[1])]
        if len(own):
            said = outcomes(own)
            first, second = (label(name).removeprefix("ISRL-DP ") for name in paper.pair)
            worse, better, alike = (int((said == one).sum()) for one in (SECOND, FIRST, EQUAL))
            text = (
                f"{first} has a smaller test error than {second} in {better} of {len(own)} comparisons at equal "
                f"claimed ε, and a larger one in {worse}"
            )
            undecided = len(own) - worse - better - alike
            middle = f"; {alike} {'is' if alike == 1 else 'are'} alike within the tolerance" if alike else ""
            return f"{text}{middle}; {undecided} {'is' if undecided == 1 else 'are'} undecided."
    if not claims:
        return "No claim of this paper was decided by this run."
    said = {one["verdict"]: one["count"] for one in counts(claims)}
    against = said.get(Verdict.REFUTED, 0)
    agree = said.get(Verdict.CONFIRMED, 0) + said.get(Verdict.ORDER_AGREES, 0)
    if len(claims) == 1:
        return f"Its one statement is {'' if against else 'not '}refuted."
    text = f"{against or 'None'} of its {len(claims)} statements {'are' if against > 1 else 'is'} refuted"
    return text + (f"; {agree} {'are' if agree > 1 else 'is'} confirmed, at least in order." if agree else ".")
