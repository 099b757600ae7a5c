"""Claims of the papers, decided by a run: `claims.csv`.

A claim stands in config/claims/*.yaml with its statistic, rule and tolerance; `silodp.verdicts.claims.deciding` has the
function behind each statistic.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from silodp.verdicts.claims.base import RunFolder
    from silodp.verdicts.claims.models import Claim


def decide(claims: "Sequence[Claim]", run: "RunFolder") -> "pd.DataFrame":
    """`rows.COLUMNS`: each claim, then its parts (`N1: <part>`). Raises ValueError for a file that cannot be read."""
    # Loads PyTorch, which no reader of the claims' files needs.
    from silodp.verdicts.claims.deciding import decided

    return decided(claims, run)
