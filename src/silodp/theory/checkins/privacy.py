"""Privacy of random check-ins and of shuffling (check-ins paper, Theorems 3.2, 4.1, 4.3, 5.1, Corollary 3.3, Table 1).

n clients with one record each; m slots; p0 the probability that a client checks in at all; ε0, δ0 the local randomiser.
Every function gives the central ε at a failure probability; logarithms are natural. In the forms for an
(ε0, δ0)-randomiser the cap on δ0 has e^(−5ε0) inside, as Theorems 4.1 and 4.3 print it, and the failure probability
carries δ1; Theorem 3.2 prints e^(−δε0) and δ0 there (`reading="printed"`), 5.1 the first of the two.
"""

from math import log, log1p, sqrt

from silodp.theory.registry import Reading, Result, Symbol, at_least, exp, expm1, fraction, positive, require, theorem

EPSILON0 = positive("privacy loss ε0 of the local randomiser", "nat", 0.5)
CHECKINS = {
    "n": at_least(1, "clients, one record each", "clients", 10000, integer=True),
    "m": at_least(1, "time slots", "slots", 1000, integer=True),
    "p0": Symbol("probability that a client checks in", "probability", 0.1, low=0.0, high=1.0, low_open=True),
    "epsilon0": EPSILON0,
    "delta0": fraction("failure probability δ0 of the local randomiser", "probability", 1e-14),
    "delta1": fraction("failure probability δ1 of one slot's replacement by a pure randomiser", "probability", 1e-9),
    "delta2": fraction("probability δ2 of an uneven load", "probability", 1e-7),
}
SMALL = "the short form's assumption"


def _amplified(gap: float, variance: float, delta: float) -> tuple[float, float]:
    """The quadratic and the square-root part of ε for a composition with Σ ε_i² ≤ (gap)²·variance."""
    return gap**2 * variance / 2, gap * sqrt(2 * variance * log(1 / delta))


def delta0_cap(epsilon0: float, delta1: float, exponent: float = 5.0) -> float:
    """Largest δ0 that the (ε0, δ0) forms allow: (1−e^−ε0)δ1 / (4e^ε0 (2 + ln(2/δ1)/ln(1/(1−e^(−exponent·ε0)))))."""
    # ln(1/(1−x)) = −log1p(−x) keeps its digits when e^(−5ε0) is tiny.
    depth = log(2 / delta1) / -log1p(-exp(-exponent * epsilon0))
    return -expm1(-epsilon0) * delta1 / (4 * exp(epsilon0) * (2 + depth))


def _approximate(pure: Result, epsilon0: float, delta0: float, delta1: float, failures: tuple[float, float, float],
                 reading: Reading) -> Result:  # fmt: skip
    """Close an (ε0, δ0) form: check δ0 against its cap, and add up the failure probability.

    Args:
        pure: the pure form evaluated at 8 ε0.
        failures: central δ, number of replaced slots, exponent inside the printed cap.
    """
    delta, count, printed_exponent = failures
    cap = delta0_cap(epsilon0, delta1, 5.0 if reading == "right" else printed_exponent)
    require(delta0 <= cap, "cap on the randomiser's δ0", "delta0", delta0, f"at most {cap:.6g}")
    terms = {**pure.terms, "delta0_cap": cap, "delta_prime": delta + count * (exp(pure.value) + 1) * delta1}
    notes = () if terms["delta_prime"] < 1 else ("the failure probability exceeds 1: the statement is vacuous here",)
    return Result(pure.value, terms, (*pure.notes, *notes))


def _fixed_window(p0: float, m: float, epsilon0: float, delta: float) -> Result:
    quadratic, root = _amplified(p0 * expm1(epsilon0), exp(epsilon0) / m, delta)
    return Result(quadratic + root, {"quadratic": quadratic, "root": root})


@theorem("checkins-3.2", "Theorem 3.2", "Random check-ins into a fixed window of m slots amplify a pure ε0-randomiser.",
         "amplification", symbols=CHECKINS)  # fmt: skip
def fixed_window(*, p0: float, m: int, epsilon0: float, delta: float) -> Result:
    """Central ε of A_fix (check-ins paper, Theorem 3.2): p0(e^ε0−1)√(2e^ε0 ln(1/δ)/m) + p0² e^ε0 (e^ε0−1)²/(2m).

    Holds for every ε0 > 0, 0 < p0 ≤ 1 and δ in (0, 1); the number of clients does not enter.
    """
    return _fixed_window(p0, m, epsilon0, delta)


