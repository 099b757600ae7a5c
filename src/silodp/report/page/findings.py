"""The findings that a page opens with: a sentence, its picture and its numbers, all from the run's tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from silodp.experiments.columns import REPORTED_COLUMNS
from silodp.files import read_table, with_reading
from silodp.privacy.standing import Standing, counts_of
from silodp.report.figures import findings as pictures
from silodp.report.figures.style import label, styled
from silodp.report.figures.svg import svg_text
from silodp.report.figures.words import setting_words, short_title, title_of
from silodp.report.page.figures import Page, csv_address
from silodp.report.paper_figures import CALIBRATED_OF, paper_figures
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.comparisons import BEHIND, BY_CALIBRATED, CALIBRATED, ENDED, HEADLINE, SAME, by_data_set

# What a finding is about, and the claim whose sentence stands beside it.
_CLAIMED, _TRUE, _EQUAL = ("claimed", "N2"), ("true", "N6"), ("equal", "C1")
# What a reader who knows no paper has to know of the first pair.
_WHO = {"spider": ", the newer algorithm,", "minibatch_sgd": ", the simple one,"}
# Algorithms that a figure of a paper runs with noise.
_FIGURES = ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider")
_NUMBERS = ["experiment", "algorithm", "M", "R", "epsilon", "delivered_lower", "delivered_epsilon", "delta", "claim"]


@dataclass(frozen=True)
class Headline:
    """A sentence with what it rests on: `wide` and `narrow` are the picture as SVG, `csv` its rows, by address.

    `shown` says what the marks of the picture are.
    """

    anchor: str
    sentence: str
    detail: str
    wide: str
    narrow: str
    csv: str
    claim: str = ""
    quote: str = ""
    paper: str = ""
    shown: str = ""


def findings(page: Page, comparisons: pd.DataFrame | None, privacy: pd.DataFrame) -> list[Headline]:
    """Accuracy at claimed ε, true ε against the claim, accuracy at equal certified ε; of a plug-in its own pairs first.

    A finding whose rows the run lacks is left out.
    """
    none = pd.DataFrame(columns=["first", "second", "reading"])
    rows = none if comparisons is None else with_reading(comparisons)
    pairs = dict.fromkeys(zip(rows["first"], rows["second"], strict=True))
    ours = [pair for pair in pairs if pair not in HEADLINE and not pair[0].endswith(BY_CALIBRATED)]
    found = [_accuracy(page, rows, pair, "", ("own", "")) for pair in ours]
    if not ours:
        found.append(_accuracy(page, _of_papers(rows), HEADLINE[0], "", _CLAIMED, rows))
    of_figures = _of_papers(with_reading(privacy).query("reading == ''"))
    own = of_figures[of_figures.get("algorithm", pd.Series(dtype=str)).isin(_FIGURES)]
    found.append(_true(own if len(own) else of_figures, rows))
    found.append(None if ours else _accuracy(page, rows, HEADLINE[1], ENDED, _EQUAL))
    return [each for each in found if each is not None]


def _of_papers(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows behind the papers' own figures; all where a run has none of them."""
    own = rows[rows.get("experiment", pd.Series(dtype=str)).isin({figure.experiment for figure in paper_figures()})]
    return own if len(own) else rows


def _accuracy(
    page: Page,
    rows: pd.DataFrame,
    pair: tuple[str, str],
    reading: str,
    about: tuple[str, str],
    certified: pd.DataFrame | None = None,
) -> Headline | None:
    rows = rows[(rows["first"] == pair[0]) & (rows["second"] == pair[1]) & (rows["reading"] == reading)]
    files = {name: page.folder / "reported" / f"{name}.csv" for name in rows.get("experiment", [])}
    rows = rows[[files[name].is_file() for name in rows["experiment"]]] if len(rows) else rows
    if rows.empty:
        return None
    reported = {name: with_reading(read_table(files[name], REPORTED_COLUMNS)) for name in rows["experiment"].unique()}
    table = by_data_set(rows, reported)
    # A data set is called as the titles of its experiments begin.
    names = {data_set(name): title_of(name, page.titles).partition(",")[0] for name in [*files][::-1]}
    table["data_set"] = table["data_set"].map(names)
    cells = rows.assign(data_set=rows["experiment"].map(data_set).map(names))
    shown = table[table["mean"].notna() & table["low"].notna()]
    if shown.empty:
        return None
    ahead, behind, neither, same = (int(table[word].sum()) for word in ("ahead", "behind", "open", "same"))
    place = {"": "At the claimed ε", ENDED: "At equal certified ε"}[reading]
    who, other = (f"{label(name).removeprefix('ISRL-DP ')}{_WHO.get(name, '') * (about == _CLAIMED)}" for name in pair)
    word = f"loses to {other} more often than it wins" if behind > ahead else f"beats {other} as often as it loses"
    word = f"beats {other} more often than it loses" if ahead > behind else word
    if not ahead + behind:
        word = f"is not told apart from {other}"
    sentence = f"{place}, {who} {word.rstrip(',')}: smaller test error at {ahead or 'none'} of "
    sentence += f"{ahead + behind + neither} comparisons, larger at {behind or 'none'}, neither at {neither or 'none'}"
    sentence += "" if certified is None else _when_certified(certified)
    means = "; ".join(_mean(row) for row in shown.to_dict("records"))
    equal, kept, lost = (int(table[word].sum()) for word in ("equal", "ahead_kept", "behind_kept"))
    detail = f"Holm’s correction keeps {kept} of the {ahead} smaller and {lost} of the {behind} larger errors."
    detail += f" Of the {neither} others {equal} are equal within the tolerance." if equal else ""
    detail += f" Mean difference, with its 95 % interval: {means}."
    detail += f" {same} further comparisons are of an algorithm with itself, and are left out." if same else ""
    marks = "Thick bar: mean difference with its 95 % interval, an arrow where that leaves out 0; "
    tolerance = shown["tolerance"].max()
    marks += "thin strokes: single comparisons, which count as smaller or larger where their 95 % intervals leave out 0"
    marks += f"; grey band: within the tolerance of {tolerance:g}." if tolerance > 0 else "."
    return _finding(about, f"{sentence}.", detail, lambda width: pictures.means(shown, cells, width), table, marks)


