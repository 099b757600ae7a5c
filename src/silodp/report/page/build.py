"""The report page of a run: one HTML file with its figures inside, made from the run's folder and nothing else."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from silodp.files import TABLE_COLUMNS, experiments_of, read_json, read_table, write_text
from silodp.report.figures import FIGURES, figure_name, slices
from silodp.report.figures.slices import with_reading
from silodp.report.figures.words import setting_words, title_of, variant_words
from silodp.report.numbers import measured
from silodp.report.page.audit import audit_part
from silodp.report.page.bounds import bounds
from silodp.report.page.certified import certified_part, trains_both
from silodp.report.page.claims import claims_part
from silodp.report.page.figures import CAPTIONS, Page
from silodp.report.page.own import own_part
from silodp.report.page.papers import beside, cards, counts, paper_of
from silodp.report.page.races import races_part
from silodp.report.page.tables import DEFAULT, EDGE, FACETS, SUMMARY, pack, privacy, results
from silodp.report.page.variants import variants_part
from silodp.report.paper_figures import heading_of
from silodp.verdicts.comparisons import CALIBRATED

MOST_SILOS = 30
COMPARED = ["experiment", "reading", "M", "R", "first", "second", "low", "high", "tolerance"]
# Kind of figures that stand open, and where both noises were trained; the others of the same rows are folded.
OPEN, OPEN_BESIDE = "error_vs_epsilon", "both_noises"


def build(run_folder: Path | str, output: Path | str) -> None:
    """Write the report of `run_folder` (results/<run>) as one HTML file, with links relative to `output`.

    A run of which no experiment is a paper's opens with its own figures and privacy table and shows no claims. Every
    part that the folder does not have is named in a line. Raises ValueError when there is no such folder, or a file in
    it cannot be read as what it should be.
    """
    folder, output = Path(run_folder), Path(output)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such run folder")
    config, provenance = read_json(folder / "config.json"), read_json(folder / "provenance.json")
    named = experiments_of(folder)
    tables = {
        path.stem: with_reading(read_table(path, TABLE_COLUMNS))
        for path in sorted((folder / "tables").glob("*.csv"))
        if named is None or path.stem in named
    }
    described = config.get("experiments", {})
    names = [*described, *(name for name in tables if name not in described)]
    titles = {name: str((described.get(name) or {}).get("title") or title_of(name)) for name in names}
    page = Page(folder, output.parent, titles)
    compared = folder / "comparisons.csv"
    comparisons = read_table(compared, COMPARED) if compared.is_file() else None
    experiments = [_experiment(page, name, described.get(name) or {}, tables.get(name), comparisons) for name in names]
    sources = {one["name"]: one["paper"] for one in experiments}
    own = bool(experiments) and not any(sources.values())
    paired, checkins, checks = page.paired(), page.checkins(), bounds(page)
    certified = None if own else certified_part(page, tables)
    others = page.others(formulas=not own)  # the papers' say nothing of one's own data
    default = "as in the run file" if own else DEFAULT
    figures = [figure for one in experiments for figure in one["all"]]
    figures += [
        *(certified["figures"] + certified["noises_figures"] if certified else []),
        *paired,
        *others,
        *checkins,
        *(check["figure"] for check in checks if check["figure"]),
    ]
    anchors = [figure["anchor"] for figure in figures if figure["picture"]]
    claims = None if own else claims_part(page, anchors)
    # Experiments with both noises have a section of their own, and the headline is of the others.
    under_both = [one for one in experiments if certified and trains_both(tables.get(one["name"]))]
    headline = {name: one for name, one in tables.items() if name not in [other["name"] for other in under_both]}
    table, private = results(tables, default), privacy(folder / "privacy.csv", titles, default)
    script = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
    text = (
        _environment()
        .get_template("page.html.j2")
        .render(
            run=config.get("run") or provenance.get("run") or folder.resolve().name,
            own=own,
            facts=_facts(provenance),
            mine=own_part(folder, described),
            summary=_summary(tables),
            exceeding=_summary(headline),
            cards=[] if own else cards(claims["claims"] if claims else [], comparisons, sources),
            claims=claims,
            paired=[] if own else paired,
            groups=_grouped(one for one in experiments if one not in under_both),
            certified=certified,
            variants=None if own else variants_part(folder),
            beside=under_both,
            others=others,
            races=races_part(described, titles),
            results=table,
            privacy=private,
            privacy_heading=SUMMARY,
            facets=_facets(titles, table, private),
            default=default,
            edges=table is not None and EDGE in json.dumps(table["heading"]),
            audit=audit_part(folder / "audit.csv", titles),
            bounds=checks,
            checkins=checkins,
            provenance=_without_nulls(provenance),
            style=(Path(__file__).parent / "page.css").read_text(encoding="utf-8"),
            script=script,
            # The page runs this one script and nothing else, whatever a title in it holds.
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )
    write_text(text, output)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["pack"] = pack
    environment.globals["counts"] = counts
    return environment


def _experiment(
    page: Page, name: str, about: Mapping[str, Any], table: pd.DataFrame | None, comparisons: pd.DataFrame | None
) -> dict[str, Any]:
    """One experiment: the figures of its default rows, those of its variants, and its partition."""
    title, paper = about.get("title") or name, about.get("paper") or ""
    opened: list[dict[str, Any]] = []
    folded: list[dict[str, Any]] = []
    both = trains_both(table)
    for (M, R, reading), _ in slices(table) if table is not None else []:
        setting = setting_words(M, R) + (f", {variant_words(reading)}" if reading else "")
        for kind in FIGURES:
            stem = figure_name(name, M, R, reading, kind)
            first = kind == OPEN_BESIDE and reading == CALIBRATED if both else kind == OPEN and not reading
            if first or stem in page.figures:
                caption = CAPTIONS.get(kind) or kind.replace("_", " ")
                heading = heading_of(name, M, R) if first else ""
                figure = page.result(stem, name, caption, heading or setting) | {"setting": setting, "kind": kind}
                if first:
                    figure["beside"] = beside(name, M, R, comparisons)
                (opened if first else folded).append(figure)
    # As the paper numbers them; those that it does not show come last.
    opened.sort(key=lambda figure: _numbered(figure["heading"]))
    return {
        "name": name,
        "title": title,
        "paper": paper,
        "csv": page.link(page.folder / "tables" / f"{name}.csv"),
        "figures": opened,
        "folded": folded,
        "all": [*opened, *folded],
        "rows": 0 if table is None else len(table),
        "partition": _partition(page.folder / "silos" / name / "default"),
    }


def _numbered(heading: str) -> float:
    found = re.match(r"Figure (\d+)", heading)
    return int(found[1]) if found else math.inf


def _grouped(experiments: Iterable[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Experiments by the paper they follow, in the order in which papers appear."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in experiments:
        groups.setdefault(paper_of(one["paper"]), []).append(one)
    return list(groups.items())


def _facets(titles: Mapping[str, str], *tables: dict[str, Any] | None) -> dict[str, dict[str, str]]:
    """What the page's filters offer: the values of all tables together, and how each is shown."""
    shown = [table.get("all", table) for table in tables if table]
    found: dict[str, dict[str, str]] = {}
    for name in FACETS:
        values = dict.fromkeys(value for table in shown if table for value in table["facets"].get(name, []))
        shown_as = {"experiment": lambda key: titles.get(key, key), "variant": variant_words}.get(name, str)
        found[name] = {one: shown_as(one) for one in (sorted(values, key=_as_number) if name == "ε" else values)}
    return {name: values for name, values in found.items() if len(values) > 1}


