"""The report page of a run: one HTML file with its figures inside, made from the run's folder and nothing else."""

import base64
import json
import os
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from silodp.figures import FIGURES, figure_name, slices
from silodp.figures.slices import with_reading
from silodp.figures.style import in_order, label
from silodp.report_bounds import bounds
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
CAPTIONS = {
    "error_vs_epsilon": "test error against ε, mean and 5th to 95th percentile over trials",
    "delivered_vs_claimed": "ε delivered against ε claimed",
    "calibrated_vs_paper": "test error at the ε delivered, calibrated noise beside the paper's",
}
MOST_SILOS = 30


def build(run_folder: Path | str, output: Path | str) -> None:
    """Write the report of `run_folder` (results/<run>) as one HTML file, with links relative to `output`.

    Every part that the folder does not have is named in a line. Raises ValueError when there is no such folder, or a
    file in it cannot be read as what it should be.
    """
    from silodp.report_audit import audit_part  # builds on the formats below

    folder, output = Path(run_folder), Path(output)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such run folder")
    config, provenance = _json(folder / "config.json"), _json(folder / "provenance.json")
    tables = {
        path.stem: with_reading(read_table(path, TABLE_COLUMNS)) for path in sorted((folder / "tables").glob("*.csv"))
    }
    figures = {path.stem: path for path in sorted((folder / "figures").glob("*.png"))}
    described = config.get("experiments", {})
    names = [*described, *(name for name in tables if name not in described)]
    page = Page(folder, output.parent, figures)
    experiments = [page.experiment(name, described.get(name) or {}, tables.get(name)) for name in names]
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
        experiments=experiments,
        others=[page.figure(name) for name in page.unused()],
        privacy=_privacy(folder / "privacy.csv"),
        audit=audit_part(folder / "audit.csv"),
        bounds=bounds(folder / "bounds", read_table, measured, exact, page.link),
        provenance=_flat(provenance),
    )
    write_text(text, output)


class Page:
    """What the template shows of each experiment, and which figures it has shown."""

    def __init__(self, folder: Path, base: Path, figures: Mapping[str, Path]):
        self.folder, self.base, self.figures = folder, base, figures
        self.shown: set[str] = set()

    def link(self, path: Path) -> str | None:
        """A relative address of `path` from the page; None where there is no such file."""
        return quote(Path(os.path.relpath(path, self.base)).as_posix()) if path.is_file() else None

    def unused(self) -> list[str]:
        """Figures in the folder that no experiment's table asked for."""
        return [name for name in self.figures if name not in self.shown]

    def figure(self, name: str, caption: str = "") -> dict[str, Any]:
        """A figure's picture, as a data address, and its files; the picture is None where it is missing."""
        self.shown.add(name)
        path = self.figures.get(name)
        picture = base64.b64encode(path.read_bytes()).decode() if path else None
        pdf = self.link(self.folder / "figures" / f"{name}.pdf")
        return {"name": name, "caption": caption or name, "picture": picture, "pdf": pdf}

    def experiment(self, name: str, about: Mapping[str, Any], table: pd.DataFrame | None) -> dict[str, Any]:
        """One experiment: its parts by (M, R, reading), each with figures and rows, and its partition."""
        title, parts = about.get("title") or name, []
        for (M, R, reading), rows in slices(table) if table is not None else []:
            setting = f"M = {M}, R = {R}" + (f", {reading}" if reading else "")
            wanted = {kind: figure_name(name, M, R, reading, kind) for kind in FIGURES}
            figures = [
                self.figure(stem, f"{title}: {CAPTIONS.get(kind) or kind.replace('_', ' ')}, {setting}")
                for kind, stem in wanted.items()
                if (kind == "error_vs_epsilon" and not reading) or stem in self.figures
            ]
            # Rows of another reading than the default one stand folded, so that the default is read first.
            parts.append({"setting": setting, "figures": figures, "folded": bool(reading), **_results(rows)})
        return {
            "name": name,
            "title": title,
            "paper": about.get("paper") or "",
            "csv": self.link(self.folder / "tables" / f"{name}.csv"),
            "parts": parts,
            "partition": _partition(self.folder / "silos" / name / "default"),
        }


def exact(value: Any) -> str:
    """A parameter as it was set, to 4 significant digits: 0.75, 10000, 1.7×10⁻⁵, ∞; a dash where there is none."""
    return _number(value, 4, ROUND_HALF_EVEN, pad=False)


def measured(value: Any) -> str:
    """A measured value to 3 significant digits, zeros kept: 0.500, 12.3, 1235."""
    return _number(value, 3, ROUND_HALF_EVEN, pad=True)


def bounded(value: Any) -> str:
    """An upper bound to 3 significant digits, rounded up so that it stays one."""
    return _number(value, 3, ROUND_CEILING, pad=True)


def reached(value: Any) -> str:
    """A lower bound to 3 significant digits, rounded down so that it stays one."""
    return _number(value, 3, ROUND_FLOOR, pad=True)


def _number(value: Any, digits: int, rounding: str, *, pad: bool) -> str:
    if value is None or pd.isna(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    number = Decimal(repr(float(value)))
    for _ in range(2):  # again, for 9.999 that became 10.00
        last = number.adjusted() - digits + 1
        # Whole numbers keep all their digits before the point: a rounded count would be wrong.
        last = min(last, 0) if number.adjusted() < 7 else last
        number = number.quantize(Decimal(1).scaleb(last), rounding=rounding) if number else Decimal(0)
    if number and not -4 <= number.adjusted() < 7:
        power = number.adjusted()
        mantissa = number.scaleb(-power).normalize()
        return f"{mantissa:f}×10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}".replace("-", "−")
    text = f"{number:f}"
    if not pad and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def _json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: a JSON {type(found).__name__}, allowed: an object")
    return found


def read_table(path: Path, columns: list[str]) -> pd.DataFrame:
    """A CSV file that has `columns`."""
    try:
        table = pd.read_csv(path, float_precision="round_trip")  # the comparison of ε must not hang on parsing
    except ValueError as error:
        raise ValueError(f"{path}: not a table ({error})") from error
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(f"{path}: lacks the columns {', '.join(missing)}")
    for name in ("private", "holds", "converged"):
        if name in columns and len(table) and table[name].dtype != bool:
            raise ValueError(f"{path}: column {name} holds {table[name].iloc[0]!r}, allowed: True, False")
    return table


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
    """When, with which version and from which commit, as far as it is recorded."""
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
