"""The report's large tables: results and privacy of all experiments, packed, which the page's script unfolds."""

import base64
import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.files import PRIVACY_COLUMNS, read_table
from silodp.report.figures.notes import NOT_RECORDED
from silodp.report.figures.style import in_order, label
from silodp.report.figures.words import title_of
from silodp.report.numbers import bounded, exact, measured

DEFAULT = "as in the paper"
EDGE = "at an end of its grid"
# Column → heading; those in FACETS can be filtered.
RESULTS = {
    "experiment": "experiment",
    "algorithm": "algorithm",
    "variant": "variant",
    "M": "M",
    "R": "R",
    "epsilon": "ε",
    "delivered_epsilon": "delivered ε",
    "test_error_mean": "test error",
    "spread": "5–95 %",
    "train_loss_mean": "training loss",
    "stepsize": "step size",
    "clip": "clip",
    "edge": EDGE,
    "phase_length": "q",
    "trials": "trials",
    "diverged": "diverged",
    "N": "N",
    "n": "n",
    "K": "K",
    "delta": "δ",
    "seconds": "seconds a trial",
}
# Where sums go through a shuffler; without any the column is left out.
BITS = "shuffled_bits"
PRIVACY = {
    "experiment": "experiment",
    "algorithm": "algorithm",
    "variant": "variant",
    "M": "M",
    "R": "R",
    "epsilon": "ε",
    "delivered_epsilon": "delivered ε",
    "holds": "holds",
    "epsilon_half_rounds": "after half of the rounds",
    "epsilon_person": "ε of a person",
    "epsilon_selection": "ε with the choice",
    BITS: "bits a silo sends",
    "noise_multiplier": "noise multiplier",
    "delta": "δ",
    "accountant": "accountant",
    "adjacency": "adjacency",
    "sampling": "sampling",
}
# Columns of `PRIVACY_EXTRA` that are shown, upper ends all.
OTHER = ("epsilon_half_rounds", "epsilon_person", "epsilon_selection")
FACETS = ("experiment", "algorithm", "variant", "ε")


def results(tables: Mapping[str, pd.DataFrame], default: str = DEFAULT) -> dict[str, Any] | None:
    """All rows of all results tables as the page shows them, `default` those of no variant; None without rows."""
    rows = [_result_row(row, default) for table in tables.values() for row in _ordered(table).to_dict("records")]
    return _packed(RESULTS, rows)


def _ordered(table: pd.DataFrame) -> pd.DataFrame:
    rank = {name: place for place, name in enumerate(in_order(table["algorithm"]))}
    table = table.assign(rank=table["algorithm"].map(rank))
    keys = ["reading", "M", "R", "private", "rank", "epsilon"]
    return table.sort_values(keys, ascending=[True, True, True, False, True, True], kind="stable")


def _result_row(row: Mapping[Any, Any], default: str) -> list[str]:
    exceeds = bool(row["private"]) and row["delivered_epsilon"] > row["epsilon"]
    shown = {
        "experiment": row["experiment"],
        "algorithm": label(row["algorithm"], bool(row["private"]), row["reading"]),
        "variant": row["reading"] or default,
        "epsilon": exact(row["epsilon"]),
        "delivered_epsilon": bounded(row["delivered_epsilon"]) + (" ▲" if exceeds else ""),
        "spread": f"{measured(row['test_error_p05'])} – {measured(row['test_error_p95'])}",
        "edge": _edge(row.get("edge", math.nan)),
        "diverged": f"{int(row['diverged'])} of {int(row['trials'])}" if row["diverged"] else "0",
        **{name: measured(row[name]) for name in ("test_error_mean", "train_loss_mean", "seconds")},
    }
    return [str(shown[name]) if name in shown else exact(row[name]) for name in RESULTS]


def _edge(value: Any) -> str:
    """Which end of the grid, with a mark; a dash where the point lies inside."""
    if not isinstance(value, str) or not value:
        return "–"
    return value if value == NOT_RECORDED else f"✛ {value.replace('stepsize', 'step size')}"


