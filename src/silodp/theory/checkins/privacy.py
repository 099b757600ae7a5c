"""Privacy of random check-ins and of shuffling, and their utility (check-ins paper, Theorems 3.2 to 5.1, Table 1).

n clients with one record each; m slots; p0 the probability that a client checks in at all; ε0, δ0 the local randomiser.
Every function gives the central ε at a failure probability; logarithms are natural. In the forms for an
(ε0, δ0)-randomiser the cap on δ0 has e^(−5ε0) inside, as Theorems 4.1 and 4.3 print it, and the failure probability
carries δ1; Theorem 3.2 prints e^(−δε0) and δ0 there (`reading="printed"`), 5.1 the first of the two.
"""

from functools import partial
from math import log, log1p, sqrt

from silodp.theory.theorem import (
    Result,
    Symbol,
    at_least,
    exp,
    expm1,
    fraction,
    positive,
    require,
    require_at_most,
    theorem,
    total,
)

CHECKINS = {
    "n": at_least(1, "clients, one record each", "clients", 10000, integer=True),
    "m": at_least(1, "time slots", "slots", 1000, integer=True),
    "p0": Symbol("probability that a client checks in", "probability", 0.1, low=0.0, high=1.0, low_open=True),
    "epsilon0": positive("privacy loss ε0 of the local randomiser", "nat", 0.5),
    "delta0": fraction("failure probability δ0 of the local randomiser", "probability", 1e-14),
    "delta1": fraction("failure probability δ1 of one slot's replacement by a pure randomiser", "probability", 1e-9),
    "delta2": fraction("probability δ2 of an uneven load", "probability", 1e-7),
}
SHORT = CHECKINS | {
    "epsilon0": fraction("privacy loss ε0", "nat", 0.5),
    "delta": Symbol("failure probability δ", "probability", 1e-6, 0.0, 0.01, True, True),
}
UP_TO_1 = CHECKINS | {"epsilon0": Symbol("privacy loss ε0", "nat", 0.5, 0.0, 1.0, True)}
ABOVE_1 = CHECKINS | {"epsilon0": Symbol("privacy loss ε0", "nat", 2.0, low=1.0, low_open=True)}

amplification = partial(theorem, kind="amplification", symbols=CHECKINS)


def _amplified(gap, variance, delta) -> Result:
    """ε of a composition with Σ ε_i² ≤ gap²·variance."""
    return total(quadratic=gap**2 * variance / 2, root=gap * sqrt(2 * variance * log(1 / delta)))


def delta0_cap(epsilon0, delta1, exponent=5.0) -> float:
    """Largest δ0 that the (ε0, δ0) forms allow: (1−e^−ε0)δ1 / (4e^ε0 (2 + ln(2/δ1)/ln(1/(1−e^(−exponent·ε0)))))."""
    # ln(1/(1−x)) = −log1p(−x) keeps its digits when e^(−5ε0) is tiny.
    depth = log(2 / delta1) / -log1p(-exp(-exponent * epsilon0))
    return -expm1(-epsilon0) * delta1 / (4 * exp(epsilon0) * (2 + depth))


def _approximate(pure, epsilon0, delta0, delta1, delta, slots, exponent=5.0) -> Result:
    """Close an (ε0, δ0) form, `pure` at 8 ε0 and central δ: check δ0 against its cap, and add up δ over `slots`."""
    cap = delta0_cap(epsilon0, delta1, exponent)
    require_at_most("cap on the randomiser's δ0", cap, delta0=delta0)
    delta_prime = delta + slots * (exp(pure.value) + 1) * delta1
    notes = () if delta_prime < 1 else ("the failure probability exceeds 1: the statement is vacuous here",)
    return Result(pure.value, {**pure.terms, "delta0_cap": cap, "delta_prime": delta_prime}, notes)


def _fixed_window(p0, m, epsilon0, delta) -> Result:
    return _amplified(p0 * expm1(epsilon0), exp(epsilon0) / m, delta)


@amplification("checkins-3.2", "Theorem 3.2")
def fixed_window(*, p0, m, epsilon0, delta):
    """Random check-ins into a fixed window of m slots amplify a pure ε0-randomiser.

    Central ε of A_fix; the number of clients does not enter.
    """
    return _fixed_window(p0, m, epsilon0, delta)


