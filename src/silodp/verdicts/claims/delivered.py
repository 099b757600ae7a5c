"""Claims that a noise formula gives (ε, δ)-privacy: delivered against claimed ε, and how much of the noise is slack."""

import math

import numpy as np
import pandas as pd

from silodp.verdicts.claims.base import Finding, RunFolder, counted, lacking, merged
from silodp.verdicts.claims.models import Claim, DeliveredEpsilon
from silodp.verdicts.statistics import Interval
from silodp.verdicts.words import Verdict, together


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
    missing += run.gaps((name for name in claim.experiments if name in have), *statistic.epsilons)
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
        part = "surrogates" + (f" [{reading}]" if reading else "")
        found.append(_whole(part, small, []))
    shown = [one for one in formulas if one.part not in {other.part for other in found}]
    return [*found, *shown, *own, *beside]


def _reading(found: Finding) -> str:
    return found.part.partition("[")[2].rstrip("]")


def _whole(part: str, deciding: list[Finding], missing: list[str]) -> Finding:
    if not deciding:
        return Finding(part, f"delivered / claimed ε: {lacking(missing)}", Verdict.NOT_TESTABLE)
    verdicts = [one.verdict for one in deciding]
    text = f"largest delivered / claimed ε in {len(deciding)} part(s): " + counted(
        {verdict: verdicts.count(verdict) for verdict in (Verdict.CONFIRMED, Verdict.REFUTED, Verdict.INCONCLUSIVE)}
    )
    verdict = together(verdicts)
    if missing:
        text += f"; {lacking(missing)}"
        verdict = Verdict.INCONCLUSIVE if verdict == Verdict.CONFIRMED else verdict
    worst = max((one for one in deciding if one.verdict == verdict), key=lambda one: one.value, default=deciding[0])
    return Finding(part, text, verdict, worst.value, worst.low, worst.high, merged(deciding))


def _experiments(claim: Claim, statistic: DeliveredEpsilon, run: RunFolder) -> tuple[list[Finding], list[Finding]]:
    table = run.privacy()
    found: tuple[list[Finding], list[Finding]] = ([], [])
    if table is None:
        return found
    for (experiment, algorithm, reading), rows in table.groupby(["experiment", "algorithm", "reading"], sort=False):
        if algorithm not in statistic.algorithms or experiment not in [*claim.experiments, *claim.surrogates]:
            continue
        verdict, text, ratio = _verdict(rows, statistic.tolerance)
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
        found[experiment in claim.surrogates].append(Finding(part, text, verdict, *ratio, files))
    return found


def _formulas(claim: Claim, statistic: DeliveredEpsilon, run: RunFolder) -> list[Finding]:
    table = run.table("formulas.csv", ("formula", "claimed_epsilon", "delivered_epsilon", "holds"))
    if table is None:
        return []
    found = []
    for name in [*statistic.formulas, *statistic.beside]:
        rows = table[table["formula"] == name]
        if len(rows):
            verdict, text, ratio = _verdict(rows, statistic.tolerance)
            part = f"[{name}]" if name in statistic.beside else name
            found.append(Finding(part, text, verdict, *ratio, run.evidence(claim, {})))
    return found


def _verdict(rows: pd.DataFrame, tolerance: float) -> tuple[Verdict, str, Interval]:
    """Verdict, words, and the largest delivered/claimed ε between its ends.

    The value is what the verdict rests on: the largest proven lower end where the claim is refuted, else the largest
    upper end.
    """
    claimed = rows["claimed_epsilon"].to_numpy(dtype=float)
    upper = rows["delivered_epsilon"].to_numpy(dtype=float)
    lower = rows["delivered_lower"].to_numpy(dtype=float) if "delivered_lower" in rows else np.full(len(rows), np.nan)
    over, surely = ~(upper <= claimed * (1 + tolerance)), lower > claimed * (1 + tolerance)
    verdict = Verdict.REFUTED if surely.any() else Verdict.INCONCLUSIVE if over.any() else Verdict.CONFIRMED
    worst = int(np.nanargmax(lower / claimed)) if surely.any() else int(np.argmax(upper / claimed))
    low, ratio = float(lower[worst] / claimed[worst]), float(upper[worst] / claimed[worst])
    text = f"largest delivered / claimed ε over {len(rows)} rows: "
    if surely.any():
        text += f"at least {low:.3g} (at most {ratio:.3g}) at ε = {claimed[worst]:g}"
        text += f"; surely above the claim at ε = {', '.join(f'{one:g}' for one in sorted(set(claimed[surely])))}"
    else:
        text += f"at most {ratio:.3g} at ε = {claimed[worst]:g}"
    if over.any() and not surely.any():
        text += f"; above the claim at ε = {', '.join(f'{one:g}' for one in sorted(set(claimed[over])))}"
        text += ", not proven from below"
    elif not over.any():
        # How much less ε than claimed the stated noise would allow to claim.
        text += f"; slack: it could claim {ratio:.3g} to {float(np.min(upper / claimed)):.3g} of it"
    low = low if math.isfinite(low) else math.nan
    return verdict, text, Interval(low if surely.any() else ratio, low, ratio)
