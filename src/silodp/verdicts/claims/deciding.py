"""Every claim decided by a run, with the statistic of its name: the rows of claims.csv."""

from collections.abc import Callable, Iterable
from dataclasses import asdict

import pandas as pd

from silodp.verdicts.claims.base import ClaimFinding, RunFolder
from silodp.verdicts.claims.bounds_rows import bounds_verdicts
from silodp.verdicts.claims.claim_file import Claim
from silodp.verdicts.claims.delivered import delivered_epsilon
from silodp.verdicts.claims.expressions import exact_expression, formula_values
from silodp.verdicts.claims.identity import same_iterates
from silodp.verdicts.claims.rows import COLUMNS
from silodp.verdicts.claims.trained import decided
from silodp.verdicts.words import CORRECTED, Verdict

# Each gives one finding, and one of the corrected form behind it where the printed one is another.
STATISTICS: dict[str, Callable[[Claim, RunFolder], list[ClaimFinding]]] = {
    "decided": decided,
    "delivered_epsilon": delivered_epsilon,
    "bounds_verdicts": bounds_verdicts,
    "exact_expression": exact_expression,
    "formula_values": formula_values,
    "same_iterates": same_iterates,
}


def decide(claims: Iterable[Claim], run: RunFolder) -> pd.DataFrame:
    """A row of `rows.COLUMNS` for each claim, and one behind it for its corrected form, called `N7: [corrected]`.

    Raises ValueError for a file that cannot be read.
    """
    rows = []
    for claim in claims:
        for place, finding in enumerate(STATISTICS[claim.statistic.name](claim, run)):
            name = f"{claim.id}: [{CORRECTED}]" if place else claim.id
            # What speaks against a claim is said in the word for its kind: a report, a proof's constant, or a misprint.
            verdict = Verdict(claim.against) if finding.verdict == Verdict.REFUTED else finding.verdict
            about = {"claim": name, "source": claim.source, "statement": claim.statement, "kind": claim.kind}
            about |= {"verdict": verdict, "evidence": "; ".join(finding.evidence)}
            rows.append(asdict(finding) | about)
    return pd.DataFrame(rows, columns=COLUMNS)
