"""Claims about trained models: decided by fresh trials (docs/claims.md), or not testable without them."""

import numpy as np

from silodp.files import with_reading
from silodp.verdicts.claims.base import ClaimFinding, RunFolder, data_set
from silodp.verdicts.claims.claim_file import Claim, Decided
from silodp.verdicts.decided_claims import VERDICTS
from silodp.verdicts.words import Verdict

NOTE = "decided by fresh trials: `make decided`, hours"


def decided(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """The claim's row of decided_verdicts.csv as it is; without one, comparisons.csv says how this run's trials lie."""
    if (table := run.table("decided_verdicts.csv", tuple(VERDICTS))) is not None:
        texts = {"on_average": "", "at_every": "", "note": "", "statistic": ""}
        for row in table[table["claim"] == claim.id].fillna(texts).drop(columns="claim").to_dict("records"):
            return [ClaimFinding(**row | {"verdict": Verdict(row["verdict"])}, evidence=run.evidence(claim.evidence))]
    text = _differences(claim, run) or "no comparison of this run is about it"
    return [ClaimFinding(text, Verdict.NOT_TESTABLE, note=NOTE, evidence=run.evidence(["comparisons.csv"]))]


def _differences(claim: Claim, run: RunFolder) -> str:
    """For each data set and pair the mean of the published trials' differences and how their intervals lie."""
    assert isinstance(claim.statistic, Decided)
    table = run.table("comparisons.csv", ("experiment", "reading", "epsilon", "first", "second", "difference"))
    if table is None:
        return ""
    rows = with_reading(table)
    mine = rows["experiment"].isin(claim.experiments) & (rows["reading"] == "")
    mine &= rows["epsilon"].between(*claim.statistic.epsilons)
    asked = {frozenset((pair.first, pair.second)) for pair in claim.statistic.pairs}
    mine &= rows[["first", "second"]].agg(frozenset, axis=1).isin(asked)
    rows = rows[mine & np.isfinite(rows["difference"].astype(float))]
    words = []
    for (of, *pair), part in rows.groupby([rows["experiment"].map(data_set), "first", "second"], sort=False):
        below, above = int((part["high"] < 0).sum()), int((part["low"] > 0).sum())
        counts = f"{below} of {len(part)} intervals below 0, {above} above"
        words.append(f"{of}, {' − '.join(pair)} {part['difference'].mean():+.4f} in the mean, {counts}")
    return "; ".join(words)
