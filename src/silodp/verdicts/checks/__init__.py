"""Checks of the papers' bounds against runs; a check is a function of its own name in its own file.

`CHECKS` names them with a title, in the order in which a report shows them. Nothing is imported before it is run.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from silodp.verdicts.checks.base import Context

CHECKS = {
    "upper_bounds": "Measured risk against upper bounds with printed constants",
    "lower_bounds": "Measured risk against lower bounds, and upper ones with printed constants",
    "rates_convex": "Rates of the convex paper",
    "rates_nonconvex": "Rates of the non-convex paper",
    "rates_checkins": "Rates and dummy updates of the check-ins paper",
    "rounds_to_target": "Rounds to a given risk, accelerated against plain",
    "participation": "Random participation with the same E[1/M_r]",
    "trust_models": "Shuffled and central privacy along N",
    "figure_3": "Figure 3 of the non-convex paper",
    "table_1": "Table 1 of the check-ins paper",
    "amplification": "Amplification: bounds from above, a pair of data sets from below",
    "svrg_against_sgd": "Prox-PL-SVRG against Prox-SGD along κ",
    "shuffled_records": "Shuffled privacy along n and M, several records a silo",
    "hybrid_privacy": "ISRL-DP and user-level DP at once",
    "gradient_counts": "Gradients in linear time",
}


def run_check(name: str, context: "Context") -> "pd.DataFrame":
    from silodp.verdicts.checks.base import against_nulls, table

    check = getattr(importlib.import_module(f"{__name__}.{name}"), name)
    return table(name, against_nulls(check, context))
