"""The verdict of a claim from decided cells, on average and at every ε (docs/claims.md, "Decided tables")."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from silodp.verdicts.claims.base import data_set, holm
from silodp.verdicts.claims.claim_file import Decided
from silodp.verdicts.decided import exceeds, interval
from silodp.verdicts.words import Verdict

VERDICTS = ["claim", "verdict", "on_average", "at_every", "value", "low", "high", "note", "statistic"]
MEANS = ["claim", "family", "data_set", "first", "second", "cells", "apart", "lacking", "trials", "difference"]
MEANS += ["low", "high"]
# Percentage points around a stated mean improvement; power of confirming below which an open claim is not testable.
TOLERANCE, POWER = 2.0, 0.8
Cell = Mapping[str, Any]
# A word with the numbers that it is about, and how it came about.
Found = tuple[Verdict, tuple[float, float, float], str]
_NOTHING = (math.nan, math.nan, math.nan)


def decided_verdict(claim: str, asked: Decided, cells: Iterable[Cell], power: float = math.nan) -> dict[str, Any]:
    """A row of `VERDICTS`; `cells` are rows of `cell_rows`, `power` is that of confirming the claim, NaN for unknown.

    Useless cells and those of one mechanism say nothing. Nothing is confirmed without a cell that is not run.
    """
    about = cells_of(asked, cells)
    run = [cell for cell in about if cell["trials"] and not _is_left_out(cell)]
    lacking = sorted({cell["data_set"] for cell in about if not cell["trials"]})
    found = {"on_average": _average(asked, run, lacking), "at_every": _every(run, lacking)}
    if any(pair.stated is not None for pair in asked.pairs):
        found.pop("at_every")
    verdict, numbers, _ = found[asked.verdict]
    notes = [asked.note] if asked.note else []
    notes += [f"not run: {', '.join(lacking)}"] if lacking else []
    apart = sum(map(_is_left_out, about))
    notes += [f"counted apart as useless or of one mechanism: {apart}"] if apart else []
    if found["on_average"][0] == Verdict.CONFIRMED and any(_within_margin(rows) for rows in _groups(run).values()):
        notes.append("on average below the margin")
    if verdict == Verdict.OPEN and not lacking and power < POWER:
        verdict = Verdict.NOT_TESTABLE
        notes.append(f"the power of confirming is {power:.2g}")
    row = {"claim": claim, "verdict": verdict, "on_average": "", "at_every": ""}
    row |= {name: word for name, (word, *_) in found.items()}
    said = {"on_average": "on average", "at_every": "at every ε"}
    text = "; ".join(f"{said[name]}: {words}" for name, (*_, words) in found.items() if words)
    return (
        row | dict(zip(("value", "low", "high"), numbers, strict=True)) | {"note": "; ".join(notes), "statistic": text}
    )


def mean_rows(cells: Sequence[Cell], claim: str = "") -> list[dict[str, Any]]:
    """Rows of `MEANS`: the mean difference over the cells of each family, data set and pair that count."""
    found = []
    for key, rows in _groups(cells).items():
        run = [cell for cell in rows if cell["trials"] and not _is_left_out(cell)]
        names = dict(zip(("family", "data_set", "first", "second"), key, strict=True))
        counts = {
            "cells": len(run),
            "apart": sum(map(_is_left_out, rows)),
            "lacking": sum(not cell["trials"] for cell in rows),
        }
        value, low, high, _ = _mean(run) if run else (*_NOTHING, math.nan)
        trials = run[0]["trials"] if run else 0
        found.append(
            {"claim": claim} | names | counts | {"trials": trials, "difference": value, "low": low, "high": high}
        )
    return found


def cells_of(asked: Decided, cells: Iterable[Cell]) -> list[Cell]:
    """The cells that a claim is about, with its first name first, their data set, and the limit that it sets them."""
    found: list[Cell] = []
    least, most = asked.epsilons
    for cell in cells:
        of = data_set(cell["experiment"])
        if cell["family"] == asked.family and least <= cell["epsilon"] <= most and of in (asked.data_sets or [of]):
            for one in (cell, _swap_sides(cell)):
                if pair := asked.pair_of(one["first"], one["second"]):
                    limit = {"data_set": of, "limit": cell["margin"] * pair.never_worse, "stated": pair.stated}
                    found.append({**one, **limit})
    return found


def power_of(claim: str, table: pd.DataFrame | None) -> float:
    """The least power of confirming that decided_power.csv has for a part of the claim; NaN where it has none."""
    return math.nan if table is None else float(table.loc[table["claim"] == claim, "all"].min())


def _swap_sides(cell: Cell) -> dict[str, Any]:
    """The same cell as second − first."""
    row = dict(cell) | {"first": cell["second"], "second": cell["first"]}
    if cell["trials"]:
        row |= {"difference": -cell["difference"], "low": -cell["high"], "high": -cell["low"], "draws": -cell["draws"]}
    return row


def _is_left_out(cell: Cell) -> bool:
    return bool(cell["useless"] or cell["same_mechanism"])


def _groups(cells: Iterable[Cell]) -> dict[tuple[str, ...], list[Cell]]:
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        key = (cell["family"], data_set(cell["experiment"]), cell["first"], cell["second"])
        groups.setdefault(key, []).append(cell)
    return groups


def _mean(cells: Sequence[Cell]) -> tuple[float, float, float, float]:
    """Mean difference with its interval and standard error; NaN where a cell diverged."""
    value = float(np.mean([cell["difference"] for cell in cells]))
    se = float(np.mean([cell["draws"] for cell in cells], axis=0).std(ddof=1))
    low, high = map(float, interval(value, se, cells[0]["trials"]))
    return value, low, high, se


def _within_margin(cells: Sequence[Cell]) -> bool:
    return not cells[0]["limit"] and abs(_mean(cells)[0]) < cells[0]["margin"]


def _word(against: bool, kept: bool, lacking: Sequence[str]) -> Verdict:
    if against:
        return Verdict.NOT_REPRODUCED
    return Verdict.CONFIRMED if kept and not lacking else Verdict.OPEN


def keeps(high: ArrayLike, limit: ArrayLike) -> NDArray:
    """Better: the interval ends below 0; never worse: at most at the limit."""
    high, limit = np.asarray(high), np.asarray(limit)
    return np.where(limit > 0, high <= limit, high < 0)


def _average(asked: Decided, run: Sequence[Cell], lacking: Sequence[str]) -> Found:
    """A mean over cells for each data set and pair; what speaks against the claim is what Holm's method keeps.

    The mean of a data set that lacks cells is another number, and speaks neither for nor against.
    """
    if not run:
        return Verdict.OPEN, _NOTHING, ""
    if any(pair.stated is not None for pair in asked.pairs):
        return _improvement(run, lacking)
    found = []
    for (_, of, first, second), cells in _groups(run).items():
        value, low, high, se = _mean(cells)
        limit = cells[0]["limit"]
        p = 1.0 if of in lacking else _p_above(value - limit, se, cells[0]["trials"])
        words = f"{of}, {first} − {second} {value:+.4f} [{low:+.4f}, {high:+.4f}]"
        found.append((p, (value, low, high), bool(keeps(high, limit)), words))
    verdict = _word(any(holm([p for p, *_ in found])), all(kept for _, _, kept, _ in found), lacking)
    return verdict, min(found)[1], "; ".join(words for *_, words in found)


def _p_above(value: float, se: float, trials: int) -> float:
    """One-sided p of "at most 0"; 1 for a mean that diverged, or for a single trial."""
    if not math.isfinite(value + se) or trials < 2:
        return 1.0
    return float(stats.t.sf(value / se, trials - 1)) if se > 0 else float(value <= 0)


def _every(run: Sequence[Cell], lacking: Sequence[str]) -> Found:
    """Every cell; what speaks against the claim is the largest of the cells' t, by max-t."""
    if not run:
        return Verdict.OPEN, _NOTHING, ""
    values, high, limits = (np.array([cell[name] for cell in run], float) for name in ("difference", "high", "limit"))
    # A diverged or a single trial has no interval, and decides nothing.
    draws = np.stack(
        [cell["draws"] if math.isfinite(cell["high"]) else cell["draws"] * math.nan for cell in run], axis=1
    )
    kept = keeps(high, limits)
    # The cell whose interval lies farthest above its limit, by the size of the interval.
    above = (values - limits) / np.maximum(high - values, 1e-12)
    worst = run[int(np.argmax(np.where(np.isfinite(above), above, -math.inf)))]
    text = (
        f"{kept.sum()} of {len(run)} cells support; the worst is {worst['experiment']} M={worst['M']} R={worst['R']} "
    )
    text += f"ε={worst['epsilon']:g}, {worst['first']} − {worst['second']}"
    verdict = _word(exceeds(values, draws, limits), bool(kept.all()), lacking)
    return verdict, (worst["difference"], worst["low"], worst["high"]), text


def _improvement(run: Sequence[Cell], lacking: Sequence[str]) -> Found:
    """The mean over cells of 100 (1 − first/second), with its interval, against what the paper states."""
    found: list[Found] = []
    for second, stated in {cell["second"]: cell["stated"] for cell in run}.items():
        rows = [cell for cell in run if cell["second"] == second]
        value, *draws = 100 * (1 - np.mean([cell["levels"][0] / cell["levels"][1] for cell in rows], axis=0))
        low, high = map(float, interval(value, np.std(draws, ddof=1), min(cell["trials"] for cell in rows)))
        # Over fewer cells than the paper's the mean is another number.
        outside = (high < stated - TOLERANCE or low > stated + TOLERANCE) and not lacking
        word = _word(outside, stated - TOLERANCE <= low and high <= stated + TOLERANCE, lacking)
        text = f"over {second} {value:+.2f} % [{low:+.2f}, {high:+.2f}], stated {stated:g}"
        found.append((word, (float(value), low, high), text))
    order = (Verdict.NOT_REPRODUCED, Verdict.OPEN, Verdict.CONFIRMED)
    verdict, numbers, _ = min(found, key=lambda one: order.index(one[0]))
    return verdict, numbers, "; ".join(words for *_, words in found)
