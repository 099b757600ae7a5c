"""Claims about the papers' own formulas: expressions of theory functions, evaluated exactly over grids."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from silodp.theory import SCHEDULES, THEOREMS
from silodp.verdicts.checks.table_1 import exact_forms
from silodp.verdicts.claims.base import Finding, RunFolder
from silodp.verdicts.claims.models import Claim, ExactExpression
from silodp.verdicts.words import Verdict

DELTA = 1e-6
# ε0 on the axis of Figure 2 of the check-ins paper.
EPSILON0 = tuple(step / 10 for step in range(1, 41))
# "Similar" curves differ by less than this factor; "matches" up to a factor of 2, as a sum of two equal terms does.
SIMILAR = MATCHES = 2.0
# An exponent is told from its neighbours half-way: e^(ε0/2) from e^0 and e^ε0, n^(-1/2) from n^0 and n^(-1).
HALF_WAY = 0.25


def exact_expression(claim: Claim, run: RunFolder) -> list[Finding]:
    """The expression's number over its grid, and whether it lies where the claim has it."""
    assert isinstance(claim.statistic, ExactExpression)
    return [replace(expression(claim.statistic.expression), evidence=run.evidence(claim, {}))]


def expression(name: str) -> Finding:
    """The finding of one expression; `low` and `high` are the ends of its values over the grid."""
    text, holds, value, low, high = EXPRESSIONS[name]()
    return Finding("", text, Verdict.DERIVATION if holds else Verdict.REFUTED, value, low, high)


Found = tuple[str, bool, float, float, float]


def new_over_earlier_shuffling() -> Found:
    """K1: Theorem 5.1 at n against the earlier bound at 10n, at ε0 where both are below ε0 (the figure's grey line)."""
    ratios = []
    for n, epsilon0 in product((1_000, 10_000), EPSILON0):
        new = _at("checkins-5.1", n=n, epsilon0=epsilon0)
        earlier = _at("checkins-5-earlier", n=10 * n, epsilon0=epsilon0)
        if max(new, earlier) < epsilon0:
            ratios.append(new / earlier)
    low, high = min(ratios), max(ratios)
    farthest = high if math.log(high) >= -math.log(low) else low
    text = f"new bound at n = 10³, 10⁴ over the earlier one at 10n, {len(ratios)} ε0 where both amplify; similar means "
    return text + f"within a factor {SIMILAR:g}", 1 / SIMILAR <= low <= high <= SIMILAR, farthest, low, high


def shuffling_improvement() -> Found:
    """K2: exponent of e^ε0 in the earlier bound over the new one, where the square root leads."""
    grid, n = np.array([epsilon0 for epsilon0 in EPSILON0 if epsilon0 >= 0.5]), 10**12
    ratios = [_at("checkins-5-earlier", n=n, epsilon0=e) / _at("checkins-5.1", n=n, epsilon0=e) for e in grid]
    return _exponent("earlier/new bound, n = 10¹²", 0.5, grid, ratios)


def _exponent(quantity: str, stated: float, grid: np.ndarray, ratios: list[float]) -> Found:
    """The exponent of e^ε0 in a quantity, fitted over the grid of ε0, and between each two neighbours of the grid."""
    steps = np.diff(np.log(ratios)) / np.diff(grid)
    exponent = float(np.polyfit(grid, np.log(ratios), 1)[0])
    holds = steps.min() > stated - HALF_WAY and steps.max() < stated + HALF_WAY
    text = f"exponent of e^ε0 in {quantity}, stated {stated:g} ± {HALF_WAY:g}"
    return text, bool(holds), exponent, float(steps.min()), float(steps.max())