@theorem("checkins-3.2-short", "Theorem 3.2, in particular",
         "For ε0 < 1 and δ < 1/100 random check-ins give ε ≤ 7 p0 ε0 √(ln(1/δ)/m).", "amplification",
         symbols={**CHECKINS, "epsilon0": Symbol("privacy loss ε0", "nat", 0.5, 0.0, 1.0, True, True),
                  "delta": Symbol("failure probability δ", "probability", 1e-6, 0.0, 0.01, True, True)})  # fmt: skip
def fixed_window_short(*, p0: float, m: int, epsilon0: float, delta: float) -> Result:
    """The short form 7 p0 ε0 √(ln(1/δ)/m) of Theorem 3.2 (check-ins paper), and how much of the 7 the full form uses.

    It follows from the full form on its whole domain: the factor that is needed is at most
    (e−1)√(2e) + e(e−1)²/(2√ln 100) = 5.88, reached at p0 = m = 1, ε0 → 1, δ → 1/100.
    """
    unit = p0 * epsilon0 * sqrt(log(1 / delta) / m)
    needed = _fixed_window(p0, m, epsilon0, delta).value / unit
    return Result(7 * unit, {"needed_factor": needed})


@theorem("checkins-3.2-approximate", "Theorem 3.2, furthermore",
         "Random check-ins into a fixed window amplify an (ε0, δ0)-randomiser, at the price of 8ε0 for ε0.",
         "amplification", symbols=CHECKINS, example={"epsilon0": 0.05})  # fmt: skip
def fixed_window_approximate(*, p0: float, m: int, epsilon0: float, delta: float, delta0: float, delta1: float,
                             reading: Reading = "right") -> Result:  # fmt: skip
    """ε' of A_fix with an (ε0, δ0)-randomiser (check-ins paper, Theorem 3.2); terms hold δ' and the cap on δ0.

    δ' = δ + m(e^ε'+1)δ1. The printed form has δ0 for δ1 in δ' and e^(−δε0) for e^(−5ε0) in the cap: δ0 is far below
    δ1, so the printed δ' is too small by m(e^ε'+1)(δ1−δ0).
    """
    pure = _fixed_window(p0, m, 8 * epsilon0, delta)
    result = _approximate(pure, epsilon0, delta0, delta1, (delta, m, delta), reading)
    if reading == "right":
        return result
    printed = delta + m * (exp(result.value) + 1) * delta0
    return Result(result.value, {**result.terms, "delta_prime": printed}, result.notes)


@theorem("checkins-3.3", "Corollary 3.3",
         "n/m repetitions of A_fix with p0 = m/n make n updates at central ε of order e^(1.5ε0)/√n.",
         "rate", constant="hidden", symbols=CHECKINS, example={"epsilon0": 0.5})  # fmt: skip
def repeated_window(*, n: int, m: int, epsilon0: float, delta: float) -> Result:
    """Rate e^(1.5ε0)/√n of repeated check-ins (check-ins paper, Corollary 3.3), polylogarithms dropped.

    The term `composed` is an explicit ε: Theorem 3.2 at δ m/(2n) a run, and advanced composition of the n/m runs with
    slack δ/2. Assumes m ≤ n, ε0 ≤ (2/3) ln(n/(8√m)), and n ≥ (e^ε0−1)² e^ε0 √m ln(1/δ), with δ for the corollary's β.
    """
    require(m <= n, "a window is no longer than the population", "m", m, f"at most n = {n}")
    limit = 2 * log(n / (8 * sqrt(m))) / 3
    require(epsilon0 <= limit, "limit on the randomiser", "epsilon0", epsilon0, f"at most 2ln(n/(8√m))/3 = {limit:.6g}")
    least = expm1(epsilon0) ** 2 * exp(epsilon0) * sqrt(m) * log(1 / delta)
    require(n >= least, "enough clients", "n", n, f"at least (e^ε0−1)² e^ε0 √m ln(1/δ) = {least:.6g}")
    runs = n / m
    one = _fixed_window(m / n, m, epsilon0, delta / (2 * runs)).value
    composed = runs * one * expm1(one) / (exp(one) + 1) + one * sqrt(2 * runs * log(2 / delta))
    terms = {"one_run": one, "runs": runs, "composed": composed}
    return Result(exp(1.5 * epsilon0) / sqrt(n), terms, ("polylogarithms in 1/δ dropped; `composed` keeps them",))


def _averaged(n: int, m: int, epsilon0: float, delta: float, delta2: float) -> Result:
    spread = sqrt(1 / n + 1 / m) + sqrt(log(1 / delta2) / n)
    quadratic, root = _amplified(exp(2 * epsilon0) * expm1(epsilon0) * spread, 1.0, delta)
    return Result(quadratic + root, {"quadratic": quadratic, "root": root, "epsilon1": spread})