@amplification("checkins-3.2-short", "Theorem 3.2, in particular", symbols=SHORT)
def fixed_window_short(*, p0, m, epsilon0, delta):
    """For ε0 < 1 and δ < 1/100 random check-ins give ε ≤ 7 p0 ε0 √(ln(1/δ)/m).

    It follows from the full form on its whole domain: the factor that is needed is at most
    (e−1)√(2e) + e(e−1)²/(2√ln 100) = 5.88, reached at p0 = m = 1, ε0 → 1, δ → 1/100.
    """
    unit = p0 * epsilon0 * sqrt(log(1 / delta) / m)
    return Result(7 * unit, {"needed_factor": _fixed_window(p0, m, epsilon0, delta).value / unit})


@amplification("checkins-3.2-approximate", "Theorem 3.2, furthermore", epsilon0=0.05)
def fixed_window_approximate(*, p0, m, epsilon0, delta, delta0, delta1, reading="right"):
    """Random check-ins into a fixed window amplify an (ε0, δ0)-randomiser, at the price of 8ε0 for ε0.

    δ0 is far below δ1, so the printed δ' is too small by m(e^ε'+1)(δ1−δ0).
    """
    exponent = 5.0 if reading == "right" else delta
    result = _approximate(_fixed_window(p0, m, 8 * epsilon0, delta), epsilon0, delta0, delta1, delta, m, exponent)
    printed = delta + m * (exp(result.value) + 1) * delta0
    return result if reading == "right" else result.with_terms(delta_prime=printed)


@theorem("checkins-3.3", "Corollary 3.3", "rate", symbols=CHECKINS, epsilon0=0.5)
def repeated_window(*, n, m, epsilon0, delta):
    """n/m repetitions of A_fix with p0 = m/n make n updates at central ε of order e^(1.5ε0)/√n.

    The term `composed` is an explicit ε: Theorem 3.2 at δ m/(2n) a run, and advanced composition of the n/m runs with
    slack δ/2. δ stands for the corollary's β.
    """
    require_at_most("a window is no longer than the population", n, "n", m=m)
    require_at_most("limit on the randomiser", 2 * log(n / (8 * sqrt(m))) / 3, "2ln(n/(8√m))/3", epsilon0=epsilon0)
    least = expm1(epsilon0) ** 2 * exp(epsilon0) * sqrt(m) * log(1 / delta)
    require(n >= least, "enough clients", "n", n, f"at least (e^ε0−1)² e^ε0 √m ln(1/δ) = {least:.6g}")
    runs = n / m
    run = _fixed_window(m / n, m, epsilon0, delta / (2 * runs)).value
    composed = runs * run * expm1(run) / (exp(run) + 1) + run * sqrt(2 * runs * log(2 / delta))
    terms = {"one_run": run, "runs": runs, "composed": composed}
    return Result(exp(1.5 * epsilon0) / sqrt(n), terms, ("polylogarithms in 1/δ dropped; `composed` keeps them",))


def _averaged(n, m, epsilon0, delta, delta2) -> Result:
    spread = sqrt(1 / n + 1 / m) + sqrt(log(1 / delta2) / n)
    return _amplified(exp(2 * epsilon0) * expm1(epsilon0) * spread, 1.0, delta).with_terms(epsilon1=spread)


@amplification("checkins-4.1", "Theorem 4.1")
def averaged(*, n, m, epsilon0, delta, delta2):
    """Averaging all checked-in clients of a slot still amplifies a pure randomiser.

    Central ε of A_avg at δ + δ2; every client checks in (p_j = 1).
    """
    return _averaged(n, m, epsilon0, delta, delta2).with_terms(delta_prime=delta + delta2)


@theorem("checkins-4.1-short", "Theorem 4.1, in particular", "rate", symbols=UP_TO_1)
def averaged_short(*, n, m, epsilon0, delta, delta2, reading="right"):
    """For ε0 ≤ 1 averaging gives ε of order ε0/√m.

    That does not follow from the full form when m > n: there 1/√n leads ε1. What follows is ε0·ε1.
    """
    full = _averaged(n, m, epsilon0, delta, delta2)
    value = epsilon0 / sqrt(m) if reading == "printed" else epsilon0 * full.terms["epsilon1"]
    return Result(value, {"full_form": full.value, "full_over_short": full.value / value}, ("√ln(1/δ) dropped",))