def short_form_of_check_ins() -> Found:
    """K3: the factor that the full forms of Theorems 3.2 and 4.3 need in place of 7, for ε0 < 1 and δ < 1/100."""
    needed = []
    grid = product([*np.linspace(0.01, 0.99, 15), 0.9999], (0.0099999, 1e-3, 1e-6, 1e-9, 1e-15), (1, 10, 10**6))
    for epsilon0, delta, m in grid:
        point = {"m": m, "epsilon0": float(epsilon0), "delta": delta}
        fixed = [THEOREMS["checkins-3.2-short"](p0=p0, **point) for p0 in (0.01, 0.1, 0.5, 1.0)]
        bounds = [*fixed, THEOREMS["checkins-4.3-short"](**point)]
        needed += [bound.terms["needed_factor"] for bound in bounds]
    text = f"factor that the full forms need in place of the stated 7, {len(needed)} points of (ε0, δ, m, p0)"
    return text, max(needed) <= 7, max(needed), min(needed), max(needed)


def expected_dummy_updates() -> Found:
    """K4: exact expected numbers of dummy updates over the bounds m/e^c and (n − m + 1)/e."""
    ratios = []
    for m, c in product((10, 100, 1_000), (0.1, 0.5, 1.0, 2.0, 5.0)):
        n = max(10 * m, math.ceil(c * m))
        short = THEOREMS["checkins-3.4-short"](n=n, m=m, c=c).value
        ratios.append(THEOREMS["checkins-3.4"](n=n, m=m, p0=c * m / n).value / short)
    for n, share in product((100, 1_000, 10_000), (0.01, 0.1, 0.5, 1.0)):
        bound = THEOREMS["checkins-4.4"](n=n, m=int(share * n))
        ratios.append(bound.terms["exact"] / bound.value)
    text = f"exact expectation of dummy updates over its bound, {len(ratios)} points of (n, m, p0), to be at most 1"
    # Rounding of a product of a thousand factors near 1.
    return text, max(ratios) <= 1 + 1e-9, max(ratios), min(ratios), max(ratios)


def amplification_in_n() -> Found:
    """K5: exponent of n in the central ε of an epoch, of check-ins, shuffling and subsampling, by their own bounds."""
    sizes, forms = np.array([10**5, 10**6, 10**7, 10**8]), exact_forms(THEOREMS)
    slopes = {}
    for name, form in (("check-ins", "random_checkins"), ("shuffling", "shuffling"), ("subsampling", "subsampling")):
        epsilons = [forms[form](float(n), 1.0) for n in sizes]
        slopes[name] = float(np.polyfit(np.log(sizes), np.log(epsilons), 1)[0])
    text = "exponent of n in the central ε at ε0 = 1, stated −0.5: "
    text += ", ".join(f"{name} {slope:.3f}" for name, slope in slopes.items())
    holds = all(abs(slope + 0.5) < HALF_WAY for slope in slopes.values())
    return text, holds, slopes["check-ins"], min(slopes.values()), max(slopes.values())


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


def _at(theorem: str, **point: float) -> float:
    return THEOREMS[theorem](**point, delta=DELTA).value


def averaging_price() -> Found:
    """K6: exponent of e^ε0 in the central ε of A_avg over that of A_fix with p0 = 1, where the square roots lead."""
    grid, n, m = np.linspace(1.0, 3.0, 9), 10**16, 10**15
    ratios = [
        THEOREMS["checkins-4.1"](n=n, m=m, epsilon0=float(epsilon0), delta=DELTA, delta2=DELTA).value
        / THEOREMS["checkins-3.2"](p0=1.0, m=m, epsilon0=float(epsilon0), delta=DELTA).value
        for epsilon0 in grid
    ]
    return _exponent("the central ε of A_avg over that of A_fix", 1.5, grid, ratios)


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


EXPRESSIONS: dict[str, Callable[[], Found]] = {
    function.__name__: function
    for function in (
        new_over_earlier_shuffling,
        shuffling_improvement,
        short_form_of_check_ins,
        expected_dummy_updates,
        amplification_in_n,
        one_pass_matches_local,
        averaging_price,
        rounds_over_girgis,
    )
}
