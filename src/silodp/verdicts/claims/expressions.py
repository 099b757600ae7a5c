"""Claims about the papers' own formulas: expressions of theory functions, evaluated exactly over grids."""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from silodp.theory import SCHEDULES, THEOREMS
from silodp.verdicts.claims.base import ClaimFinding, RunFolder
from silodp.verdicts.claims.claim_file import Claim, ExactExpression, Formula, FormulaValues
from silodp.verdicts.words import Verdict

DELTA = 1e-6
# ε0 on the axis of Figure 2 of the check-ins paper.
EPSILON0 = tuple(step / 10 for step in range(1, 41))
# "Similar" curves differ by less than this factor; "matches" up to a factor of 2, as a sum of two equal terms does.
SIMILAR = MATCHES = 2.0
# An exponent is told from its neighbours half-way: e^(ε0/2) from e^0 and e^ε0, n^(-1/2) from n^0 and n^(-1).
HALF_WAY = 0.25
# As a formula: the least (ε, δ)-private σ at sensitivity 1, by the exact profile of the Gaussian mechanism.
LEAST_NOISE = "least noise"


def exact_expression(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """The expression's number over its grid, and whether it lies where the claim has it."""
    assert isinstance(claim.statistic, ExactExpression)
    return [replace(expression(claim.statistic.expression), evidence=run.evidence(claim.evidence))]


def expression(name: str) -> ClaimFinding:
    """The finding of one expression; `low` and `high` are the ends of its values over the grid."""
    text, holds, value, low, high = EXPRESSIONS[name]()
    return ClaimFinding(text, Verdict.DERIVATION if holds else Verdict.REFUTED, value, low, high)


def formula_values(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    assert isinstance(claim.statistic, FormulaValues)
    return [replace(evaluated(claim.statistic.rows), evidence=run.evidence(claim.evidence))]


def evaluated(rows: Sequence[Formula]) -> ClaimFinding:
    """All exponents and values of formulas, of which one that is not as stated refutes; the first is the number."""
    words, holds, numbers, slacks = [], True, [], []
    for row in rows:
        for axis, stated in row.slopes.items():
            power = axis.removeprefix("e^")
            grid = np.array(row.at[power], dtype=float) * 2.0 ** np.arange(5)
            values = [_quotient(row, {power: x}) for x in grid]
            # Between all neighbours, an exponent is told from its own half-way.
            steps = np.diff(np.log(values)) / np.diff(grid if power != axis else np.log(grid))
            numbers.append((float(steps.mean()), float(steps.min()), float(steps.max())))
            holds &= bool(np.abs(steps - stated).max() < HALF_WAY)
            words.append(f"{row.formula} in {axis} {numbers[-1][0]:.3f}, stated {stated:.3g}")
        if row.at_most is not None:
            lists = {name: value for name, value in row.at.items() if isinstance(value, list)}
            points = product(*lists.values())
            values = [_quotient(row, dict(zip(lists, point, strict=True))) for point in points]
            numbers.append((max(values), min(values), max(values)))
            # Rounding of a product of a thousand factors near 1.
            holds &= max(values) <= row.at_most * (1 + 1e-9)
            slacks.append(row.at_most / max(values))
            words.append(f"{row.formula} up to {max(values):.3g} at {len(values)} points, stated {row.at_most:g}")
    value, low, high = numbers[0]
    verdict = Verdict.DERIVATION if holds else Verdict.REFUTED
    return ClaimFinding(f"formulas: {'; '.join(words)}", verdict, value, low, high, slack=min(slacks, default=math.nan))


def _quotient(row: Formula, varied: dict[str, float]) -> float:
    named: dict[str, Any] = {**row.at, **varied}
    # A name is another parameter's, or else a word.
    point = {name: named.get(x, x) if isinstance(x, str) else x for name, x in named.items()}
    point = {name: int(x) if x not in ("printed", "right") and x == int(x) else x for name, x in point.items()}

    def term_of(key: str, term: str) -> float:
        if key == LEAST_NOISE:
            # Loads the accountant.
            from silodp.privacy.accounting.mechanisms import gaussian_mu

            return 1 / gaussian_mu(point["epsilon"], point["delta"])
        known = (inspect.signature(SCHEDULES[key]) if key in SCHEDULES else THEOREMS[key]).parameters
        taken = {name: x for name, x in point.items() if name in known}
        if key in SCHEDULES:
            return SCHEDULES[key](**taken).rounds
        result = THEOREMS[key](**taken)
        return result.terms[term] if term else result.value

    return term_of(row.formula, row.term) / (term_of(row.over, row.over_term) if row.over else 1.0)


Found = tuple[str, bool, float, float, float]


def new_over_earlier_shuffling() -> Found:
    """K1: Theorem 5.1 at n against the earlier bound at 10n, at ε0 where both are below ε0 (the figure's grey line)."""
    ratios = []
    for n, epsilon0 in product((1_000, 10_000), EPSILON0):
        new = _value_at("checkins-5.1", n=n, epsilon0=epsilon0)
        earlier = _value_at("checkins-5-earlier", n=10 * n, epsilon0=epsilon0)
        if max(new, earlier) < epsilon0:
            ratios.append(new / earlier)
    low, high = min(ratios), max(ratios)
    farthest = high if math.log(high) >= -math.log(low) else low
    text = f"new bound at n = 10³, 10⁴ over the earlier one at 10n, {len(ratios)} ε0 where both amplify; similar means "
    return text + f"within a factor {SIMILAR:g}", 1 / SIMILAR <= low <= high <= SIMILAR, farthest, low, high


def one_pass_matches_local() -> Found:
    """C8: the bound for heterogeneous silos over its private term, the local rate, from n = (Nβ²D²/(dL²))^(1/3)."""
    above, below = [], []
    grid = product((10, 1_000, 100_000), (1, 10, 100), (1.0, 100.0, 10_000.0), (0.1, 0.5, 1.0))
    for N, d, beta, epsilon in grid:
        least = (N * beta**2 / d) ** (1 / 3)
        for n in {math.ceil(least), math.ceil(4 * least), math.ceil(64 * least)}:
            above.append(_over_local(n, d, N, beta, epsilon))
        if least >= 16:
            below.append(_over_local(math.floor(least / 16), d, N, beta, 1.0))
    text = "bound for heterogeneous silos over the classical local rate at n ≥ (Nβ²D²/(dL²))^(1/3), "
    text += f"{len(above)} points, to be at most {MATCHES:g}; a sixteenth of that n: up to {max(below):.3g}"
    return text, max(above) <= MATCHES, max(above), min(above), max(above)


def _over_local(n: int, d: int, N: int, beta: float, epsilon: float) -> float:
    bound = THEOREMS["convex-2.3"](n=n, d=d, M=N, L=1.0, D=1.0, beta=beta, epsilon=epsilon, delta=DELTA)
    return bound.value / bound.terms["private"]


def _value_at(theorem: str, **point: float) -> float:
    return THEOREMS[theorem](**point, delta=DELTA).value


def rounds_over_girgis() -> Found:
    """C4: rounds of the earlier algorithm, ε²n²M/d, over Theorem 2.4's, against the factor min{√M εn/√d, M}, M < N.

    Both hide logarithms; the prescribed rounds have those of the noise in them, and are fewer for it.
    """
    factors = []
    for n, d, M, epsilon in product((1_000, 10_000), (10, 100), (4, 64, 1_024), (0.5, 2.0)):
        point = {"n": n, "d": d, "M": M, "epsilon": epsilon, "delta": DELTA}
        rounds = SCHEDULES["theorem-2.4"](**point, N=4 * M, L=1.0, D=1.0, upsilon=1.0).rounds
        stated = min(math.sqrt(M / d) * epsilon * n, M)
        factors.append((epsilon * n) ** 2 * M / d / rounds / stated)
    text = f"rounds of the earlier algorithm over those prescribed, over the stated factor, {len(factors)} points of "
    return text + "(n, d, M, ε), to be at least 1", min(factors) >= 1, min(factors), min(factors), max(factors)


def dummy_updates_of_wider_windows() -> Found:
    """K10: expected dummy updates of a sliding window over those of one half as wide, at n = 10⁴."""
    windows = [2**power for power in range(1, 14)]
    numbers = [THEOREMS["checkins-4.4"](n=10_000, m=m).terms["exact"] for m in windows]
    ratios = [wide / narrow for narrow, wide in pairwise(numbers)]
    most = windows[int(np.argmax(numbers))]
    text = f"dummy updates at m over those at m/2, m = {windows[1]} to {windows[-1]} of n = 10⁴, to be above 1; "
    return text + f"most at m = {most}", min(ratios) > 1, min(ratios), min(ratios), max(ratios)


EXPRESSIONS: dict[str, Callable[[], Found]] = {
    function.__name__: function
    for function in (
        new_over_earlier_shuffling,
        one_pass_matches_local,
        rounds_over_girgis,
        dummy_updates_of_wider_windows,
    )
}