def _as_number(text: str) -> float:
    return float("inf") if text == "–" else float(text)


def _summary(tables: Mapping[str, pd.DataFrame]) -> dict[str, int]:
    """Counts over all tables: rows, private ones, those over their claim, and diverged trials."""
    private = [table[table["private"]] for table in tables.values()]
    return {
        "rows": sum(len(table) for table in tables.values()),
        "private": sum(len(table) for table in private),
        "exceeding": sum(int((table["delivered_epsilon"] > table["epsilon"]).sum()) for table in private),
        "diverged": sum(int(table["diverged"].sum()) for table in tables.values()),
    }


def _partition(folder: Path) -> dict[str, Any] | None:
    """Heterogeneity over trials, and what each silo holds in the first trial; None without both files."""
    spread, labels = folder / "heterogeneity.csv", folder / "labels.csv"
    if not spread.is_file() and not labels.is_file():
        return None
    found: dict[str, Any] = {"heterogeneity": None, "heading": [], "rows": [], "more": 0}
    if spread.is_file():
        table = read_table(spread, ["trial", "value", "converged"])
        value, open_trials = table["value"], int((~table["converged"]).sum())
        text = f"{measured(value.mean())} ({measured(value.min())} to {measured(value.max())} over {len(table)} trials)"
        found["heterogeneity"] = text + (f"; Newton's method did not converge in {open_trials}" if open_trials else "")
    if labels.is_file():
        table = read_table(labels, ["trial", "silo", "part", "count"])
        silos = list(table[table["trial"] == table["trial"].min()].groupby("silo"))
        what = ["labels"] if "label" in table else ["targets"] if "min" in table else []
        found["heading"] = ["silo", "training records", "test records", *what]
        found["rows"] = [[str(silo), *_held(of)] for silo, of in silos[:MOST_SILOS]]
        found["more"] = max(0, len(silos) - MOST_SILOS)
    return found


def _held(silo: pd.DataFrame) -> list[str]:
    """Numbers of training and test records of a silo, and its training labels or the range of its targets."""
    counted = silo.groupby("part")["count"].sum()
    train = silo[silo["part"] == "train"]
    what = []
    if "label" in silo:
        what = [", ".join(f"{a}: {b}" for a, b in zip(train["label"], train["count"], strict=True))]
    elif "min" in silo:
        what = [f"{measured(train['min'].min())} to {measured(train['max'].max())}"]
    return [str(int(counted.get("train", 0))), str(int(counted.get("test", 0))), *what]


def _facts(provenance: Mapping[str, Any]) -> list[str]:
    """When, with which version and from which commit, as far as it is recorded; a line for each of several runs."""
    if isinstance(runs := provenance.get("runs"), dict):
        return [f"{name}: {', '.join(_facts(record))}" for name, record in runs.items()]
    git = provenance.get("git") or {}
    when = provenance.get("finished") or provenance.get("started")
    commit = git.get("commit")
    changed = " with uncommitted changes" if git.get("dirty") else ""
    seconds = provenance.get("seconds")
    # `--touch` takes files over that were made elsewhere, whose time no record here has.
    touched = any("--touch" in one.get("command", "").split() for one in provenance.get("invocations") or [])
    return [
        f"finished {when}" if when else "time not recorded",
        *([f"{measured(seconds)} s{' besides jobs made elsewhere' * touched}"] if seconds is not None else []),
        f"silodp {provenance['silodp']}" if provenance.get("silodp") else "version not recorded",
        f"commit {commit[:12]}{changed}" if commit else "commit not recorded",
    ]


def _without_nulls(record: Any) -> Any:
    """A nested record for the page's tree: what is null or empty left out, values as text."""
    if isinstance(record, dict):
        kept = {key: _without_nulls(value) for key, value in record.items()}
        return {key: value for key, value in kept.items() if value not in (None, {}, "")}
    if record is None or record == []:
        return None
    return record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)
