"""The findings that a page opens with: a sentence, its picture and its numbers, all from the run's tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from silodp.files import read_json, with_reading
from silodp.privacy.standing import Standing, counts_of, standings
from silodp.report.cells import PUBLISHED, USELESS, counts_of_cells, in_forests
from silodp.report.figures import finding_pictures as pictures
from silodp.report.figures.reader_words import setting_words, short_title, title_of
from silodp.report.figures.style import short_label, styled
from silodp.report.figures.svg import svg_text
from silodp.report.page.figure_list import Page, csv_address
from silodp.report.paper_figures import of_figures, paper_figures
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.comparisons import BY_CALIBRATED, CALIBRATED, ENDED, HEADLINE, SAME

# What a finding is about, and the claim whose sentence stands beside it.
_CLAIMED, _TRUE, _EQUAL = ("claimed", "N2"), ("true", "N6"), ("equal", "C1")
# Algorithms that a figure of a paper runs with noise.
_FIGURES = ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider")
_NUMBERS = ["experiment", "algorithm", "M", "R", "epsilon", "delivered_lower", "delivered_epsilon", "delta", "claim"]


@dataclass(frozen=True)
class Headline:
    """A sentence of at most 15 words with what it rests on: `counted` are its numbers, `csv` the rows, by address.

    `wide` and `narrow` are the picture as SVG; `shown` says what its marks are.
    """

    anchor: str
    sentence: str
    counted: str
    detail: str
    wide: str
    narrow: str
    csv: str
    claim: str = ""
    quote: str = ""
    paper: str = ""
    shown: str = ""


def findings(page: Page, cells: pd.DataFrame | None, privacy: pd.DataFrame) -> list[Headline]:
    """Accuracy at claimed ε, true ε against the claim, accuracy at equal certified ε; of a plug-in its own pairs first.

    `cells` are those of `silodp.report.cells`. A finding whose rows the run lacks is left out.
    """
    rows = pd.DataFrame(columns=["experiment", "first", "second", "reading"]) if cells is None else cells
    rows = rows[rows["experiment"].isin(in_forests(rows["experiment"].unique()))]
    pairs = dict.fromkeys(zip(rows["first"], rows["second"], strict=True))
    ours = [pair for pair in pairs if pair not in HEADLINE and not pair[0].endswith(BY_CALIBRATED)]
    found = [_accuracy(page, rows, pair, "", ("own", "")) for pair in ours]
    if not ours:
        found.append(_accuracy(page, rows, HEADLINE[0], "", _CLAIMED))
    drawn = _of_papers(with_reading(privacy).query("reading == ''"))
    own = drawn[drawn.get("algorithm", pd.Series(dtype=str)).isin(_FIGURES)]
    found.append(_true(own if len(own) else drawn, rows))
    found.append(None if ours else _accuracy(page, rows, HEADLINE[1], ENDED, _EQUAL))
    return [each for each in found if each is not None]


def _of_papers(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows behind the papers' own figures; all where a run has none of them."""
    own = rows[rows.get("experiment", pd.Series(dtype=str)).isin(of_figures())]
    return own if len(own) else rows


