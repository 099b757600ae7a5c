"""The page's sections of experiments: figures by paper, both noises beside each other, and experiments on own data."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from silodp.datasets.own.rules import preprocessing_guarantee
from silodp.experiments.columns import PRIVACY_COLUMNS, PRIVACY_EXTRA
from silodp.files import figure_name, read_table
from silodp.privacy.standing import Standing, counts_of
from silodp.report.figures import FIGURES, slices
from silodp.report.figures.own_study_picture import model_title
from silodp.report.figures.reader_words import setting_words, title_of, variant_words
from silodp.report.figures.svg import legend_apart
from silodp.report.numbers import bounded, exact, measured
from silodp.report.page.blocks import Block, Figure, Figures, Key, Numbered, Section, Table, Text
from silodp.report.page.figure_list import CAPTIONS, DRAWN_COLUMNS, NOTES, Page, csv_address
from silodp.report.page.papers import paper_sentence
from silodp.report.paper_figures import CALIBRATED_OF, heading_of, paper_figures
from silodp.verdicts.comparisons import CALIBRATED

# What the marks of the drawings are, once a section.
KEY = (
    f"Marks: {', '.join(f'{word.sign} claim {word}' for word in Standing)}; a bar is the spread over trials, a dashed "
    "level is without noise, a cross is a point with diverged trials; paler and dotted is the paper's noise beside "
    "calibrated noise."
)


@dataclass(frozen=True)
class RunExperiment:
    """One experiment of a run: its name, what config.json says of it, and its results table, if there is one."""

    name: str
    title: str
    about: Mapping[str, Any]
    table: pd.DataFrame | None

    @property
    def paper(self) -> str:
        """The paper and its figure that the experiment follows; empty for none."""
        return self.about.get("paper") or ""

    @property
    def both_noises(self) -> bool:
        """Whether it has results under calibrated noise beside the paper's."""
        return self.table is not None and {"", CALIBRATED} <= set(self.table["reading"])

    @property
    def first_figure(self) -> tuple[str, str]:
        """Kind and reading of the figure that shows its errors first."""
        return ("both_noises", CALIBRATED) if self.both_noises else ("error_vs_epsilon", "")

    @property
    def own_data(self) -> bool:
        """Whether its data lie in a file of the user's, or name their silos in an experiment of no paper."""
        natural = (self.about.get("silos") or {}).get("scheme") == "column" and not self.about.get("paper")
        return natural or isinstance(self.about.get("dataset"), Mapping)


def by_number(page: Page, experiments: Sequence[RunExperiment], cells: pd.DataFrame | None) -> list[Section]:
    """The papers' figures by paper and number, each at the claimed ε, at the true one, and under calibrated noise."""
    tables = {experiment.name: experiment.table for experiment in experiments if experiment.table is not None}
    papers: dict[str, list[Numbered]] = {}
    for figure in paper_figures():
        M, R = figure.M or 0, figure.R or 0
        if figure.experiment not in tables or figure_name(figure.experiment, M, R) not in page.figures:
            continue
        tabs: list[tuple[str, Figure]] = []
        rows = []
        for word, kind, reading, name in (
            ("claimed ε", "error_vs_epsilon", "", figure.experiment),
            ("true ε", "error_vs_delivered", "", figure.experiment),
            ("calibrated noise", "both_noises", CALIBRATED, CALIBRATED_OF.get(figure.experiment, "")),
        ):
            stem = figure_name(name, M, R, reading, kind)
            if name in tables and stem in page.figures and stem not in page.shown:
                of = tables[name]
                drawn = of["reading"].isin({reading, ""})
                rows.append(of[drawn & (of["M"] == M) & (of["R"] == R)])
                # What the paper says, and the comparisons beside it, are about the claimed ε.
                note = "" if tabs else paper_sentence(figure.experiment, M, R, cells)
                tabs.append((word, replace(page.result(stem, name, CAPTIONS[kind]), note=note)))
                page.standing[name] = "by number"
        title = title_of(figure.experiment, page.titles)
        silos = re.findall(r"N = \d+", title)
        heading = f"{figure.title} · {', '.join([title.partition(',')[0], *silos, setting_words(M, R)])}"
        drawn_rows = pd.concat(rows).drop_duplicates()
        csv = csv_address(drawn_rows[[column for column in DRAWN_COLUMNS if column in drawn_rows]])
        numbered = Numbered(f"numbered-{len(page.shown)}", heading, f"make figure FIG={figure.name}", csv, tabs)
        papers.setdefault(figure.paper, []).append(numbered)
    return [
        Section(f"figures-{place}", f"Figures of the {paper}", _with_one_legend(numbered))
        for place, (paper, numbered) in enumerate(papers.items(), start=1)
    ]


