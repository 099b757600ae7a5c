"""Figure 3 of the non-convex paper as a table: its upper and lower bounds at a chosen point, and their gaps."""

from silodp.verdicts.checks.base import Context, Row, row
from silodp.verdicts.words import Verdict

POINT = {"n": 1000, "d": 50, "N": 100, "beta": 10.0, "mu": 1.0, "epsilon": 1.0}
ENTRIES = ("isrl_so", "sdp_so", "isrl_erm", "sdp_erm", "isrl_nonconvex", "sdp_nonconvex")


def figure_3(context: Context) -> list[Row]:
    """A row an entry: lower and upper bound, L²/μ and logarithms dropped, constants 1, at `POINT` and along ε."""
    rows: list[Row] = []
    for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
        terms = context.evaluate("nonconvex-figure-3", **(POINT | {"epsilon": epsilon})).terms
        for entry in ENTRIES:
            lower, upper = terms[f"{entry}_lower"], terms[f"{entry}_upper"]
            gap = f"gap {upper / lower:.4g}" if lower <= upper else "the bounds cross: a constant is hidden"
            found = [(f"epsilon ({entry})", upper, gap)]
            if (earlier := terms.get(f"{entry}_earlier")) is not None:
                better = "improved" if upper < earlier else "not improved: the bound exceeds 1"
                found.append((f"epsilon ({entry}, earlier bound)", earlier, better))
            for name, bound, detail in found:
                columns: Row = {"lower": lower, "upper": bound, "detail": detail}
                rows.append(row("nonconvex-figure-3", name, epsilon, None, Verdict.DERIVATION, **columns))
    return rows
