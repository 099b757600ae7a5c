"""Table 1 of the check-ins paper as a table: orders of the central ε of an epoch, their exponents in ε0 and n (K5)."""

import math

from silodp.checks.base import Context, Row, row

NAMES = ("none", "subsampling", "shuffling_earlier", "shuffling", "random_checkins")
# Exponents of e^ε0 that the entries state; without amplification ε is ε0 itself.
IN_EPSILON0 = {"subsampling": 1.0, "shuffling_earlier": 3.0, "shuffling": 2.5, "random_checkins": 1.5}


def table_1(context: Context) -> list[Row]:
    """A row an entry and population, constants 1, logarithms dropped; then the exponents in e^ε0 and in n."""
    found = context.theorems["checkins-table-1"]
    rows: list[Row] = []
    for n in (10_000, 100_000, 1_000_000):
        terms = found(n=n, epsilon0=2.0).terms
        for name in NAMES:
            amplified = "amplifies" if terms[name] < terms["none"] else "no amplification"
            rows.append(row("checkins-table-1", f"n ({name}, epsilon0 = 2)", n, None, amplified, upper=terms[name]))
    low, high = found(n=10_000, epsilon0=1.5).terms, found(n=10_000, epsilon0=3.0).terms
    larger = found(n=1_000_000, epsilon0=1.5).terms
    for name, claimed in IN_EPSILON0.items():
        for axis, exponent, stated in (
            ("e^epsilon0", math.log(high[name] / low[name]) / 1.5, claimed),
            ("n", math.log(larger[name] / low[name]) / math.log(100), -0.5),
        ):
            verdict = "holds" if abs(exponent - stated) < 1e-9 else f"fails: {exponent:.4g}"
            parameter = f"exponent in {axis} ({name})"
            rows.append(row("checkins-table-1", parameter, stated, None, verdict, lower=exponent, upper=exponent))
    # The caption's approximation (docs/errata.md): e^ε0 − 1 is near e^ε0, as the entries have it, and not near ε0.
    for epsilon0 in (1.0, 2.0, 4.0):
        exact = math.expm1(epsilon0)
        closer = abs(exact - epsilon0) < abs(exact - math.exp(epsilon0))
        verdict = "holds as printed" if closer else "fails as printed: e^ε0 is nearer"
        rows.append(row("checkins-table-1 (printed)", "caption: e^epsilon0 - 1 over epsilon0", epsilon0, None, verdict,
                        lower=exact / epsilon0, upper=math.exp(epsilon0) / exact))  # fmt: skip
    return rows