def _with_one_legend(numbered: Sequence[Numbered]) -> list[Block]:
    """The key of the marks, the legend of the first figure, and figures: those that have that legend without it."""
    _, legend = legend_apart(numbered[0].tabs[0][1].svg or "<svg/>")
    label = ", ".join(_texts(legend))
    found: list[Block] = [Text(KEY, "settings"), *([Key(legend, label)] if legend else [])]
    for block in numbered:
        (word, figure), *others = block.tabs
        picture, own = legend_apart(figure.svg or "<svg/>")
        if legend and _texts(own) == _texts(legend):
            block = replace(block, tabs=[(word, replace(figure, svg=picture)), *others])
        found.append(block)
    return found


def _texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)", svg)


def curves(page: Page, experiments: Sequence[RunExperiment]) -> Figures:
    """Test error against claimed ε at the first setting of each experiment."""
    found = []
    for experiment in experiments:
        if experiment.table is not None and len(experiment.table):
            (M, R, _), (kind, reading) = next(iter(slices(experiment.table)))[0], experiment.first_figure
            heading = f"{experiment.title}, {setting_words(M, R)}"
            stem = figure_name(experiment.name, M, R, reading, kind)
            found.append(page.result(stem, experiment.name, CAPTIONS[kind], heading))
    return Figures(found)


def by_experiment(
    page: Page, experiments: Sequence[RunExperiment], cells: pd.DataFrame | None, folded: bool
) -> list[Section]:
    """Each experiment with the figures that stand nowhere before; folded where other figures stand before."""
    inner = [section_of(page, experiment, cells, folded) for experiment in experiments]
    title = "Experiments" if page.shown and folded else "Experiments, with all their figures"
    return [Section("experiments", title, [Text(KEY, "settings")], inner)] if inner else []


def section_of(page: Page, experiment: RunExperiment, cells: pd.DataFrame | None, folded: bool) -> Section:
    """An experiment: the figures of its default rows, or of both noises, those of its variants, and its silos.

    Where its figures stand elsewhere on the page, the others are links.
    """
    name, table = experiment.name, experiment.table
    words = " · ".join(word for word in (name, experiment.paper, NOTES.get(name, "")) if word)
    csv = page.csv(page.folder / "tables" / f"{name}.csv", f"all {0 if table is None else len(table)} rows (CSV)")
    first, others = _figures(page, experiment, cells)
    missing = Text(f"No results: tables/{name}.csv is not there, or has no rows.", "missing")
    shown: Block = Figures([*first, *others] if folded else first)
    if place := page.standing.get(name):
        drawn = [figure for figure in first + others if figure.files]
        files = [(f"{figure.heading}: {figure.caption}", figure.files[0][1]) for figure in drawn]
        shown = Text(f"Its figures stand {place}{'; beside them are' if files else '.'}", "settings", files)
    beside = Figures([] if folded or place else others, "True ε, and variants of the protocol")
    results = missing if table is None or table.empty else shown
    blocks = [Text(words, "settings", csv), results, beside, _silos(page, name)]
    return Section(f"experiment-{name}", experiment.title, blocks, folded=folded)


def _figures(page: Page, experiment: RunExperiment, cells: pd.DataFrame | None) -> tuple[list[Figure], list[Figure]]:
    """The figures that stand first and the others, without those that the page shows before."""
    first: list[Figure] = []
    others: list[Figure] = []
    kind_first, reading_first = experiment.first_figure
    for (M, R, reading), _ in slices(experiment.table) if experiment.table is not None else []:
        setting = setting_words(M, R) + (f", {variant_words(reading)}" if reading else "")
        for kind in FIGURES:
            stem = figure_name(experiment.name, M, R, reading, kind)
            if stem in page.shown:
                continue
            caption = CAPTIONS.get(kind) or kind.replace("_", " ")
            if (kind, reading) == (kind_first, reading_first):
                note = paper_sentence(experiment.name, M, R, cells)
                heading = heading_of(experiment.name, M, R)
                first.append(page.result(stem, experiment.name, caption, heading, note))
            elif stem in page.figures:
                others.append(page.result(stem, experiment.name, caption, setting))
    # As the paper numbers them; those that the paper does not show come last.
    numbers = {figure.heading: re.match(r"Figure (\d+)", figure.heading) for figure in first}
    first.sort(key=lambda figure: int(number[1]) if (number := numbers[figure.heading]) else math.inf)
    return first, others


