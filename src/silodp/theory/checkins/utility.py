"""Utility of random check-ins (check-ins paper, Theorems 3.5, 4.2) and the number of dummy updates (Props 3.4, 4.4)."""

from functools import partial
from math import exp, log, sqrt

from silodp.theory.checkins.privacy import CHECKINS
from silodp.theory.registry import Result, at_least, at_most, positive, require, theorem, total

UTILITY = CHECKINS | {
    "n": at_least(1, "clients, one record each", "clients", 2000, integer=True),
    "p": at_least(1, "parameters of the model", "parameters", 10, integer=True),
    "width": positive("diameter of the parameter set", "parameter", 2.0),
    "c": positive("clients expected a slot, p0 n/m", "clients", 1.0),
}

upper = partial(theorem, kind="upper", symbols=UTILITY)


@upper("checkins-3.4", "Proposition 3.4")
def dummy_updates(*, n, m, p0):
    """Expected dummy updates of A_fix are at most m(1−p0/m)^n.

    A slot is empty when all n clients miss it, each with probability 1−p0/m: the bound is the exact expectation.
    """
    return Result(m * (1 - p0 / m) ** n, {"share_of_slots": (1 - p0 / m) ** n}, ("exact, not only a bound",))


@upper("checkins-3.4-short", "Proposition 3.4, with p0 = cm/n")
def dummy_updates_short(*, n, m, c):
    """With p0 = cm/n at most m/e^c dummy updates."""
    require(c * m / n <= 1, "a probability", "c", c, f"at most n/m = {n / m:g}")
    return Result(m * exp(-c), {"exact": m * (1 - c / n) ** n, "p0": c * m / n})


@upper("checkins-4.4", "Proposition 4.4")
def dummy_updates_sliding(*, n, m):
    """Expected dummy updates of A_sldw are at most (n−m+1)/e.

    From slot m on, m clients can reach a slot: term `exact`.
    """
    at_most("a window is no longer than the run", n, "n", m=m)
    return Result((n - m + 1) / exp(1), {"exact": (n - m + 1) * (1 - 1 / m) ** m})


@upper("checkins-3.5", "Theorem 3.5", constant="hidden", p0=0.8)
def fixed_window_risk(*, n, m, p0, p, sigma, L, width):
    """Excess population risk of A_fix with Gaussian noise, convex losses.

    The step of slot i is the term `step` over √i.
    """
    used = 1 - 2 * exp(-n * p0 / m)
    require(used > 0, "enough check-ins a slot (n p0/m > ln 2)", "p0", p0, f"above m ln(2)/n = {m * log(2) / n:.6g}")
    size = sqrt(p * sigma**2 + L**2)
    terms = {"used_share": used, "step": width * used / size}
    return Result(size * width / (used * sqrt(m)), terms, ("a polylogarithm in m dropped",))


@upper("checkins-4.2", "Theorem 4.2", constant="hidden")
def averaged_risk(*, n, m, p, sigma, L, width):
    """Excess population risk of A_avg with Gaussian noise, convex losses.

    The step of slot i is the term `step` over √i.
    """
    size = sqrt(m * p * sigma**2 + n * L**2)
    return Result(width * size / sqrt(m * n), {"step": width * sqrt(n) / size}, ("a polylogarithm in m dropped",))


@upper("checkins-4.2-smooth", "Theorem 4.2, smooth losses", constant="hidden")
def averaged_smooth_risk(*, n, m, p, sigma, L, beta, width):
    """Excess population risk of A_avg's mean iterate with Gaussian noise, smooth convex losses.

    The constant step is the term `step`.
    """
    size = sqrt(L**2 + p * sigma**2)
    step = width * sqrt(n) / (beta * width * sqrt(n) + m * size)
    return total("logarithms dropped", noise=width * size / sqrt(n), smooth=beta * width**2 / m).beside(step=step)