@theorem("checkins-4.1", "Theorem 4.1", "Averaging all checked-in clients of a slot still amplifies a pure randomiser.",
         "amplification", symbols=CHECKINS)  # fmt: skip
def averaged(*, n: int, m: int, epsilon0: float, delta: float, delta2: float) -> Result:
    """Central ε of A_avg at δ + δ2 (check-ins paper, Theorem 4.1).

    ε = e^(4ε0)(e^ε0−1)²ε1²/2 + e^(2ε0)(e^ε0−1)ε1√(2ln(1/δ)), with ε1 = √(1/n+1/m) + √(ln(1/δ2)/n). Every client checks
    in (p_j = 1).
    """
    result = _averaged(n, m, epsilon0, delta, delta2)
    return Result(result.value, {**result.terms, "delta_prime": delta + delta2})


@theorem("checkins-4.1-short", "Theorem 4.1, in particular", "For ε0 ≤ 1 averaging gives ε of order ε0/√m.", "rate",
         constant="hidden",
         symbols={**CHECKINS, "epsilon0": Symbol("privacy loss ε0", "nat", 0.5, 0.0, 1.0, True)})  # fmt: skip
def averaged_short(*, n: int, m: int, epsilon0: float, delta: float, delta2: float,
                   reading: Reading = "right") -> Result:  # fmt: skip
    """The short form of Theorem 4.1 (check-ins paper).

    Printed: ε0/√m. It does not follow from the full form when m > n: there 1/√n leads ε1. What follows is ε0·ε1.
    """
    full = _averaged(n, m, epsilon0, delta, delta2)
    value = epsilon0 / sqrt(m) if reading == "printed" else epsilon0 * full.terms["epsilon1"]
    return Result(value, {"full_form": full.value, "full_over_short": full.value / value},
                  ("√ln(1/δ) dropped",))  # fmt: skip


@theorem("checkins-4.1-approximate", "Theorem 4.1, furthermore",
         "Averaging amplifies an (ε0, δ0)-randomiser, at the price of 8ε0 for ε0.", "amplification", symbols=CHECKINS,
         example={"epsilon0": 0.02})  # fmt: skip
def averaged_approximate(*, n: int, m: int, epsilon0: float, delta: float, delta2: float, delta0: float,
                         delta1: float) -> Result:  # fmt: skip
    """ε' of A_avg with an (ε0, δ0)-randomiser (check-ins paper, Theorem 4.1); δ' = δ + δ2 + m(e^ε'+1)δ1."""
    pure = _averaged(n, m, 8 * epsilon0, delta, delta2)
    return _approximate(pure, epsilon0, delta0, delta1, (delta + delta2, m, 5.0), "right")


@theorem("checkins-4.3", "Theorem 4.3",
         "Check-ins into a sliding window of m slots amplify as a fixed one with p0 = 1.",
         "amplification", symbols=CHECKINS)  # fmt: skip
def sliding_window(*, m: int, epsilon0: float, delta: float) -> Result:
    """Central ε of A_sldw (check-ins paper, Theorem 4.3): e^ε0(e^ε0−1)²/(2m) + (e^ε0−1)√(2e^ε0 ln(1/δ)/m)."""
    return _fixed_window(1.0, m, epsilon0, delta)


@theorem("checkins-4.3-short", "Theorem 4.3, in particular",
         "For ε0 < 1 and δ < 1/100 the sliding window gives ε ≤ 7 ε0 √(ln(1/δ)/m).", "amplification",
         symbols={**CHECKINS, "epsilon0": Symbol("privacy loss ε0", "nat", 0.5, 0.0, 1.0, True, True),
                  "delta": Symbol("failure probability δ", "probability", 1e-6, 0.0, 0.01, True, True)})  # fmt: skip
def sliding_window_short(*, m: int, epsilon0: float, delta: float) -> Result:
    """The short form of Theorem 4.3 (check-ins paper); the term says how much of the factor 7 the full form needs."""
    unit = epsilon0 * sqrt(log(1 / delta) / m)
    return Result(7 * unit, {"needed_factor": _fixed_window(1.0, m, epsilon0, delta).value / unit})


@theorem("checkins-4.3-approximate", "Theorem 4.3, furthermore",
         "The sliding window amplifies an (ε0, δ0)-randomiser, at the price of 8ε0 for ε0.", "amplification",
         symbols=CHECKINS, example={"epsilon0": 0.05})  # fmt: skip