def _silos(page: Page, name: str) -> Text:
    """How many records the silos hold in the first trial, and how different they are over all trials."""
    folder = page.folder / "silos" / name / "default"
    spread, labels = folder / "heterogeneity.csv", folder / "labels.csv"
    parts = []
    if labels.is_file():
        table = read_table(labels, ["trial", "silo", "part", "count"])
        table = table[table["trial"] == table["trial"].min()]
        sizes = table.groupby("silo")["count"].sum()
        parts.append(f"{len(sizes)} silos of {sizes.min()} to {sizes.max()} records in the first trial")
    if spread.is_file():
        table = read_table(spread, ["trial", "value", "converged"])
        value, unconverged = table["value"], int((~table["converged"]).sum())
        parts.append(
            "heterogeneity υ*², the mean over silos of the squared gradient norm at their common minimiser: "
            f"{measured(value.mean())} ({measured(value.min())} to {measured(value.max())} over {len(table)} trials)"
            + (f"; Newton's method did not converge in {unconverged}" if unconverged else "")
        )
    if not parts:
        return Text(f"No silos: silos/{name}/default has neither labels.csv nor heterogeneity.csv.", "missing")
    links = [*page.csv(labels, "records by silo (CSV)"), *page.csv(spread, "heterogeneity by trial (CSV)")]
    return Text(f"Silos: {'; '.join(parts)}.", "settings", links)


def certified(page: Page, experiments: Sequence[RunExperiment]) -> list[Section]:
    """Both noises beside each other in `experiments`."""
    if not experiments:
        return []
    rows = pd.concat([experiment.table for experiment in experiments]).query("private")
    counts = [
        ", ".join(f"{count} {word}" for word, count in counts_of(rows[rows["reading"] == reading]).items())
        for reading in (CALIBRATED, "")
    ]
    text = (
        "Each algorithm with the least noise for which the upper bound on its true ε is at most the ε on the axis. "
        "The paper's noise stands beside it, on the same splits, starts and grids. Claims of rows under calibrated "
        f"noise: {counts[0]}; under the paper's: {counts[1]}."
    )
    pairs = page.forests("equal_", "Differences in test error at equal true ε")
    pairs += page.forests("certified_", "Differences in test error at exactly the claimed ε")
    pairs += page.forests("noises_", "Test error under calibrated noise minus that under the paper's")
    return [Section("certified", "At equal certified privacy", [Text(text), Figures(pairs, "Differences")])]


# Column of privacy.csv → heading.
_PROMISED = {
    "delivered_epsilon": "a record",
    "epsilon_person": "a person",
    "epsilon_selection": "with the choice of a point",
    "epsilon_first_round": "after the first round",
    "epsilon_half_rounds": "after half the rounds",
}
HEADING = ["model", "rounds", "ε", "δ at most", *_PROMISED.values()]


def own_data(page: Page, experiment: RunExperiment) -> Section:
    """What an experiment on one's own data promises, and what is not private."""
    rows = page.privacy([*PRIVACY_COLUMNS, *PRIVACY_EXTRA])
    rows = rows[(rows["experiment"] == experiment.name) & (rows["reading"].fillna("") == "")]
    dataset = experiment.about["dataset"] if isinstance(experiment.about["dataset"], Mapping) else {}
    points = "some" if rows.empty else exact(rows["selection_points"].max())
    steps, about_silos = experiment.about.get("preprocess") or {}, experiment.about.get("silos") or {}
    return Section(
        f"own-{experiment.name}",
        f"{experiment.title}: what is promised, and what is not",
        [
            Text(
                "This page is a study of the data, for their owners and not for publication. It stores no model: "
                "silodp federate makes one for others, with fresh noise."
            ),
            Text(
                "Each row holds against whoever sees all messages of a silo. Its ε is proven from above, for the worst "
                f"silo, with δ of each silo's own number of records. {_person(dataset, rows)}"
            ),
            Table("ε of what was trained, by algorithm", HEADING, [_promised(row) for row in rows.to_dict("records")]),
            Text(
                f"Step size, clip and rounds were chosen among {points}, without noise, which no column counts. “With "
                "the choice of a point” is what a private choice of the best would have cost in all."
            ),
            Text(preprocessing_guarantee(steps, dataset.get("missing", "refuse"), about_silos.get("scheme", "column"))),
            Text(
                "Errors, losses, categories and sizes of silos on this page are computed from records without "
                "noise: the page is for the owners of the data. So are the run file and provenance, whose seed tells "
                "the noise."
            ),
        ],
    )


def _promised(row: Mapping[Any, Any]) -> list[str]:
    shown = ["not proven" if math.isnan(row[name]) else bounded(row[name]) for name in _PROMISED]
    return [model_title(row["algorithm"]), exact(row["R"]), exact(row["epsilon"]), exact(row["delta"]), *shown]


def _person(dataset: Mapping[str, Any], rows: pd.DataFrame) -> str:
    if not dataset.get("person") or rows.empty:
        return "Nobody is named in the data: a person stands for one record in one silo."
    silos, records = int(rows["person_silos"].max()), int(rows["person_records"].max())
    return (
        f"A person has records in {silos} silo{'s' * (silos > 1)} at most, up to {records} in one: all of them are "
        "replaced together, and silos compose."
    )
