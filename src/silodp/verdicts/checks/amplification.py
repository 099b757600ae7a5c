"""What amplification bounds grant, from above by the theorems, beside what one pair of data sets spends, from below.

Clients send one bit by randomised response at ε0. All have 0, or one of them has 1: the number of ones that arrive has
two laws, whose hockey-stick divergence is exact, and no bound on ε can lie below the ε of that pair. Which client is
heard in a slot is drawn uniformly, so that in A_fix and A_sldw the number of ones holds all that their order tells; in
A_avg it is a part of what the server sees, and the lower end may be lower than it has to be.
"""

from collections.abc import Callable, Iterator
from math import exp

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from silodp.verdicts.checks.base import Array, Context, Row, row
from silodp.verdicts.statistics import Interval
from silodp.verdicts.words import Verdict

DELTA, DELTA2 = 1e-6, 1e-7
EPSILON0, SMALL = (0.5, 1.0, 2.0), (0.02, 0.05, 0.1)
CLIENTS, SLOTS = 10_000, 1_000


def amplification(context: Context) -> list[Row]:
    """A row a protocol and ε0: the pair's exact ε as what is measured, the theorem's as the upper bound."""
    rows: list[Row] = []
    for theorem, what, heard, messages, extra, bound in _protocols(context):
        # The forms for (ε0, δ0)-randomisers pay 8ε0 for ε0.
        for epsilon0 in EPSILON0 if not theorem.endswith("approximate") else SMALL:
            lower, upper = spent_epsilon(epsilon0, heard, messages, DELTA + extra), bound(epsilon0)
            verdict, detail = Verdict.VACUOUS, "no amplification"
            if upper < epsilon0:
                verdict, detail = Verdict.NOT_CONTRADICTED, f"the bound is {upper / lower:.3g} times what a pair spends"
            verdict = Verdict.REFUTED if lower > upper else verdict
            columns: Row = {"upper": upper, "reach": epsilon0, "detail": detail}
            pair = Interval(lower, lower, lower)
            rows.append(row(theorem, f"epsilon0 ({what})", epsilon0, pair, verdict, **columns))
    return rows


def _protocols(context: Context) -> Iterator[tuple[str, str, float, int, float, Callable[[float], float]]]:
    """Theorem, its protocol, the probability that the client is heard, messages, δ beyond DELTA, and the bound."""
    n, m, theorems = CLIENTS, SLOTS, context.theorems

    def bound(theorem: str, **point: float) -> Callable[[float], float]:
        return lambda epsilon0: theorems[theorem](epsilon0=epsilon0, delta=DELTA, **point).value

    # A pure randomiser is an (ε0, δ0) one; a δ0 and δ1 so small that δ' is δ.
    pure = {"delta0": 1e-30, "delta1": 1e-20}
    forms = {"checkins-5.1": {}, "checkins-5.1-approximate": pure, "convex-E.2": {"N": n, "n": 1, "delta0": 1e-30}}
    for theorem, more in forms.items():
        yield theorem, f"shuffled, n = {n}", 1.0, n, 0.0, bound(theorem, **({"n": n} | more))
    for p0 in (0.1, 1.0):
        # Every slot that is not empty hears one client, each as likely as the others.
        heard = m * (1 - (1 - p0 / m) ** n) / n
        for theorem, more in (("checkins-3.2", {}), ("checkins-3.2-approximate", pure)):
            yield theorem, f"A_fix, m = {m}, p0 = {p0:g}", heard, m, 0.0, bound(theorem, p0=p0, m=m, **more)
    # A slot in the middle is open to m clients, each there with probability 1/m.
    heard = 1 - (1 - 1 / m) ** m
    yield "checkins-4.3", f"A_sldw, m = {m}", heard, m, 0.0, bound("checkins-4.3", m=m)
    m *= 100
    heard = 1 - (1 - 1 / m) ** m
    yield "checkins-4.3-approximate", f"A_sldw, m = {m}", heard, m, 0.0, bound("checkins-4.3-approximate", m=m, **pure)
    n *= 100
    for theorem, more in (("checkins-4.1", {}), ("checkins-4.1-approximate", pure)):
        averaged = bound(theorem, n=n, m=m, delta2=DELTA2, **more)
        yield theorem, f"A_avg, n = {n}, m = {m}", 1.0, n, DELTA2, averaged


def laws(epsilon0: float, heard: float, messages: int) -> tuple[Array, Array]:
    """Laws of the number of ones among the messages, (messages + 1,) each, without and with the record that is 1."""
    honest = exp(epsilon0) / (1 + exp(epsilon0))
    ones = np.arange(messages + 1)
    without = binom.pmf(ones, messages, 1 - honest)
    others = np.append(binom.pmf(ones[:-1], messages - 1, 1 - honest), 0.0)
    flipped = (1 - honest) * others + honest * np.concatenate([[0.0], others[:-1]])
    return without, (1 - heard) * without + heard * flipped


def spent_epsilon(epsilon0: float, heard: float, messages: int, delta: float) -> float:
    """The smallest ε at which the two laws are (ε, δ)-close, in both directions."""
    pairs = laws(epsilon0, heard, messages)

    def excess(epsilon: float) -> float:
        return max(float(np.maximum(p - exp(epsilon) * q, 0).sum()) for p, q in (pairs, pairs[::-1])) - delta

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, epsilon0 + 1e-9))
