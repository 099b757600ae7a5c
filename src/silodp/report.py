"""The report page of a run: one HTML file with its figures inside, made from the run's folder and nothing else."""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from silodp.figures import FIGURES, figure_name, slices
from silodp.figures.slices import with_reading
from silodp.figures.style import in_order, label
from silodp.report_audit import audit_part
from silodp.report_bounds import bounds
from silodp.report_claims import claims_part
from silodp.report_figures import CAPTIONS, Page
from silodp.report_numbers import bounded, exact, measured, read_json, read_table
from silodp.results import PRIVACY_COLUMNS, TABLE_COLUMNS, write_text

# Said once above a table where it is the same in all its rows: column, words before the value.
SHARED = {
    "N": "silos N =",
    "n": "training records a silo n =",
    "K": "batch K =",
    "delta": "δ =",
    "trials": "trials",
    "selection": "selection",
    "evaluation": "evaluation",
}
HEADINGS = {
    "algorithm": "algorithm",
    "epsilon": "claimed ε",
    "delivered_epsilon": "delivered ε",
    "test_error_mean": "test error",
    "spread": "5–95 %",
    "train_loss_mean": "training loss",
    "stepsize": "step size",
    "clip": "clip",
    "phase_length": "q",
    "N": "N",
    "n": "n",
    "K": "K",
    "delta": "δ",
    "selection": "selection",
    "evaluation": "evaluation",
    "trials": "trials",
    "diverged": "diverged",
    "seconds": "seconds",
}
PRIVACY_HEADINGS = {
    "experiment": "experiment",
    "algorithm": "algorithm",
    "reading": "reading",
    "M": "M",
    "R": "R",
    "epsilon": "ε",
    "claimed_epsilon": "claimed ε",
    "delivered_epsilon": "delivered ε",
    "delta": "δ",
    "accountant": "accountant",
    "adjacency": "adjacency",
    "sampling": "sampling",
    "noise_multiplier": "noise multiplier",
    "holds": "holds",
}
MOST_SILOS = 30