def _accuracy(
    page: Page, rows: pd.DataFrame, pair: tuple[str, str], reading: str, about: tuple[str, str]
) -> Headline | None:
    cells = rows[(rows["first"] == pair[0]) & (rows["second"] == pair[1]) & (rows["reading"] == reading)]
    # A data set is called as the titles of its experiments begin.
    names = {data_set(name): title_of(name, page.titles).partition(",")[0] for name in cells["experiment"][::-1]}
    cells = cells.assign(data_set=cells["experiment"].map(data_set).map(names))
    shown = cells[~cells["outcome"].isin([SAME, USELESS]) & np.isfinite(cells["difference"])] if len(cells) else cells
    if shown.empty:
        return None
    decided, published = cells[cells["decided"]], cells[~cells["decided"]]
    counts = counts_of_cells(decided if len(decided) else published)
    place = {"": "At the claimed ε", ENDED: "At equal certified ε"}[reading]
    who, other = map(short_label, pair)
    # Of many cells some are ahead by luck: the headline counts those that Holm's correction keeps.
    word = f"beats {other} as often as it loses"
    if counts.ahead_kept != counts.behind_kept:
        ahead = counts.ahead_kept > counts.behind_kept
        word = f"beats {other} more often than it loses" if ahead else f"loses to {other} more often than it wins"
    elif not counts.ahead_kept:
        word = f"is not told apart from {other}"
    counted = (
        f"Smaller test error at {_count_words(counts.ahead, counts.ahead_kept)} of {counts.cells} cells, larger at "
    )
    counted += f"{_count_words(counts.behind, counts.behind_kept)}, alike at {counts.same or 'none'}, open at "
    counted += f"{counts.open or 'none'}{_when_certified(page, rows) if about == _CLAIMED else ''}."
    counted += _by_silos(page, decided if len(decided) else published)
    detail = "A cell is one setting at one ε. In brackets: what Holm’s correction keeps."
    detail += " Each algorithm with its tuning, by fresh trials." if len(decided) else ""
    if len(decided) and len(published):
        others = counts_of_cells(published)
        detail += f" Not decided: {', '.join(dict.fromkeys(published['data_set']))}, by {PUBLISHED}: "
        detail += f"smaller at {_count_words(others.ahead, others.ahead_kept)} of {others.cells}, larger at "
        detail += f"{_count_words(others.behind, others.behind_kept)}."
    if counts.useless:
        detail += f" {counts.useless} further cells, in which neither beats the best constant, are left out."
    if counts.same_algorithm:
        detail += f" {counts.same_algorithm} further cells are of an algorithm with itself, and are left out."
    marks = "Stroke: one cell, coloured where its 95 % interval leaves out 0; diamond: their mean; grey band: "
    marks += "within the margin that counts as no difference"
    marks += f"; {'*' if len(decided) else 'all'}: {PUBLISHED}." if len(published) else "."
    newer = "the newer " if about == _CLAIMED and pair == HEADLINE[0] else ""
    sentence = f"{place}, {newer}{who} {word}."
    return _finding(about, sentence, counted, detail, lambda width: pictures.differences(shown, width), cells, marks)


def _count_words(count: int, kept: int) -> str:
    return f"{count} ({kept})" if count else "none"


def _by_silos(page: Page, cells: pd.DataFrame) -> str:
    """The counts where silos hold different data and where they are alike; "" where all cells are of one kind."""
    described = read_json(page.folder / "config.json").get("experiments") or {}
    silos = {name: (described.get(name) or {}).get("silos") or {} for name in cells["experiment"].unique()}
    alike = cells["experiment"].map(
        {name: said.get("mixed") == 1 or said.get("scheme") == "iid" for name, said in silos.items()}
    )
    if alike.all() or not alike.any():
        return ""
    parts = []
    for words, part in (("Where silos hold different data", cells[~alike]), ("where they are alike", cells[alike])):
        # Without Holm's numbers, which are over all cells.
        counts = counts_of_cells(part)
        ahead, behind = counts.ahead or "none", counts.behind or "none"
        parts.append(f"{words}: smaller at {ahead} of {counts.cells}, larger at {behind}")
    return f" {'; '.join(parts)}."


def _when_certified(page: Page, rows: pd.DataFrame) -> str:
    """The same pair where both have the least noise that certifies ε, of cells whose tuning had a choice of phases."""
    described = read_json(page.folder / "config.json").get("experiments") or {}
    longest = rows["experiment"].map(lambda name: max(_phase_lengths(described.get(name) or {})))
    pair = (rows["first"] == HEADLINE[0][0]) & (rows["second"] == HEADLINE[0][1])
    rows = rows[pair & (rows["reading"] == CALIBRATED) & (longest > 1)]
    same = int((rows["outcome"] == SAME).sum())
    if not same:
        return ""
    words = f". At equal certified ε its tuning chooses phases of one round at {same} of the {len(rows)} cells "
    return words + f"with a choice of up to {longest[rows.index].max()}: the same algorithm"


