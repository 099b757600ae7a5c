"""The report page of a run: one HTML file with its figures inside, made from the run's folder and nothing else."""

import base64
import gzip
import hashlib
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from silodp.experiments.columns import TABLE_COLUMNS
from silodp.files import experiments_of, read_json, read_table, with_reading, write_text
from silodp.privacy.standing import Standing, counts_of
from silodp.report.cells import read_cells
from silodp.report.figures.reader_words import title_of
from silodp.report.page.blocks import Block, Figures, Section, Text
from silodp.report.page.claims import read_claims, shown_claims
from silodp.report.page.experiments import RunExperiment, by_experiment, by_number, certified, curves, own_data
from silodp.report.page.figure_list import Page
from silodp.report.page.leaderboard_page import board
from silodp.report.page.own_study_page import study_page
from silodp.report.page.papers import ORDER, cards, paper_of
from silodp.report.page.sentences import findings
from silodp.report.page.summaries import bounds, facts, privacy, results
from silodp.verdicts.words import Verdict

# What the page is made of; digests know data files by this form.
TEMPLATE, STYLE = Path(__file__).with_name("page.html.j2"), Path(__file__).with_name("page.css")
SCRIPT = Path(__file__).with_name("page.js")


def build(run_folder: Path | str, output: Path | str) -> None:
    """Write the report of `run_folder` (results/<run>) as one HTML file, with links relative to `output`.

    A run of which no experiment is a paper's opens with what it promises and shows no claims. A line names every part
    that the folder lacks. Raises ValueError for a missing folder, or a file in it that cannot be read.
    """
    folder, output = Path(run_folder), Path(output)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such run folder")
    config, provenance = read_json(folder / "config.json"), read_json(folder / "provenance.json")
    experiments = _experiments(folder, config.get("experiments", {}))
    page = Page(folder, output.parent, {experiment.name: experiment.title for experiment in experiments})
    cells = read_cells(folder / "comparisons.csv") if (folder / "comparisons.csv").is_file() else None
    own = bool(experiments) and not any(paper_of(experiment.paper) for experiment in experiments)
    # The papers' claims are not about a plug-in's run.
    plugin = bool(config.get("plugins"))
    table = None if own or plugin else read_claims(folder)
    beside = [experiment for experiment in experiments if experiment.both_noises and not own]
    tables = {experiment.name: experiment.table for experiment in experiments if experiment.table is not None}
    raced = [experiment.title for experiment in experiments if experiment.about.get("tuning") == "race"]
    private = page.privacy()
    first: list[Block] = [curves(page, experiments)] if plugin and not own else []
    found = [] if own else findings(page, cells, private)
    paired = [] if own else page.forests("paired_", "Differences in test error")
    boards = board(page)
    sections = [
        *([own_data(page, experiment) for experiment in experiments if own and experiment.own_data]),
        *([] if own or plugin else by_number(page, experiments, cells)),
        *([Section("paired", "Every comparison", [Figures(paired)], folded=True)] if paired else []),
        *certified(page, beside),
        *boards,
        *by_experiment(page, experiments, cells, bool(boards or page.shown)),
        results(page, tables, raced),
        privacy(page),
        *bounds(page),
    ]
    if checkins := page.checkins():
        csv = page.csv(folder / "checkins" / "figure_2.csv", "Figure 2 (CSV)")
        sections.append(Section("checkins", "Random check-ins", [Figures(checkins), Text("", "settings", csv)]))
    # The papers' formulas say nothing of one's own data.
    if others := page.remaining_figures(formulas=not own):
        title = "ε by round" if own else "Noise formulas, and ε by round"
        sections.append(Section("others", title, [Figures(others, "" if own and not boards else title)]))
    claims = None
    if table is not None:
        claims = shown_claims(page, table, [figure for section in sections for figure in section.figures()])
    if own or not found:
        first.append(_alarm(private, bool(beside)))
    if table is None and not own and not plugin:
        first.append(Text("No verdicts: silodp claims makes claims.csv.", "missing"))
    if any((folder / "study").glob("*.json")):
        first, sections = study_page(page, [experiment for experiment in experiments if experiment.own_data])
    run = config.get("run") or provenance.get("run") or folder.resolve().name
    title = f"Run {run}" if own or plugin else "Differentially private federated learning, replicated"
    script = SCRIPT.read_text(encoding="utf-8")
    text = _template().render(
        run=run,
        title="Private federated learning at equal certified ε" if boards and own else title,
        facts=facts(provenance),
        papers=[] if own else cards(claims or [], [experiment.paper for experiment in experiments]),
        own=own,
        board=bool(boards) and own,
        findings=found,
        first=first,
        claims=claims and [claim for claim in claims if claim.kind == "experiment"],
        decided={claim.name for claim in claims or [] if claim.verdict != Verdict.NOT_TESTABLE},
        theorems=[claim for claim in claims or [] if claim.kind != "experiment"],
        order=ORDER,
        csv=page.csv(folder / "claims.csv", "All verdicts: claims.csv"),
        verdicts=list(Verdict),
        sections=sections,
        provenance=_without_nulls(provenance),
        style=STYLE.read_text(encoding="utf-8"),
        script=script,
        # The page runs this one script and nothing else, whatever a title in it holds.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    write_text(text, output)


def _template() -> Any:
    files = FileSystemLoader(TEMPLATE.parent)
    environment = Environment(
        loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["pack"] = pack
    # Figures by number stand beside each other.
    environment.filters["groupby_kind"] = lambda blocks: [
        list(group) for _, group in itertools.groupby(blocks, key=lambda block: block.kind)
    ]
    return environment.get_template(TEMPLATE.name)


def pack(text: str) -> str:
    """Text as the page's script unpacks it: gzip, then base64; the same text gives the same bytes."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _experiments(folder: Path, described: Mapping[str, Any]) -> list[RunExperiment]:
    named = experiments_of(folder)
    tables = {
        path.stem: with_reading(read_table(path, TABLE_COLUMNS))
        for path in sorted((folder / "tables").glob("*.csv"))
        if named is None or path.stem in named
    }
    abouts = {name: described.get(name) or {} for name in [*described, *tables]}
    return [
        RunExperiment(name, str(about.get("title") or title_of(name)), about, tables.get(name))
        for name, about in abouts.items()
    ]


def _alarm(private: pd.DataFrame, beside: bool) -> Text:
    """How many private rows keep their claim, surely violate it, and neither."""
    if private.empty:
        return Text("No private row has an accounted ε.")
    kept, more, violated = counts_of(private).values()
    if kept == len(private):
        return Text(f"{Standing.KEPT.sign} All {kept:,} private rows keep their claim.")
    text = f"{Standing.VIOLATED.sign} {violated:,} of {len(private):,} private rows provably violate their claim; "
    text += f"{more:,} more cannot be certified at it; {kept:,} keep it."
    links = [("Privacy", "#privacy"), ("At equal certified privacy", "#certified")]
    return Text(text, "alarm", links[: 1 + beside])


def _without_nulls(record: Any) -> Any:
    """A nested record for the page's tree: what is null or empty left out, values as text."""
    if isinstance(record, dict):
        kept = {key: _without_nulls(value) for key, value in record.items()}
        return {key: value for key, value in kept.items() if value not in (None, {}, "")}
    if record is None or record == []:
        return None
    return record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)
