"""Lower bounds of the convex paper (Theorems 3.1, E.3–E.5), known rates, and its example without compositionality.

All are rates with constant 1; logarithms are dropped as the paper drops them. The hard instance for convex losses is
the linear loss on {±D/√d}^d (`problems.LinearOnBall`), for strongly convex ones the mean squared distance to such
points.
"""

from math import log, sqrt

from silodp.theory.registry import Reading, Result, exp, positive, require, theorem

LOST_LOGS = ("logarithms in δ, n and N dropped",)


def _check_local(n: int, N: int, epsilon: float, delta: float) -> None:
    """Assumptions of Theorems 3.1 and E.4 on ε, δ and N, with δ standing for its smallest value over rounds."""
    require(epsilon <= sqrt(N), "privacy of the local model", "epsilon", epsilon, f"at most √N = {sqrt(N):.6g}")
    require(delta < 1 / (n * N) ** 2, "δ = o(1/(nN)²)", "delta", delta, f"below 1/(nN)² = {(n * N) ** -2.0:.6g}")
    least = 16 * log(2 / (delta * n))
    require(least <= N, "enough silos", "N", N, f"at least 16 ln(2/(nδ)) = {least:.6g}")


def _check_central(n: int, N: int, delta: float) -> None:
    require(delta < 1 / (n * N), "δ = o(1/(nN))", "delta", delta, f"below 1/(nN) = {1 / (n * N):.6g}")


def _check_strong(L: float, mu: float, D: float) -> None:
    require(mu * D <= L, "a strongly convex L-Lipschitz loss on the ball exists", "mu", mu, f"at most L/D = {L / D:g}")


@theorem("convex-3.1", "Theorem 3.1, eq. (12)",
         "No compositional ISRL-DP algorithm beats LD(1/√(nN) + min{1, √d/(εn√N)}) on convex losses, M = N.", "lower",
         constant="hidden", example={"N": 1000, "n": 100, "delta": 1e-12})  # fmt: skip