def sliding_window_approximate(*, m: int, epsilon0: float, delta: float, delta0: float, delta1: float) -> Result:
    """ε' of A_sldw with an (ε0, δ0)-randomiser (check-ins paper, Theorem 4.3); δ' = δ + m(e^ε'+1)δ1."""
    pure = _fixed_window(1.0, m, 8 * epsilon0, delta)
    return _approximate(pure, epsilon0, delta0, delta1, (delta, m, 5.0), "right")


def _shuffled(n: int, epsilon0: float, delta: float) -> Result:
    quadratic, root = _amplified(exp(1.5 * epsilon0) * expm1(epsilon0), 1 / n, delta)
    return Result(quadratic + root, {"quadratic": quadratic, "root": root})


@theorem("checkins-5.1", "Theorem 5.1", "Shuffling n records before adaptive ε0-randomisers amplifies their privacy.",
         "amplification", symbols=CHECKINS)  # fmt: skip
def shuffled(*, n: int, epsilon0: float, delta: float) -> Result:
    """Central ε of the shuffled sequence (check-ins paper, Theorem 5.1).

    ε = e^(3ε0)(e^ε0−1)²/(2n) + e^(3ε0/2)(e^ε0−1)√(2ln(1/δ)/n). Above ε0 it says less than no amplification
    at all: the note marks it.
    """
    result = _shuffled(n, epsilon0, delta)
    notes = () if result.value < epsilon0 else ("no amplification: the bound is above ε0",)
    return Result(result.value, result.terms, notes)


@theorem("checkins-5.1-approximate", "Theorem 5.1, furthermore",
         "Shuffling amplifies (ε0, δ0)-randomisers, at the price of 8ε0 for ε0.", "amplification", symbols=CHECKINS,
         example={"epsilon0": 0.02})  # fmt: skip
def shuffled_approximate(*, n: int, epsilon0: float, delta: float, delta0: float, delta1: float,
                         reading: Reading = "right") -> Result:  # fmt: skip
    """ε' of shuffling with (ε0, δ0)-randomisers (check-ins paper, Theorem 5.1); δ' = δ + n(e^ε'+1)δ1.

    Printed: e^(−δε0) for e^(−5ε0) in the cap on δ0.
    """
    pure = _shuffled(n, 8 * epsilon0, delta)
    return _approximate(pure, epsilon0, delta0, delta1, (delta, n, delta), reading)


@theorem("checkins-5-earlier", "Section 5, the earlier bound [19, Theorem 7]",
         "The earlier bound for shuffling n records before adaptive ε0-randomisers.", "amplification",
         symbols=CHECKINS)  # fmt: skip
def shuffled_earlier(*, n: int, epsilon0: float, delta: float) -> Result:
    """The earlier shuffling bound that the check-ins paper compares with (end of Section 5, dotted lines of Figure 2).

    Advanced composition of n swaps that cost e1 = 2e^(2ε0)(e^ε0−1)/n each: n e1 (e^e1 − 1) + e1 √(2n ln(1/δ)).
    """
    swap = 2 * exp(2 * epsilon0) * expm1(epsilon0) / n
    quadratic, root = n * swap * expm1(swap), swap * sqrt(2 * n * log(1 / delta))
    notes = () if quadratic + root < epsilon0 else ("no amplification: the bound is above ε0",)
    return Result(quadratic + root, {"quadratic": quadratic, "root": root}, notes)


@theorem("checkins-table-1", "Table 1",
         "Order of the central ε of one epoch under each source of amplification.", "rate", constant="hidden",
         symbols={**CHECKINS, "epsilon0": Symbol("privacy loss ε0", "nat", 2.0, low=1.0, low_open=True)})  # fmt: skip
def table_1(*, n: int, epsilon0: float) -> Result:
    """Table 1 (check-ins paper): a term a row; the value is the row of random check-ins. Assumes ε0 > 1.

    The table replaces e^ε0−1 by e^ε0, which is what ε0 > 1 allows; its caption says (e^ε0−1) ≈ ε0, which would give
    ε0 e^(2ε0), ε0 e^(1.5ε0), ε0 e^(0.5ε0) for the last three rows.
    """
    rows = {"none": epsilon0, "subsampling": exp(epsilon0) / sqrt(n), "shuffling_earlier": exp(3 * epsilon0) / sqrt(n)}
    rows |= {"shuffling": exp(2.5 * epsilon0) / sqrt(n), "random_checkins": exp(1.5 * epsilon0) / sqrt(n)}
    return Result(rows["random_checkins"], rows, ("polylogarithms in n and 1/δ dropped",))
