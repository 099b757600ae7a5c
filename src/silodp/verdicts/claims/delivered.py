"""Claims that a noise formula gives (ε, δ)-privacy: delivered against claimed ε, and how much of the noise is slack."""

import math

import numpy as np
import pandas as pd

from silodp.claims.base import (
    CONFIRMED,
    INCONCLUSIVE,
    NOT_TESTABLE,
    REFUTED,
    Finding,
    RunFolder,
    counted,
    lacking,
    merged,
    together,
)
from silodp.claims.models import Claim, DeliveredEpsilon


def delivered_epsilon(claim: Claim, run: RunFolder) -> list[Finding]:
    """The largest delivered over claimed ε, per (experiment, algorithm, reading) and per formula.

    `delivered_epsilon` is an upper bound that holds for every data set: at most the claim, it confirms. Above it, it
    refutes only where `delivered_lower`, which two neighbouring silos reach, is above the claim as well. That end is
    known where all silos take part, a record's gradient is clipped, and the messages are seen one by one.
    """
    statistic = claim.statistic
    assert isinstance(statistic, DeliveredEpsilon)
    own, beside = _experiments(claim, statistic, run)
    formulas = _formulas(claim, statistic, run)
    have = {one.part.split(" ")[0] for one in own}
    missing = [name for name in claim.experiments if name not in have] if statistic.algorithms else []
    groups: dict[str, list[Finding]] = {}
    for one in [*formulas, *own]:
        groups.setdefault(_reading(one), []).append(one)
    found = []
    for reading in sorted({"", *groups}):
        deciding = groups.get(reading, [])
        # An alternative reading need not be run on every experiment.
        gaps = missing if reading == statistic.reading else []
        found.append(_whole(f"[{reading}]" if reading else "", deciding, gaps))
    for reading in sorted({_reading(one) for one in beside}):
        small = [one for one in beside if _reading(one) == reading]
        part = "counterparts" + (f" [{reading}]" if reading else "")
        found.append(_whole(part, small, []))
    return [*found, *formulas, *own, *beside]


def _reading(found: Finding) -> str:
    return found.part.partition("[")[2].rstrip("]")


def _whole(part: str, deciding: list[Finding], missing: list[str]) -> Finding:
    if not deciding:
        return Finding(part, f"delivered / claimed ε: {lacking(missing)}", NOT_TESTABLE)
    verdicts = [one.verdict for one in deciding]
    text = f"largest delivered / claimed ε in {len(deciding)} part(s): " + counted(
        {verdict: verdicts.count(verdict) for verdict in (CONFIRMED, REFUTED, INCONCLUSIVE)}
    )
    verdict = together(verdicts)
    if missing:
        text += f"; {lacking(missing)}"
        verdict = INCONCLUSIVE if verdict == CONFIRMED else verdict
    worst = max(deciding, key=lambda one: one.value)
    return Finding(part, text, verdict, worst.value, worst.low, worst.high, merged(deciding))


def _experiments(claim: Claim, statistic: DeliveredEpsilon, run: RunFolder) -> tuple[list[Finding], list[Finding]]:
    table = run.privacy()
    found: tuple[list[Finding], list[Finding]] = ([], [])
    if table is None:
        return found
    for (experiment, algorithm, reading), rows in table.groupby(["experiment", "algorithm", "reading"], sort=False):
        if algorithm not in statistic.algorithms or experiment not in [*claim.experiments, *claim.counterparts]:
            continue
        verdict, text, value, low = _verdict(rows, statistic.tolerance)
        label = ";".join(word for word in (statistic.reading, reading) if word)
        part = f"{experiment} {algorithm}" + (f", [{label}]" if label else "")
        settings = rows[["M", "R"]].drop_duplicates().to_dict("records")
        files = tuple(
            dict.fromkeys(
                name
                for setting in settings
                for name in run.evidence(claim, {"experiment": experiment, "reading": reading} | setting)
            )
        )
        found[experiment in claim.counterparts].append(Finding(part, text, verdict, value, low, value, files))
    return found


def _formulas(claim: Claim, statistic: DeliveredEpsilon, run: RunFolder) -> list[Finding]:
    table = run.table("formulas.csv", ("formula", "claimed_epsilon", "delivered_epsilon", "holds"))
    if table is None:
        return []
    found = []
    for name in statistic.formulas:
        rows = table[table["formula"] == name]
        if len(rows):
            verdict, text, value, low = _verdict(rows.assign(epsilon=rows["claimed_epsilon"]), statistic.tolerance)
            found.append(Finding(name, text, verdict, value, low, value, run.evidence(claim, {})))
    return found


def _verdict(rows: pd.DataFrame, tolerance: float) -> tuple[str, str, float, float]:
    """Verdict, words, and the largest delivered/claimed ε with what it is at least."""
    claimed = rows["claimed_epsilon"].to_numpy(dtype=float)
    upper = rows["delivered_epsilon"].to_numpy(dtype=float)
    lower = rows["delivered_lower"].to_numpy(dtype=float) if "delivered_lower" in rows else np.full(len(rows), np.nan)
    over, surely = ~(upper <= claimed * (1 + tolerance)), lower > claimed * (1 + tolerance)
    worst = int(np.argmax(upper / claimed))
    ratio = float(upper[worst] / claimed[worst])
    verdict = REFUTED if surely.any() else INCONCLUSIVE if over.any() else CONFIRMED
    text = f"largest delivered / claimed ε over {len(rows)} rows: at most {ratio:.3g} at ε = {claimed[worst]:g}"
    if over.any():
        text += f"; above the claim at ε = {', '.join(f'{one:g}' for one in sorted(set(claimed[over])))}"
        text += "" if surely.any() else ", not proven from below"
    else:
        # How much less ε than claimed the stated noise would allow to claim.
        text += f"; slack: it could claim {ratio:.3g} to {float(np.min(upper / claimed)):.3g} of it"
    return verdict, text, ratio, float(lower[worst] / claimed[worst]) if np.isfinite(lower[worst]) else math.nan