def local_lower(*, n: int, d: int, N: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """LD(1/√(nN) + min{1, √d/(εn√N)}) for the population risk (convex paper, Theorem 3.1, eq. (12)).

    Assumes ε ≤ √N, δ far below 1/(nN)², N ≥ 16 ln(2/(nδ)), and rounds of ε_r ≤ 1/n each.
    """
    _check_local(n, N, epsilon, delta)
    terms = {"statistical": L * D / sqrt(n * N), "private": L * D * min(1.0, sqrt(d / N) / (epsilon * n))}
    return Result(sum(terms.values()), terms, LOST_LOGS)


@theorem("convex-3.1-strong", "Theorem 3.1, eq. (13)",
         "No compositional ISRL-DP algorithm beats L²/(μnN) + LD min{1, d/(ε²n²N)}, strongly convex, M = N.", "lower",
         constant="hidden", example={"N": 1000, "n": 100, "delta": 1e-12})  # fmt: skip
def local_lower_strong(*, n: int, d: int, N: int, L: float, D: float, mu: float, epsilon: float,
                       delta: float) -> Result:  # fmt: skip
    """L²/(μnN) + LD min{1, d/(ε²n²N)} for the population risk (convex paper, Theorem 3.1, eq. (13)). Assumes μD ≤ L.

    The instance behind it has L = μD, so for larger L the first term is short of a proof: beyond nN < L/(2μD) it even
    exceeds 2LD, which no parameter of the ball can miss the optimum by.
    """
    _check_local(n, N, epsilon, delta)
    _check_strong(L, mu, D)
    terms = {"statistical": L**2 / (mu * n * N), "private": L * D * min(1.0, d / (epsilon**2 * n**2 * N))}
    return Result(sum(terms.values()), terms, LOST_LOGS)


@theorem("convex-E.3", "Theorem E.3, part 1", "Central DP, convex: LD(1/√(nN) + min{1, √d/(εnN)}).", "lower",
         constant="hidden", example={"delta": 1e-7})  # fmt: skip
def central_lower(*, n: int, d: int, N: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """LD(1/√(nN) + min{1, √d/(εnN)}), population risk under central DP (convex paper, Theorem E.3, part 1)."""
    _check_central(n, N, delta)
    terms = {"statistical": L * D / sqrt(n * N), "private": L * D * min(1.0, sqrt(d) / (epsilon * n * N))}
    return Result(sum(terms.values()), terms, LOST_LOGS)


@theorem("convex-E.3-strong", "Theorem E.3, part 2", "Central DP, strongly convex: L²/(μnN) + LD min{1, d/(εnN)²}.",
         "lower", constant="hidden", example={"delta": 1e-7})  # fmt: skip
def central_lower_strong(*, n: int, d: int, N: int, L: float, D: float, mu: float, epsilon: float,
                         delta: float) -> Result:  # fmt: skip
    """L²/(μnN) + LD min{1, d/(ε²n²N²)}, population risk under central DP (convex paper, Theorem E.3, part 2)."""
    _check_central(n, N, delta)
    _check_strong(L, mu, D)
    terms = {"statistical": L**2 / (mu * n * N), "private": L * D * min(1.0, d / (epsilon * n * N) ** 2)}
    return Result(sum(terms.values()), terms, LOST_LOGS)


@theorem("convex-E.4", "Theorem E.4, part 1", "ISRL-DP ERM, convex, M = N: LD min{1, √d/(εn√N)}.", "lower",
         constant="hidden", example={"N": 1000, "n": 100, "delta": 1e-12})  # fmt: skip
def local_erm_lower(*, n: int, d: int, N: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """LD min{1, √d/(εn√N)} for the empirical risk of symmetric algorithms (convex paper, Theorem E.4, part 1)."""
    _check_local(n, N, epsilon, delta)
    return Result(L * D * min(1.0, sqrt(d / N) / (epsilon * n)), notes=LOST_LOGS)


@theorem("convex-E.4-strong", "Theorem E.4, part 2", "ISRL-DP ERM, strongly convex, M = N: LD min{1, d/(ε²n²N)}.",
         "lower", constant="hidden", example={"N": 1000, "n": 100, "delta": 1e-12})  # fmt: skip
def local_erm_lower_strong(*, n: int, d: int, N: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """LD min{1, d/(ε²n²N)} for the empirical risk of symmetric algorithms (convex paper, Theorem E.4, part 2)."""
    _check_local(n, N, epsilon, delta)
    return Result(L * D * min(1.0, d / (epsilon**2 * n**2 * N)), notes=LOST_LOGS)


@theorem("convex-E.5", "Theorem E.5, part 1", "Central DP ERM, convex: LD min{1, √d/(εnN)}.", "lower",
         constant="hidden", example={"delta": 1e-7})  # fmt: skip
def central_erm_lower(*, n: int, d: int, N: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """LD min{1, √d/(εnN)} for the empirical risk under central DP (convex paper, Theorem E.5, part 1)."""
    _check_central(n, N, delta)
    return Result(L * D * min(1.0, sqrt(d) / (epsilon * n * N)), notes=LOST_LOGS)


@theorem("convex-E.5-strong", "Theorem E.5, part 2", "Central DP ERM, strongly convex: LD min{1, d/(εnN)²}.", "lower",
         constant="hidden", example={"delta": 1e-7})  # fmt: skip
def central_erm_lower_strong(*, n: int, d: int, N: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """LD min{1, d/(ε²n²N²)} for the empirical risk under central DP (convex paper, Theorem E.5, part 2)."""
    _check_central(n, N, delta)
    return Result(L * D * min(1.0, d / (epsilon * n * N) ** 2), notes=LOST_LOGS)


@theorem("convex-nonprivate", "Section 2, footnote 5", "Optimal non-private rate φD/√(nN), φ ≤ 2L.", "rate",
         constant="hidden")  # fmt: skip
def nonprivate_rate(*, n: int, N: int, phi: float, D: float) -> Result:
    """φD/√(nN), the optimal non-private rate for convex losses (convex paper, footnote 5)."""
    return Result(phi * D / sqrt(n * N))


@theorem("convex-nonprivate-strong", "Section 2, footnote 5", "Optimal non-private rate φ²/(μnN), φ ≤ 2L.", "rate",
         constant="hidden")  # fmt: skip
def nonprivate_rate_strong(*, n: int, N: int, phi: float, mu: float) -> Result:
    """φ²/(μnN), the optimal non-private rate for strongly convex losses (convex paper, footnote 5)."""
    return Result(phi**2 / (mu * n * N))


@theorem("convex-models", "Section 5", "Private terms by trust: local per record, ISRL and central DP.", "rate",
         constant="hidden")  # fmt: skip
def trust_models(*, n: int, d: int, N: int, epsilon: float) -> Result:
    """√d/(εn√N), the ISRL-DP rate over LD; terms for central DP, √d/(εnN), and per-record local DP, √d/(ε√(nN)).

    Convex paper, Section 5: ISRL-DP stands √N above central DP and √n below local DP.
    """
    terms = {"central": sqrt(d) / (epsilon * n * N), "isrl": sqrt(d / N) / (epsilon * n)}
    return Result(terms["isrl"], terms | {"local": sqrt(d / (n * N)) / epsilon})


@theorem("convex-E.1-example", "Appendix E.1, Algorithm 3",
         "An ε0-DP algorithm of d rounds need not be C-compositional: √Σε_r² can exceed Cε0.", "lemma",
         symbols={"epsilon0": positive("ε of the whole transcript", "nat", 1.0),
                  "C": positive("compositionality constant to be beaten", "", 3.0)},
         example={"d": 18})  # fmt: skip
def not_compositional(*, d: int, epsilon0: float, C: float, reading: Reading = "right") -> Result:
    """√Σ_r ε_r² of randomised response over d rounds (convex paper, Appendix E.1), each with its smallest ε_r.

    Record e_r answers in round r by d-ary randomised response. As printed all other records send 0 in that round, so
    the number of the only non-zero message gives the record away: ε of the transcript (term `transcript`) is ∞. Here
    they send a uniform element instead. Two transcripts then differ in two rounds, by ratios that multiply to at most
    e^ε0, while a round costs ε_r = max{ln(d e^ε0/(e^ε0+d−1)), ln((e^ε0+d−1)/d)}. Printed: ε_r = ε0 and d = 2C², so that
    √Σ = √2 Cε0.
    """
    require(d >= 2, "randomised response", "d", d, "an integer of at least 2")
    if reading == "printed":
        return Result(sqrt(d) * epsilon0, {"round": epsilon0, "transcript": float("inf"), "bound": C * epsilon0})
    raised, lowered = log(d / (1 + (d - 1) * exp(-epsilon0))), log((exp(epsilon0) + d - 1) / d)
    one = max(raised, lowered)
    terms = {"round": one, "transcript": raised + lowered, "bound": C * epsilon0}
    return Result(sqrt(d) * one, terms)