def _phase_lengths(described: Mapping[str, Any]) -> list[int]:
    own = (described.get("algorithms") or {}).get("fedprox_spider") or {}
    return own.get("phase_lengths") or described.get("phase_lengths") or [1]


def _true(rows: pd.DataFrame, comparisons: pd.DataFrame) -> Headline | None:
    if rows.empty:
        return None
    counts = counts_of(rows)
    kept, more, violated = (counts[word] for word in (Standing.KEPT, Standing.NOT_CERTIFIED, Standing.VIOLATED))
    sentence = "Part of the stated noise provably protects less than it claims."
    if not violated:
        sentence = "No noise provably protects less than it claims." if more else "The noise keeps what it claims."
    counted = f"Of {len(rows):,} private results {kept} keep their claim, {violated} provably violate it; of {more} "
    counted += f"the claim lies between our two bounds.{_by_size(rows) if violated else ''}"
    setting = next(iter(_settings(rows, comparisons)))
    part = rows[(rows[["experiment", "M", "R"]] == setting).all(axis=1)]
    names = dict.fromkeys(map(short_label, pictures.sort_algorithms(part["algorithm"])))
    shown = "A mark is at the lower bound of a result’s true ε, its bar ends at the upper bound, some off the picture; "
    shown += "close bounds have no visible bar. "
    shown += f"Drawn: {len(part)} of the {len(rows):,}, those of {short_title(setting[0])}, "
    shown += f"{setting_words(*setting[1:])}; at each claimed ε, from left: {', '.join(names)}."
    detail = "Both bounds on the true ε are proven."
    table = rows[[name for name in _NUMBERS if name in rows]]
    return _finding(_TRUE, sentence, counted, detail, lambda width: pictures.true_epsilon(part, width), table, shown)


def _by_size(rows: pd.DataFrame) -> str:
    """How many results violate a small and a large claim, as the papers' figures have them; "" without either."""
    parts = []
    for words, part in (("at ε ≤ 1.5", rows[rows["epsilon"] <= 1.5]), ("from ε = 3 on", rows[rows["epsilon"] >= 3])):
        broken = part[standings(part) == Standing.VIOLATED]
        names = [short_label(name) for name in broken["algorithm"].unique()]
        whose = f", all by {names[0]}" if len(names) == 1 else ""
        parts.append(f"{len(broken)} of {len(part)} {words}{whose}" if len(part) else "")
    return f" Violated: {'; '.join(parts)}." if all(parts) else ""


def _settings(rows: pd.DataFrame, comparisons: pd.DataFrame) -> Sequence[tuple]:
    """Settings in the order of the papers' figures, those where the first pair is compared before others."""
    have = list(dict.fromkeys(zip(rows["experiment"], rows["M"], rows["R"], strict=True)))
    compared = set(comparisons.loc[comparisons["first"] == HEADLINE[0][0], "experiment"]) if len(comparisons) else set()
    drawn = [(figure.experiment, figure.M, figure.R) for figure in paper_figures()]
    order = {place: number for number, place in enumerate(drawn)}
    return sorted(have, key=lambda place: (place[0] not in compared, order.get(place, len(order))))


def _finding(
    about: tuple[str, str],
    sentence: str,
    counted: str,
    detail: str,
    draw: Callable[[str], Any],
    table: pd.DataFrame,
    shown: str,
) -> Headline:
    anchor, claim = about
    with styled():
        wide, narrow = (svg_text(draw(width), f"{anchor}-{width}").strip() for width in pictures.WIDTHS)
    quote, paper = next(((each.quote, each.source) for each in load_claims() if each.id == claim), ("", ""))
    paper = f"The {paper.partition(' paper')[0]} paper"
    return Headline(
        f"finding-{anchor}", sentence, counted, detail, wide, narrow, csv_address(table), claim, quote, paper, shown
    )