def build(run_folder: Path | str, output: Path | str) -> None:
    """Write the report of `run_folder` (results/<run>) as one HTML file, with links relative to `output`.

    Every part that the folder does not have is named in a line. Raises ValueError when there is no such folder, or a
    file in it cannot be read as what it should be.
    """
    folder, output = Path(run_folder), Path(output)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such run folder")
    config, provenance = read_json(folder / "config.json"), read_json(folder / "provenance.json")
    tables = {
        path.stem: with_reading(read_table(path, TABLE_COLUMNS)) for path in sorted((folder / "tables").glob("*.csv"))
    }
    described = config.get("experiments", {})
    names = [*described, *(name for name in tables if name not in described)]
    page = Page(folder, output.parent)
    experiments = [_experiment(page, name, described.get(name) or {}, tables.get(name)) for name in names]
    others, checkins, checks = page.others(), page.checkins(), bounds(page)
    figures = [figure for one in experiments for part in one["parts"] for figure in part["figures"]]
    figures += [*others, *checkins, *(check["figure"] for check in checks if check["figure"])]
    script = (Path(__file__).parent / "report.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("report.html.j2").render(
        run=config.get("run") or provenance.get("run") or folder.resolve().name,
        facts=_facts(provenance),
        summary=_summary(tables),
        claims=claims_part(page, [figure["anchor"] for figure in figures if figure["picture"]]),
        experiments=experiments,
        others=others,
        privacy=_privacy(folder / "privacy.csv"),
        audit=audit_part(folder / "audit.csv"),
        bounds=checks,
        checkins=checkins,
        provenance=_flat(provenance),
        style=(Path(__file__).parent / "report.css").read_text(encoding="utf-8"),
        script=script,
        # The page runs this one script and nothing else, whatever a title in it holds.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    write_text(text, output)


def _experiment(page: Page, name: str, about: Mapping[str, Any], table: pd.DataFrame | None) -> dict[str, Any]:
    """One experiment: its parts by (M, R, reading), each with figures and rows, and its partition."""
    title, paper, parts = about.get("title") or name, about.get("paper") or "", []
    for (M, R, reading), rows in slices(table) if table is not None else []:
        setting = f"M = {M}, R = {R}" + (f", {reading}" if reading else "")
        wanted = {kind: figure_name(name, M, R, reading, kind) for kind in FIGURES}
        figures = [
            page.result(stem, name, f"{title}: {CAPTIONS.get(kind) or kind.replace('_', ' ')}, {setting}", paper)
            for kind, stem in wanted.items()
            if (kind == "error_vs_epsilon" and not reading) or stem in page.figures
        ]
        # Rows of another reading than the default one stand folded, so that the default is read first.
        parts.append({"setting": setting, "figures": figures, "folded": bool(reading), **_results(rows)})
    return {
        "name": name,
        "title": title,
        "paper": paper,
        "csv": page.link(page.folder / "tables" / f"{name}.csv"),
        "parts": parts,
        "partition": _partition(page.folder / "silos" / name / "default"),
    }


def _summary(tables: Mapping[str, pd.DataFrame]) -> dict[str, int]:
    """Counts over all tables: rows, private ones, those over their claim, and diverged trials."""
    private = [table[table["private"]] for table in tables.values()]
    return {
        "rows": sum(len(table) for table in tables.values()),
        "private": sum(len(table) for table in private),
        "exceeding": sum(int((table["delivered_epsilon"] > table["epsilon"]).sum()) for table in private),
        "diverged": sum(int(table["diverged"].sum()) for table in tables.values()),
    }


def _results(rows: pd.DataFrame) -> dict[str, Any]:
    """Heading, body and shared settings of one (M, R, reading): private rows first, by algorithm and ε."""
    rank = {name: place for place, name in enumerate(in_order(rows["algorithm"]))}
    rows = rows.assign(rank=rows["algorithm"].map(rank))
    rows = rows.sort_values(["private", "rank", "epsilon"], ascending=[False, True, True], kind="stable")
    settings, columns = [], [name for name in HEADINGS if name not in SHARED]
    for name, words in SHARED.items():
        # δ is a private row's: non-private rows leave it empty.
        values = rows[name].dropna().unique()
        if len(values) == 1:
            settings.append(f"{words} {values[0] if isinstance(values[0], str) else exact(values[0])}")
        elif len(values) > 1:
            columns.insert(-1, name)
    if rows["phase_length"].isna().all():
        columns.remove("phase_length")
    body = [_result_row(row, columns) for row in rows.to_dict("records")]
    return {"settings": settings, "heading": [HEADINGS[name] for name in columns], "rows": body}


def _result_row(row: Mapping[Any, Any], columns: list[str]) -> dict[str, Any]:
    exceeds = bool(row["private"]) and row["delivered_epsilon"] > row["epsilon"]
    shown = {
        "algorithm": label(row["algorithm"], bool(row["private"]), row["reading"]),
        "delivered_epsilon": bounded(row["delivered_epsilon"]) + (" ▲" if exceeds else ""),
        "spread": f"{measured(row['test_error_p05'])} – {measured(row['test_error_p95'])}",
        "diverged": f"{int(row['diverged'])} of {int(row['trials'])}" if row["diverged"] else "0",
        "selection": str(row["selection"]),
        "evaluation": str(row["evaluation"]),
        **{name: measured(row[name]) for name in ("test_error_mean", "train_loss_mean", "seconds")},
    }
    cells = [shown.get(name) or exact(row[name]) for name in columns]
    classes = ["exceeds"] * exceeds + ["diverged"] * bool(row["diverged"]) + ["baseline"] * (not row["private"])
    return {"cells": cells, "classes": " ".join(classes)}


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
        found["heading"] = ["silo", "training records", "test records", "labels" if "label" in table else "targets"]
        found["rows"] = [[str(silo), *_held(of)] for silo, of in silos[:MOST_SILOS]]
        found["more"] = max(0, len(silos) - MOST_SILOS)
    return found


def _held(silo: pd.DataFrame) -> list[str]:
    """Numbers of training and test records of a silo, and its training labels or the range of its targets."""
    counts = silo.groupby("part")["count"].sum()
    train = silo[silo["part"] == "train"]
    if "label" in silo:
        what = ", ".join(f"{a}: {b}" for a, b in zip(train["label"], train["count"], strict=True))
    else:
        what = f"{measured(train['min'].min())} to {measured(train['max'].max())}"
    return [str(int(counts.get("train", 0))), str(int(counts.get("test", 0))), what]


def _privacy(path: Path) -> dict[str, Any] | None:
    """Heading, body and shared settings of the privacy table; None where there is no file."""
    if not path.is_file():
        return None
    table = read_table(path, [name for name in PRIVACY_COLUMNS if name != "reading"])
    columns, settings = [name for name in PRIVACY_HEADINGS if name in table], []
    for name in ("accountant", "adjacency", "sampling"):
        if table[name].nunique(dropna=False) == 1:
            columns.remove(name)
            settings.append(f"{name} {table[name].iloc[0]}")
    if "reading" in columns and table["reading"].isna().all():
        columns.remove("reading")
    if table["epsilon"].equals(table["claimed_epsilon"]):
        columns.remove("epsilon")
    rows = [_privacy_row(row, columns) for row in table.to_dict("records")]
    return {"settings": settings, "heading": [PRIVACY_HEADINGS[name] for name in columns], "rows": rows}


def _privacy_row(row: Mapping[Any, Any], columns: list[str]) -> dict[str, Any]:
    exceeds = row["delivered_epsilon"] > row["claimed_epsilon"]
    shown = {
        "algorithm": label(row["algorithm"], reading=row["reading"]),
        "delivered_epsilon": bounded(row["delivered_epsilon"]) + (" ▲" if exceeds else ""),
        "holds": "yes" if row["holds"] else "▲ no",
    }
    cells = [shown.get(name) or (row[name] if isinstance(row[name], str) else exact(row[name])) for name in columns]
    return {"cells": cells, "classes": "exceeds" if exceeds or not row["holds"] else ""}


def _facts(provenance: Mapping[str, Any]) -> list[str]:
    """When, with which version and from which commit, as far as it is recorded; a line for each of several runs."""
    if isinstance(runs := provenance.get("runs"), dict):
        return [f"{name}: {', '.join(_facts(record))}" for name, record in runs.items()]
    git = provenance.get("git") or {}
    when = provenance.get("finished") or provenance.get("started")
    commit = git.get("commit")
    changed = " with uncommitted changes" if git.get("dirty") else ""
    seconds = provenance.get("seconds")
    return [
        f"finished {when}" if when else "time not recorded",
        *([f"{measured(seconds)} s"] if seconds is not None else []),
        f"silodp {provenance['silodp']}" if provenance.get("silodp") else "version not recorded",
        f"commit {commit[:12]}{changed}" if commit else "commit not recorded",
    ]


def _flat(record: Any, path: str = "") -> list[tuple[str, str]]:
    """A nested record as lines of (dotted name, value)."""
    if isinstance(record, dict) and record:
        return [line for key, value in record.items() for line in _flat(value, f"{path}.{key}".lstrip("."))]
    if path:
        return [(path, record if isinstance(record, str) else json.dumps(record, ensure_ascii=False))]
    return []
