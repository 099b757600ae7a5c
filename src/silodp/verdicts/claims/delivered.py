"""Claims that a noise formula gives (ε, δ)-privacy: the true ε against the claimed one, and how much noise is slack."""

import math

import numpy as np
import pandas as pd

from silodp.privacy.standing import Standing, standing
from silodp.verdicts.claims.base import ClaimFinding, RunFolder, counted, lacking_text
from silodp.verdicts.claims.claim_file import Claim, DeliveredEpsilon
from silodp.verdicts.words import Verdict

_COLUMNS = ["claimed_epsilon", "delivered_lower", "delivered_epsilon"]


def delivered_epsilon(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """How claims stand, and the interval of the true over the claimed ε, over the claim's rows of one table.

    Formulas are rows of formulas.csv, algorithms those of privacy.csv at the papers' noise. Claims that are all kept
    confirm, one that is violated refutes; else one that is not certified leaves it open.
    """
    statistic = claim.statistic
    assert isinstance(statistic, DeliveredEpsilon)
    if statistic.formulas:
        table, missing = run.table("formulas.csv", ("formula", *_COLUMNS[::2])), []
        rows = None if table is None else table[table["formula"].isin(statistic.formulas)]
    elif (table := run.privacy()) is not None:
        mine = table["experiment"].isin(claim.experiments) & table["algorithm"].isin(statistic.algorithms)
        rows = table[mine & (table["reading"] == "")]
        missing = [text for name in claim.experiments if (text := lacking_text(name, rows))]
    else:
        rows, missing = None, claim.experiments
    note = f"needs {', '.join(missing)}" if missing else ""
    if rows is None or rows.empty:
        return [ClaimFinding("true / claimed ε", Verdict.NOT_TESTABLE, note=note or "needs formulas.csv")]
    verdict, text, numbers = _stands(rows)
    slack = 1 / numbers[2] if verdict == Verdict.CONFIRMED else math.nan
    # Nothing is confirmed of all experiments by some.
    verdict = Verdict.OPEN if missing and verdict == Verdict.CONFIRMED else verdict
    return [ClaimFinding(text, verdict, *numbers, run.evidence(claim.evidence), slack=slack, note=note)]


def _stands(rows: pd.DataFrame) -> tuple[Verdict, str, tuple[float, float, float]]:
    """Verdict, words, and true/claimed ε with its ends: of the row that is surely farthest above, else perhaps."""
    claimed, lower, upper = rows.reindex(columns=_COLUMNS).to_numpy(float).T
    words = np.array([standing(*of) for of in zip(claimed, lower, upper, strict=True)], dtype=object)
    is_violated = Standing.VIOLATED in words
    worst = int(np.nanargmax(lower / claimed)) if is_violated else int(np.argmax(upper / claimed))
    low, high = float(np.nan_to_num(lower[worst] / claimed[worst])), float(upper[worst] / claimed[worst])
    text = f"true / claimed ε over {len(rows)} rows: [{low:.3g}, {high:.3g}] at ε = {claimed[worst]:g}; "
    text += counted({str(word): int((words == word).sum()) for word in Standing})
    if is_violated or Standing.NOT_CERTIFIED in words:
        return Verdict.REFUTED if is_violated else Verdict.OPEN, text, (low, low, high)
    # How much less ε than claimed the stated noise would allow to claim.
    text += f"; the noise would allow a claim of {high:.3g} to {float(np.min(upper / claimed)):.3g} of it"
    return Verdict.CONFIRMED, text, (high, low, high)
