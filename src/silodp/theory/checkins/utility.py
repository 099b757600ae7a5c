"""Utility of random check-ins (check-ins paper, Theorems 3.5, 4.2) and the number of dummy updates (Props 3.4, 4.4)."""

from math import exp, log, sqrt

from silodp.theory.checkins.privacy import CHECKINS
from silodp.theory.registry import Result, at_least, positive, require, theorem

UTILITY = {
    **CHECKINS,
    "n": at_least(1, "clients, one record each", "clients", 2000, integer=True),
    "p": at_least(1, "parameters of the model", "parameters", 10, integer=True),
    "width": positive("diameter of the parameter set", "parameter", 2.0),
    "c": positive("clients expected a slot, p0 n/m", "clients", 1.0),
    "slot": at_least(1, "number of the slot", "slot", 1, integer=True),
}


@theorem("checkins-3.4", "Proposition 3.4", "Expected dummy updates of A_fix are at most m(1−p0/m)^n.", "upper",
         symbols=UTILITY)  # fmt: skip
def dummy_updates(*, n: int, m: int, p0: float) -> Result:
    """Expected number of empty slots of A_fix (check-ins paper, Proposition 3.4).

    A slot is empty when all n clients miss it, each with probability 1−p0/m: the bound is the exact expectation.
    """
    return Result(m * (1 - p0 / m) ** n, {"share_of_slots": (1 - p0 / m) ** n}, ("exact, not only a bound",))


@theorem("checkins-3.4-short", "Proposition 3.4, with p0 = cm/n", "With p0 = cm/n at most m/e^c dummy updates.",
         "upper", symbols=UTILITY)  # fmt: skip
def dummy_updates_short(*, n: int, m: int, c: float) -> Result:
    """m/e^c (check-ins paper, Proposition 3.4); the term is the exact expectation m(1−c/n)^n. Assumes cm/n ≤ 1."""
    require(c * m / n <= 1, "a probability", "c", c, f"at most n/m = {n / m:g}")
    return Result(m * exp(-c), {"exact": m * (1 - c / n) ** n, "p0": c * m / n})


@theorem("checkins-4.4", "Proposition 4.4", "Expected dummy updates of A_sldw are at most (n−m+1)/e.", "upper",
         symbols=UTILITY)  # fmt: skip
def dummy_updates_sliding(*, n: int, m: int) -> Result:
    """(n−m+1)/e (check-ins paper, Proposition 4.4). m clients can reach a slot from m on: exactly (n−m+1)(1−1/m)^m."""
    require(m <= n, "a window is no longer than the run", "m", m, f"at most n = {n}")
    return Result((n - m + 1) / exp(1), {"exact": (n - m + 1) * (1 - 1 / m) ** m})


@theorem("checkins-3.5", "Theorem 3.5", "Excess population risk of A_fix with Gaussian noise, convex losses.", "upper",
         constant="hidden", symbols=UTILITY, example={"p0": 0.8})  # fmt: skip
def fixed_window_risk(*, n: int, m: int, p0: float, p: int, sigma: float, L: float, width: float) -> Result:
    """Rate √(pσ²+L²)·width/((1−2e^(−np0/m))√m) (check-ins paper, Theorem 3.5).

    The step of slot i is the term `step` over √i. Assumes n p0/m > ln 2, or else the factor is not positive.
    """
    used = 1 - 2 * exp(-n * p0 / m)
    require(used > 0, "enough check-ins a slot (n p0/m > ln 2)", "p0", p0, f"above m ln(2)/n = {m * log(2) / n:.6g}")
    size = sqrt(p * sigma**2 + L**2)
    terms = {"used_share": used, "step": width * used / size}
    return Result(size * width / (used * sqrt(m)), terms, ("a polylogarithm in m dropped",))


@theorem("checkins-4.2", "Theorem 4.2", "Excess population risk of A_avg with Gaussian noise, convex losses.", "upper",
         constant="hidden", symbols=UTILITY)  # fmt: skip
def averaged_risk(*, n: int, m: int, p: int, sigma: float, L: float, width: float) -> Result:
    """Rate width·√(mpσ²+nL²)/√(mn) (check-ins paper, Theorem 4.2); the step of slot i is the term `step` over √i."""
    size = sqrt(m * p * sigma**2 + n * L**2)
    return Result(width * size / sqrt(m * n), {"step": width * sqrt(n) / size}, ("a polylogarithm in m dropped",))


@theorem("checkins-4.2-smooth", "Theorem 4.2, smooth losses",
         "Excess population risk of A_avg's mean iterate with Gaussian noise, smooth convex losses.", "upper",
         constant="hidden", symbols=UTILITY)  # fmt: skip
def averaged_smooth_risk(*, n: int, m: int, p: int, sigma: float, L: float, beta: float, width: float) -> Result:
    """Rate width·√((L²+pσ²)/n) + β width²/m (check-ins paper, Theorem 4.2); the constant step is the term `step`."""
    size = sqrt(L**2 + p * sigma**2)
    noise, bias = width * size / sqrt(n), beta * width**2 / m
    step = width * sqrt(n) / (beta * width * sqrt(n) + m * size)
    return Result(noise + bias, {"noise": noise, "smooth": bias, "step": step}, ("logarithms dropped",))
