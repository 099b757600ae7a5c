"""The two verdicts of a claim from decided cells: on average, and at every ε (docs/claims.md, "Decided tables")."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from silodp.verdicts.claims.base import data_set, holm
from silodp.verdicts.decided import exceeds, interval

CONFIRMED, NOT_REPRODUCED, UNDECIDED = "confirmed", "not reproduced", "open"
# Percentage points around a stated mean improvement.
TOLERANCE = 2.0


def decided_verdicts(claim: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """`on_average` and `at_every`, each a word with its numbers, for one of `claims` in config/claims/decided.yaml.

    `cells` are rows of `cell_rows`; those of the same mechanism say nothing. Without a cell that is not run nothing is
    confirmed.
    """
    least, most = claim.get("epsilons", (0, math.inf))
    about = [{**row, "data_set": data_set(row["experiment"])} for row in cells if row["family"] == claim["family"]]
    about = [row for row in about if [row["first"], row["second"]] in claim["pairs"] and not row["same_mechanism"]]
    about = [row for row in about if least <= row["epsilon"] <= most]
    about = [row for row in about if row["data_set"] in claim.get("data_sets", [row["data_set"]])]
    run = [row for row in about if row["trials"]]
    lacking = sorted({row["data_set"] for row in about if not row["trials"]})
    needs = f"; needs all of {', '.join(lacking)}" if lacking else ""
    if not run or "stated" in claim:
        return {"on_average": _improvement(claim, run, needs) if run else UNDECIDED + needs, "at_every": ""}
    limits = np.array([row["margin"] * claim.get("never_worse", False) for row in run])
    return {"on_average": _on_average(run, limits, needs, lacking), "at_every": _at_every(run, limits, needs)}


def _word(against: bool, kept: bool, needs: str) -> str:
    return NOT_REPRODUCED if against else CONFIRMED if kept and not needs else UNDECIDED


def _on_average(run: Sequence[Mapping[str, Any]], limits: np.ndarray, needs: str, lacking: Sequence[str]) -> str:
    """A mean over cells for each data set and pair; what speaks against the claim is what Holm's method keeps.

    The mean of a data set that lacks cells is another number, and speaks neither for nor against.
    """
    p, kept, small, texts = [], [], [], []
    keys = [(row["data_set"], row["first"], row["second"]) for row in run]
    for key in dict.fromkeys(keys):
        rows, limit = [row for row, other in zip(run, keys, strict=True) if other == key], limits[keys.index(key)]
        T, value = rows[0]["trials"], np.mean([row["difference"] for row in rows])
        se = np.mean([row["draws"] for row in rows], axis=0).std(ddof=1)
        low, high = interval(value, se, T)
        p.append(1.0 if key[0] in lacking else float(stats.t.sf((value - limit) / se, T - 1)))
        kept.append(high <= limit if limit else high < 0)
        small.append(not limit and abs(value) < rows[0]["margin"])
        texts.append(f"{key[0]}, {key[1]} − {key[2]}: {value:+.4f} [{low:+.4f}, {high:+.4f}]")
    word = _word(any(holm(p)), all(kept), needs)
    word += ", below the margin" if word == CONFIRMED and any(small) else ""
    return f"{word} ({'; '.join(texts)}{needs})"


def _at_every(run: Sequence[Mapping[str, Any]], limits: np.ndarray, needs: str) -> str:
    """Every cell; what speaks against the claim is the largest of the cells' t, by max-t."""
    values, draws = np.array([row["difference"] for row in run]), np.stack([row["draws"] for row in run], axis=1)
    high = np.array([row["high"] for row in run])
    kept = np.where(limits > 0, high <= limits, high < 0)
    worst = run[int(((values - limits) / draws.std(0, ddof=1)).argmax())]
    text = (
        f"{kept.sum()} of {len(run)} cells support; the worst is {worst['experiment']} M={worst['M']} R={worst['R']} "
    )
    text += f"ε={worst['epsilon']:g}, {worst['first']} − {worst['second']}: {worst['difference']:+.4f} "
    word = _word(exceeds(values, draws, limits), bool(kept.all()), needs)
    return f"{word} ({text}[{worst['low']:+.4f}, {worst['high']:+.4f}]{needs})"


def _improvement(claim: Mapping[str, Any], run: Sequence[Mapping[str, Any]], needs: str) -> str:
    """The mean over cells of 100 (1 − first/second), with its interval, against what the paper states."""
    words, texts = [], []
    for pair, stated in zip(claim["pairs"], claim["stated"], strict=True):
        if rows := [row for row in run if [row["first"], row["second"]] == pair]:
            value, *draws = 100 * (1 - np.mean([row["levels"][0] / row["levels"][1] for row in rows], axis=0))
            low, high = interval(value, np.std(draws, ddof=1), min(row["trials"] for row in rows))
            # Over fewer cells than the paper's the mean is another number.
            outside = (high < stated - TOLERANCE or low > stated + TOLERANCE) and not needs
            words.append(_word(outside, stated - TOLERANCE <= low and high <= stated + TOLERANCE, needs))
            texts.append(f"over {pair[1]} {value:+.2f} % [{low:+.2f}, {high:+.2f}], stated {stated:g}")
    word = next(word for word in (NOT_REPRODUCED, UNDECIDED, CONFIRMED) if word in words)
    return f"{word} ({'; '.join(texts)}{needs})"