def privacy(path: Path, titles: Mapping[str, str], default: str = DEFAULT) -> dict[str, Any] | None:
    """The privacy table: all rows packed, and a row for each algorithm of each experiment; None without a file."""
    if not path.is_file():
        return None
    table = read_table(path, [name for name in PRIVACY_COLUMNS if name != "reading"])
    table["reading"] = table["reading"].fillna("").astype(str) if "reading" in table else ""
    # A table of an earlier version lacks them.
    table = table.reindex(columns=[*table.columns, *(name for name in (*OTHER, BITS) if name not in table)])
    rows = [_privacy_row(row, default) for row in table.to_dict("records")]
    return {"summary": [_summary(*group, titles) for group in _groups(table)], "all": _packed(PRIVACY, rows)}


def _groups(table: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    default = table[table["reading"] == ""]
    return [(key, rows) for key, rows in default.groupby(["experiment", "algorithm"], sort=False)]


def _summary(key: tuple[str, str], rows: pd.DataFrame, titles: Mapping[str, str]) -> dict[str, Any]:
    """One line: over which claims, how many hold, and the worst that is delivered."""
    experiment, algorithm = key
    ratio = rows["delivered_epsilon"] / rows["claimed_epsilon"]
    worst = rows.loc[ratio.idxmax()] if ratio.notna().any() else rows.iloc[0]
    held = int(rows["holds"].sum())
    ends = [exact(rows["claimed_epsilon"].min()), exact(rows["claimed_epsilon"].max())]
    cells = [
        title_of(experiment, titles),
        label(algorithm),
        " to ".join(dict.fromkeys(ends)),
        f"{held} of {len(rows)}",
        f"{bounded(worst['delivered_epsilon'])} for {exact(worst['claimed_epsilon'])}",
        exact(rows["delta"].max()),
    ]
    return {"cells": cells, "key": experiment, "classes": "" if held == len(rows) else "exceeds"}


SUMMARY = ["experiment", "algorithm", "claimed ε", "claims that hold", "worst: delivered for claimed ε", "δ"]


def _privacy_row(row: Mapping[Any, Any], default: str) -> list[str]:
    exceeds = row["delivered_epsilon"] > row["claimed_epsilon"]
    shown = {
        "algorithm": label(row["algorithm"], reading=row["reading"]),
        "variant": row["reading"] or default,
        "delivered_epsilon": bounded(row["delivered_epsilon"]) + (" ▲" if exceeds else ""),
        "holds": "yes" if row["holds"] else "▲ no",
        **{name: bounded(row[name]) for name in OTHER},
    }
    return [
        str(shown[name]) if name in shown else row[name] if isinstance(row[name], str) else exact(row[name])
        for name in PRIVACY
    ]


def _packed(columns: Mapping[str, str], rows: list[list[str]]) -> dict[str, Any] | None:
    """What the script makes a table of; a column that is the same in all rows is said once above."""
    if not rows:
        return None
    heading = list(columns.values())
    same = [place for place in range(len(heading)) if len({row[place] for row in rows}) == 1 and len(rows) > 1]
    same = [place for place in same if heading[place] not in FACETS and rows[0][place] != "–"]
    empty = [place for place in range(len(heading)) if {row[place] for row in rows} == {"–"}]
    kept = [place for place in range(len(heading)) if place not in same and place not in empty]
    data = {"heading": [heading[i] for i in kept], "rows": [[row[i] for i in kept] for row in rows]}
    return {
        "count": len(rows),
        "heading": data["heading"],
        "settings": [f"{heading[place]} = {rows[0][place]}" for place in same],
        "packed": pack(json.dumps(data, ensure_ascii=False, separators=(",", ":"))),
        "facets": {
            name: list(dict.fromkeys(row[heading.index(name)] for row in rows)) for name in FACETS if name in heading
        },
    }


def pack(text: str) -> str:
    """Text as the page's script unpacks it: gzip, then base64; the same text gives the same bytes."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
