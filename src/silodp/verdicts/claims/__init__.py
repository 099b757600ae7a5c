"""Claims of the papers, decided by a run: `claims.csv`.

A claim stands in config/claims/*.yaml with its statistic, rule and tolerance. `STATISTICS` names the function behind
each statistic; nothing is imported before it is used.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    import pandas as pd

    from silodp.verdicts.claims.base import Finding, RunFolder
    from silodp.verdicts.claims.models import Claim

COLUMNS = ["claim", "source", "statement", "statistic", "value", "low", "high", "verdict", "evidence"]
# Behind them: which statement the row is about, where the printed one and the corrected one differ; and what stands
# behind the claim: experiment, theorem or derivation.
COLUMNS += ["form", "kind"]

# Statistic → the module that has a function of its name.
STATISTICS = {
    "paired_difference": "paired",
    "relative_improvement": "improvement",
    "price_of_privacy": "price",
    "delivered_epsilon": "delivered",
    "bounds_verdicts": "bounds_rows",
    "exact_expression": "expressions",
    "same_iterates": "identity",
}


def statistic(name: str) -> "Callable[[Claim, RunFolder], list[Finding]]":
    """The function that decides claims with the statistic `name`; its first finding is the claim as a whole."""
    return getattr(importlib.import_module(f"silodp.verdicts.claims.{STATISTICS[name]}"), name)


def decide(claims: "Sequence[Claim]", run: "RunFolder") -> "pd.DataFrame":
    """`COLUMNS`: for every claim its own row first, then those of its parts (`N1: <part>`).

    Raises:
        ValueError: a file of the run that is not what it should be.
    """
    from silodp.verdicts.claims.base import headed
    from silodp.verdicts.claims.certified import certified
    from silodp.verdicts.claims.theorems import uncovered
    from silodp.verdicts.claims.variants import same_rows

    rows = []
    for claim in [*claims, *uncovered(claims, run)]:
        own = statistic(claim.statistic.name)
        for found in [*headed(claim, own(claim, run)), *same_rows(claim, run, own), *certified(claim, run, own)]:
            rows.append(
                {
                    "claim": f"{claim.id}: {found.part}" if found.part else claim.id,
                    "source": claim.source,
                    "statement": claim.statement,
                    "statistic": found.statistic,
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                    "verdict": str(found.verdict),
                    "evidence": "; ".join(found.evidence),
                    "form": found.form,
                    "kind": claim.kind,
                }
            )
    return pd.DataFrame(rows, columns=COLUMNS)
