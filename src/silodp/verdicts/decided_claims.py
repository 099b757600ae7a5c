"""The two verdicts of a claim from decided cells: on average, and at every ε (docs/claims.md, "Decided tables")."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from silodp.verdicts.claims.base import data_set, holm
from silodp.verdicts.decided import exceeds, interval
from silodp.verdicts.decided_trials import DecidedClaim

CONFIRMED, NOT_REPRODUCED, UNDECIDED = "confirmed", "not reproduced", "open"
# Percentage points around a stated mean improvement.
TOLERANCE = 2.0


def decided_verdicts(claim: DecidedClaim, cells: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """`on_average` and `at_every`, each a word with its numbers; `cells` are rows of `cell_rows` of the claim's family.

    Cells of the same mechanism say nothing. Without a cell that is not run nothing is confirmed.
    """
    about = [row for row in cells if [row["first"], row["second"]] in claim.pairs and not row["same_mechanism"]]
    about = [row for row in about if claim.epsilons[0] <= row["epsilon"] <= claim.epsilons[1]]
    about = [row for row in about if data_set(row["experiment"]) in (claim.data_sets or [data_set(row["experiment"])])]
    run = [row for row in about if row["trials"]]
    missing = sorted({data_set(row["experiment"]) for row in about} - {data_set(row["experiment"]) for row in run})
    needs = f"; needs {', '.join(missing)}" if missing else "; some settings are not run" * (len(run) < len(about))
    if not run:
        return {"on_average": UNDECIDED + needs, "at_every": UNDECIDED + needs}
    if claim.stated:
        return {"on_average": _improvement(claim, run, needs), "at_every": ""}
    return {"on_average": _on_average(claim, run, needs), "at_every": _at_every(claim, run, needs)}


def _limit(claim: DecidedClaim, row: Mapping[str, Any]) -> float:
    return float(row["margin"]) if claim.never_worse else 0.0


def _on_average(claim: DecidedClaim, run: Sequence[Mapping[str, Any]], needs: str) -> str:
    """A mean over cells for each data set and pair; what speaks against the claim is what Holm's method keeps."""
    p, kept, inside, texts = [], [], [], []
    for of, first, second in dict.fromkeys((data_set(r["experiment"]), r["first"], r["second"]) for r in run):
        rows = [r for r in run if (data_set(r["experiment"]), r["first"], r["second"]) == (of, first, second)]
        value, se = np.mean([r["difference"] for r in rows]), np.mean([r["draws"] for r in rows], axis=0).std(ddof=1)
        (low, high), T, limit = interval(value, se, rows[0]["trials"]), rows[0]["trials"], _limit(claim, rows[0])
        p.append(float(stats.t.sf((value - limit) / se, T - 1)))
        kept.append(high <= limit if claim.never_worse else high < 0)
        inside.append(abs(value) < rows[0]["margin"])
        texts.append(f"{of}, {first} − {second}: {value:+.4f} [{low:+.4f}, {high:+.4f}]")
    word = NOT_REPRODUCED if any(holm(p)) else CONFIRMED if all(kept) and not needs else UNDECIDED
    word += ", below the margin" if word == CONFIRMED and any(inside) and not claim.never_worse else ""
    return f"{word} ({'; '.join(texts)}{needs})"


def _at_every(claim: DecidedClaim, run: Sequence[Mapping[str, Any]], needs: str) -> str:
    values, limits = (
        np.array(list(x), float) for x in ((r["difference"] for r in run), (_limit(claim, r) for r in run))
    )
    draws = np.stack([r["draws"] for r in run], axis=1)
    high = np.array([r["high"] for r in run])
    kept = high <= limits if claim.never_worse else high < 0
    against = exceeds(values, values + draws - draws.mean(0), limits)
    word = NOT_REPRODUCED if against else CONFIRMED if kept.all() and not needs else UNDECIDED
    worst = run[int(((values - limits) / draws.std(0, ddof=1)).argmax())]
    place = f"{worst['experiment']} M={worst['M']} R={worst['R']} ε={worst['epsilon']:g}, "
    place += f"{worst['first']} − {worst['second']}"
    text = f"{kept.sum()} of {len(run)} cells support; the worst is {place}: {worst['difference']:+.4f}"
    return f"{word} ({text} [{worst['low']:+.4f}, {worst['high']:+.4f}]{needs})"


def _improvement(claim: DecidedClaim, run: Sequence[Mapping[str, Any]], needs: str) -> str:
    """The mean over cells of 100 (1 − first/second), with its interval, against what the paper states."""
    words, texts = [], []
    for (first, second), stated in zip(claim.pairs, claim.stated, strict=True):
        rows = [row for row in run if (row["first"], row["second"]) == (first, second)]
        value, *draws = 100 * (1 - np.mean([r["levels"][0] / r["levels"][1] for r in rows], axis=0))
        low, high = interval(value, np.std(draws, ddof=1), min(r["trials"] for r in rows))
        inside = stated - TOLERANCE <= low and high <= stated + TOLERANCE
        outside = high < stated - TOLERANCE or low > stated + TOLERANCE
        words.append(NOT_REPRODUCED if outside and not needs else CONFIRMED if inside and not needs else UNDECIDED)
        texts.append(f"over {second} {value:+.2f} % [{low:+.2f}, {high:+.2f}], stated {stated:g}")
    word = next(word for word in (NOT_REPRODUCED, UNDECIDED, CONFIRMED) if word in words)
    return f"{word} ({'; '.join(texts)}{needs})"
