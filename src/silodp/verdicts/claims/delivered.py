"""Claims that a noise formula gives (ε, δ)-privacy: the true ε against the claimed one, and how much noise is slack."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from silodp.privacy.standing import Standing, standing
from silodp.verdicts.claims.base import (
    EXPERIMENT,
    FORMULA,
    SURROGATES,
    ClaimFinding,
    RunFolder,
    count_findings,
    counted,
    data_set,
    lacking,
    scope_of,
    with_gaps,
)
from silodp.verdicts.claims.claim_file import Claim, DeliveredEpsilon
from silodp.verdicts.statistics import Interval
from silodp.verdicts.words import Verdict, combine_verdicts


def delivered_epsilon(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """How claims stand, and the interval of the true over the claimed ε, by experiment, algorithm, reading or formula.

    Claims that are all kept confirm, one that is violated refutes; else one that is not certified leaves it open.
    """
    statistic = claim.statistic
    assert isinstance(statistic, DeliveredEpsilon)
    parts = _experiments(claim, statistic, run, claim.experiments)
    beside = _experiments(claim, statistic, run, claim.surrogates, SURROGATES)
    formulas = _formulas(claim, statistic, run)
    missing = run.missing_parts(claim, parts) if statistic.algorithms else []
    deciding = [*formulas, *parts]
    found = []
    for reading in sorted({"", *(finding.reading for finding in deciding)}):
        # An alternative reading need not be run on every experiment.
        gaps = missing if reading == statistic.reading else []
        found.append(replace(_whole_finding(reading, deciding, gaps), **scope_of(reading)))
    for reading in sorted({finding.reading for finding in beside}):
        found.append(replace(_whole_finding(reading, beside, []), **scope_of(reading, surrogate=True)))
    return [*found, *(formula for formula in formulas if not formula.reading), *parts, *beside]


def _whole_finding(reading: str, findings: Sequence[ClaimFinding], missing: list[str]) -> ClaimFinding:
    deciding = [finding for finding in findings if finding.reading == reading]
    if not deciding:
        text = f"true / claimed ε: {lacking(missing)}"
        return ClaimFinding(text, Verdict.NOT_TESTABLE)
    verdicts = [finding.verdict for finding in deciding]
    words = (Verdict.CONFIRMED, Verdict.REFUTED, Verdict.OPEN)
    text = f"true / claimed ε in {len(deciding)} part(s): {counted({word: verdicts.count(word) for word in words})}"
    text, verdict = with_gaps(text, combine_verdicts(verdicts), missing)
    of_verdict = [finding for finding in deciding if finding.verdict == verdict]
    worst = max(of_verdict, key=lambda finding: (finding.value, finding.high), default=deciding[0])
    numbers = (worst.value, worst.low, worst.high)
    return ClaimFinding(text, verdict, *numbers, count_findings(deciding), slack=_slack(verdict, worst.high))


def _experiments(
    claim: Claim, statistic: DeliveredEpsilon, run: RunFolder, experiments: Sequence[str], rows_of: str = ""
) -> list[ClaimFinding]:
    table = run.privacy()
    if table is None:
        return []
    table = table[table["algorithm"].isin(statistic.algorithms) & table["experiment"].isin(experiments)]
    found = []
    for (experiment, algorithm, reading), rows in table.groupby(["experiment", "algorithm", "reading"], sort=False):
        verdict, text, ratio = _verdict(rows, statistic.tolerance)
        label = ";".join(word for word in (statistic.reading, reading) if word)
        place = {"experiment": experiment, "reading": reading}
        settings = rows[["M", "R"]].drop_duplicates().to_dict("records")
        files = tuple(dict.fromkeys(name for setting in settings for name in run.evidence(claim, place | setting)))
        about: dict[str, Any] = {
            "scope": EXPERIMENT,
            "rows": rows_of,
            "experiment": experiment,
            "pair": (algorithm,),
            "reading": label,
        }
        about |= {"data_set": data_set(experiment), "slack": _slack(verdict, ratio.high)}
        found.append(ClaimFinding(text, verdict, *ratio, files, **about))
    return found


def _formulas(claim: Claim, statistic: DeliveredEpsilon, run: RunFolder) -> list[ClaimFinding]:
    """A formula that stands beside the claim is a reading by itself."""
    table = run.table("formulas.csv", ("formula", "claimed_epsilon", "delivered_epsilon", "holds"))
    if table is None:
        return []
    found = []
    for name in [*statistic.formulas, *statistic.beside]:
        rows = table[table["formula"] == name]
        if len(rows):
            verdict, text, ratio = _verdict(rows, statistic.tolerance)
            reading = name if name in statistic.beside else ""
            about: dict[str, Any] = {"scope": FORMULA, "pair": () if reading else (name,), "reading": reading}
            about["slack"] = _slack(verdict, ratio.high)
            found.append(ClaimFinding(text, verdict, *ratio, run.evidence(claim, {}), **about))
    return found


def _slack(verdict: Verdict, ratio: float) -> float:
    """The claimed over the largest true ε, where every row keeps its claim."""
    return 1 / ratio if verdict == Verdict.CONFIRMED else math.nan


def _verdict(rows: pd.DataFrame, tolerance: float) -> tuple[Verdict, str, Interval]:
    """Verdict, words, and true/claimed ε with its ends: of the row that is surely farthest above, else perhaps."""
    ends = rows.reindex(columns=["claimed_epsilon", "delivered_lower", "delivered_epsilon"]).to_numpy(float)
    words = np.array([standing(claim * (1 + tolerance), *of) for claim, *of in ends], dtype=object)
    claimed, lower, upper = ends.T
    is_violated = Standing.VIOLATED in words
    worst = int(np.nanargmax(lower / claimed)) if is_violated else int(np.argmax(upper / claimed))
    low, ratio = float(np.nan_to_num(lower[worst] / claimed[worst])), float(upper[worst] / claimed[worst])
    text = f"true / claimed ε over {len(rows)} rows: [{low:.3g}, {ratio:.3g}] at ε = {claimed[worst]:g}"
    for word in (Standing.VIOLATED, Standing.NOT_CERTIFIED):
        if word in words:
            epsilons = ", ".join(f"{epsilon:g}" for epsilon in sorted(set(claimed[words == word])))
            text += f"; {word} at ε = {epsilons}"
    if is_violated or Standing.NOT_CERTIFIED in words:
        return Verdict.REFUTED if is_violated else Verdict.OPEN, text, Interval(low, low, ratio)
    # How much less ε than claimed the stated noise would allow to claim.
    text += f"; kept, and the noise would allow a claim of {ratio:.3g} to {float(np.min(upper / claimed)):.3g} of it"
    return Verdict.CONFIRMED, text, Interval(ratio, low, ratio)