@amplification("checkins-4.1-approximate", "Theorem 4.1, furthermore", epsilon0=0.02)
def averaged_approximate(*, n, m, epsilon0, delta, delta2, delta0, delta1):
    """Averaging amplifies an (ε0, δ0)-randomiser, at the price of 8ε0 for ε0."""
    pure = _averaged(n, m, 8 * epsilon0, delta, delta2)
    return _approximate(pure, epsilon0, delta0, delta1, delta + delta2, m)


@amplification("checkins-4.3", "Theorem 4.3")
def sliding_window(*, m, epsilon0, delta):
    """Check-ins into a sliding window of m slots amplify as a fixed one with p0 = 1."""
    return _fixed_window(1.0, m, epsilon0, delta)


@amplification("checkins-4.3-short", "Theorem 4.3, in particular", symbols=SHORT)
def sliding_window_short(*, m, epsilon0, delta):
    """For ε0 < 1 and δ < 1/100 the sliding window gives ε ≤ 7 ε0 √(ln(1/δ)/m)."""
    return fixed_window_short(p0=1.0, m=m, epsilon0=epsilon0, delta=delta)


@amplification("checkins-4.3-approximate", "Theorem 4.3, furthermore", epsilon0=0.05)
def sliding_window_approximate(*, m, epsilon0, delta, delta0, delta1):
    """The sliding window amplifies an (ε0, δ0)-randomiser, at the price of 8ε0 for ε0."""
    return _approximate(_fixed_window(1.0, m, 8 * epsilon0, delta), epsilon0, delta0, delta1, delta, m)


def _shuffled(n, epsilon0, delta) -> Result:
    return _amplified(exp(1.5 * epsilon0) * expm1(epsilon0), 1 / n, delta)


def _noted(result: Result, epsilon0) -> Result:
    notes = () if result.value < epsilon0 else ("no amplification: the bound is above ε0",)
    return Result(result.value, result.terms, notes)


@amplification("checkins-5.1", "Theorem 5.1")
def shuffled(*, n, epsilon0, delta):
    """Shuffling n records before adaptive ε0-randomisers amplifies their privacy."""
    return _noted(_shuffled(n, epsilon0, delta), epsilon0)


@amplification("checkins-5.1-approximate", "Theorem 5.1, furthermore", epsilon0=0.02)
def shuffled_approximate(*, n, epsilon0, delta, delta0, delta1, reading="right"):
    """Shuffling amplifies (ε0, δ0)-randomisers, at the price of 8ε0 for ε0."""
    exponent = 5.0 if reading == "right" else delta
    return _approximate(_shuffled(n, 8 * epsilon0, delta), epsilon0, delta0, delta1, delta, n, exponent)


@amplification("checkins-5-earlier", "Section 5, the earlier bound [19, Theorem 7]")
def shuffled_earlier(*, n, epsilon0, delta):
    """The earlier bound for shuffling n records before adaptive ε0-randomisers.

    Dotted lines of Figure 2: advanced composition of n swaps.
    """
    swap = 2 * exp(2 * epsilon0) * expm1(epsilon0) / n
    return _noted(total(quadratic=n * swap * expm1(swap), root=swap * sqrt(2 * n * log(1 / delta))), epsilon0)


@theorem("checkins-table-1", "Table 1", "rate", symbols=ABOVE_1)
def table_1(*, n, epsilon0):
    """Order of the central ε of one epoch under each source of amplification.

    A term a row of the table; the value is the row of random check-ins. The table replaces e^ε0−1 by e^ε0, which is
    what ε0 > 1 allows; its caption says (e^ε0−1) ≈ ε0, which would give ε0 e^(2ε0), ε0 e^(1.5ε0), ε0 e^(0.5ε0) for the
    last three rows.
    """
    powers = {"subsampling": 1, "shuffling_earlier": 3, "shuffling": 2.5, "random_checkins": 1.5}
    rows = {"none": epsilon0} | {name: exp(power * epsilon0) / sqrt(n) for name, power in powers.items()}
    return Result(rows["random_checkins"], rows, ("polylogarithms in n and 1/δ dropped",))


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
    require_at_most("a window is no longer than the run", n, "n", m=m)
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
    return total("logarithms dropped", noise=width * size / sqrt(n), smooth=beta * width**2 / m).with_terms(step=step)