def _when_certified(comparisons: pd.DataFrame) -> str:
    """The same pair where both have the least noise that certifies ε, in the experiments that decide N2 again."""
    names = [name for some in CALIBRATED_OF.values() for name in some]
    rows = comparisons[comparisons["experiment"].isin(names) & (comparisons["reading"] == CALIBRATED)]
    rows = rows[(rows["first"] == HEADLINE[0][0]) & (rows["second"] == HEADLINE[0][1])]
    if rows.empty:
        return ""
    behind, same = ((rows["outcome"] == word).sum() for word in (BEHIND, SAME))
    words = f". At equal certified ε it is behind at {behind or 'none'} of {len(rows)}"
    return words + (f": at {same} its tuning chooses phases of one round, which are the same algorithm" if same else "")


def _mean(row: Mapping) -> str:
    value, low, high = (pictures.signed_difference(row[key]) for key in ("mean", "low", "high"))
    return f"{row['data_set']} {value} [{low}, {high}]"


def _true(rows: pd.DataFrame, comparisons: pd.DataFrame) -> Headline | None:
    if rows.empty:
        return None
    counts = counts_of(rows)
    kept, more, violated = (counts[word] for word in (Standing.KEPT, Standing.NOT_CERTIFIED, Standing.VIOLATED))
    sentence = f"The noise keeps what it claims: the true ε of all {kept:,} private results is at most the claimed one."
    if kept < len(rows):
        sentence = (
            f"The stated noise provably protects less than it claims at {violated or 'none'} of {len(rows):,} private "
            f"results; of {more:,} more the claim lies between our two bounds, {kept:,} keep it."
        )
    setting = next(iter(_settings(rows, comparisons)))
    part = rows[(rows[["experiment", "M", "R"]] == setting).all(axis=1)]
    names = dict.fromkeys(label(name).removeprefix("ISRL-DP ") for name in pictures.sort_algorithms(part["algorithm"]))
    shown = "A mark is at the lower bound of a result’s true ε, its bar ends at the upper bound, some off the picture; "
    shown += "close bounds have no visible bar. "
    shown += f"Drawn: {len(part)} of the {len(rows):,}, those of {short_title(setting[0])}, "
    shown += f"{setting_words(*setting[1:])}; at each claimed ε, from left: {', '.join(names)}."
    detail = "Both bounds on the true ε are proven."
    table = rows[[name for name in _NUMBERS if name in rows]]
    return _finding(_TRUE, sentence, detail, lambda width: pictures.true_epsilon(part, width), table, shown)


def _settings(rows: pd.DataFrame, comparisons: pd.DataFrame) -> Sequence[tuple]:
    """Settings in the order of the papers' figures, those where the first pair is compared before others."""
    have = list(dict.fromkeys(zip(rows["experiment"], rows["M"], rows["R"], strict=True)))
    compared = set(comparisons.loc[comparisons["first"] == HEADLINE[0][0], "experiment"]) if len(comparisons) else set()
    drawn = [(figure.experiment, figure.M, figure.R) for figure in paper_figures()]
    order = {place: number for number, place in enumerate(drawn)}
    return sorted(have, key=lambda place: (place[0] not in compared, order.get(place, len(order))))


def _finding(
    about: tuple[str, str], sentence: str, detail: str, draw: Callable[[str], Any], table: pd.DataFrame, shown: str
) -> Headline:
    anchor, claim = about
    with styled():
        wide, narrow = (svg_text(draw(width), f"{anchor}-{width}").strip() for width in pictures.WIDTHS)
    quote, paper = next(((each.quote, each.source) for each in load_claims() if each.id == claim), ("", ""))
    paper = f"The {paper.partition(' paper')[0]} paper"
    return Headline(f"finding-{anchor}", sentence, detail, wide, narrow, csv_address(table), claim, quote, paper, shown)
