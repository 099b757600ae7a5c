"""Lower bounds of the convex paper (Theorems 3.1, E.3–E.5), known rates, and its example without compositionality.

All are rates with constant 1; logarithms are dropped as the paper drops them. The hard instance for convex losses is
the linear loss on {±D/√d}^d (`problems.LinearOnBall`), for strongly convex ones the mean squared distance to such
points. E.4 and E.5 are about the empirical risk of symmetric algorithms.
"""

from functools import partial
from math import log, sqrt

from silodp.theory.theorem import Result, exp, positive, require, require_at_most, theorem, total

LOST_LOGS = "logarithms in δ, n and N dropped"
EXAMPLE = {
    "epsilon0": positive("ε of the whole transcript", "nat", 1.0),
    "C": positive("compositionality constant to be beaten", "", 3.0),
}

local = partial(theorem, kind="lower", N=1000, n=100, delta=1e-12)
central = partial(theorem, kind="lower", delta=1e-7)


def _check_local(n, N, epsilon, delta) -> None:
    """Assumptions of Theorems 3.1 and E.4 on ε, δ and N, with δ standing for its smallest value over rounds."""
    require_at_most("privacy of the local model", sqrt(N), "√N", epsilon=epsilon)
    require(delta < 1 / (n * N) ** 2, "δ = o(1/(nN)²)", "delta", delta, f"below 1/(nN)² = {(n * N) ** -2.0:.6g}")
    least = 16 * log(2 / (delta * n))
    require(least <= N, "enough silos", "N", N, f"at least 16 ln(2/(nδ)) = {least:.6g}")


def _check_central(n, N, delta) -> None:
    require(delta < 1 / (n * N), "δ = o(1/(nN))", "delta", delta, f"below 1/(nN) = {1 / (n * N):.6g}")


def _check_strong(L, mu, D) -> None:
    require_at_most("a strongly convex L-Lipschitz loss on the ball exists", L / D, "L/D", mu=mu)


@local("convex-3.1", "Theorem 3.1, eq. (12)")
def local_lower(*, n, d, N, L, D, epsilon, delta):
    """No compositional ISRL-DP algorithm beats LD(1/√(nN) + min{1, √d/(εn√N)}) on convex losses, M = N.

    Assumes rounds of ε_r ≤ 1/n each.
    """
    _check_local(n, N, epsilon, delta)
    return total(LOST_LOGS, statistical=L * D / sqrt(n * N), private=L * D * min(1.0, sqrt(d / N) / (epsilon * n)))


@local("convex-3.1-strong", "Theorem 3.1, eq. (13)")
def local_lower_strong(*, n, d, N, L, D, mu, epsilon, delta):
    """No compositional ISRL-DP algorithm beats L²/(μnN) + LD min{1, d/(ε²n²N)}, strongly convex, M = N.

    The instance behind it has L = μD, so for larger L the first term is short of a proof: beyond nN < L/(2μD) it even
    exceeds 2LD, which no parameter of the ball can miss the optimum by.
    """
    _check_local(n, N, epsilon, delta)
    _check_strong(L, mu, D)
    return total(LOST_LOGS, statistical=L**2 / (mu * n * N), private=L * D * min(1.0, d / (epsilon**2 * n**2 * N)))


@central("convex-E.3", "Theorem E.3, part 1")
def central_lower(*, n, d, N, L, D, epsilon, delta):
    """Central DP, convex: LD(1/√(nN) + min{1, √d/(εnN)})."""
    _check_central(n, N, delta)
    return total(LOST_LOGS, statistical=L * D / sqrt(n * N), private=L * D * min(1.0, sqrt(d) / (epsilon * n * N)))


@central("convex-E.3-strong", "Theorem E.3, part 2")
def central_lower_strong(*, n, d, N, L, D, mu, epsilon, delta):
    """Central DP, strongly convex: L²/(μnN) + LD min{1, d/(εnN)²}."""
    _check_central(n, N, delta)
    _check_strong(L, mu, D)
    return total(LOST_LOGS, statistical=L**2 / (mu * n * N), private=L * D * min(1.0, d / (epsilon * n * N) ** 2))


@local("convex-E.4", "Theorem E.4, part 1")
def local_erm_lower(*, n, d, N, L, D, epsilon, delta):
    """ISRL-DP ERM, convex, M = N: LD min{1, √d/(εn√N)}."""
    _check_local(n, N, epsilon, delta)
    return Result(L * D * min(1.0, sqrt(d / N) / (epsilon * n)), notes=(LOST_LOGS,))


@local("convex-E.4-strong", "Theorem E.4, part 2")
def local_erm_lower_strong(*, n, d, N, L, D, epsilon, delta):
    """ISRL-DP ERM, strongly convex, M = N: LD min{1, d/(ε²n²N)}."""
    _check_local(n, N, epsilon, delta)
    return Result(L * D * min(1.0, d / (epsilon**2 * n**2 * N)), notes=(LOST_LOGS,))


@central("convex-E.5", "Theorem E.5, part 1")
def central_erm_lower(*, n, d, N, L, D, epsilon, delta):
    """Central DP ERM, convex: LD min{1, √d/(εnN)}."""
    _check_central(n, N, delta)
    return Result(L * D * min(1.0, sqrt(d) / (epsilon * n * N)), notes=(LOST_LOGS,))


@central("convex-E.5-strong", "Theorem E.5, part 2")
def central_erm_lower_strong(*, n, d, N, L, D, epsilon, delta):
    """Central DP ERM, strongly convex: LD min{1, d/(εnN)²}."""
    _check_central(n, N, delta)
    return Result(L * D * min(1.0, d / (epsilon * n * N) ** 2), notes=(LOST_LOGS,))


@theorem("convex-nonprivate", "Section 2, footnote 5", "rate")
def nonprivate_rate(*, n, N, phi, D):
    """Optimal non-private rate φD/√(nN), φ ≤ 2L."""
    return Result(phi * D / sqrt(n * N))


@theorem("convex-nonprivate-strong", "Section 2, footnote 5", "rate")
def nonprivate_rate_strong(*, n, N, phi, mu):
    """Optimal non-private rate φ²/(μnN), φ ≤ 2L."""
    return Result(phi**2 / (mu * n * N))


@theorem("convex-models", "Section 5", "rate")
def trust_models(*, n, d, N, epsilon):
    """Private terms by trust: local per record, ISRL and central DP.

    All over LD; the value is ISRL-DP's, which stands √N above central DP and √n below local DP.
    """
    isrl = sqrt(d / N) / (epsilon * n)
    return Result(isrl, {"central": sqrt(d) / (epsilon * n * N), "isrl": isrl, "local": sqrt(d / (n * N)) / epsilon})


@theorem("convex-E.1-example", "Appendix E.1, Algorithm 3", "lemma", symbols=EXAMPLE, d=18)
def not_compositional(*, d, epsilon0, C, reading="right"):
    """An ε0-DP algorithm of d rounds need not be C-compositional: √Σε_r² can exceed Cε0.

    Record e_r answers in round r by d-ary randomised response. As printed all other records send 0 in that round, so
    the number of the only non-zero message gives the record away: ε of the transcript (term `transcript`) is ∞. Here
    they send a uniform element instead. Two transcripts then differ in two rounds, by ratios that multiply to at most
    e^ε0, while a round costs the larger of the two. Printed: ε_r = ε0 and d = 2C², so that √Σ = √2 Cε0.
    """
    require(d >= 2, "randomised response", "d", d, "an integer of at least 2")
    if reading == "printed":
        return Result(sqrt(d) * epsilon0, {"round": epsilon0, "transcript": float("inf"), "bound": C * epsilon0})
    raised, lowered = log(d / (1 + (d - 1) * exp(-epsilon0))), log((exp(epsilon0) + d - 1) / d)
    cost = max(raised, lowered)
    return Result(sqrt(d) * cost, {"round": cost, "transcript": raised + lowered, "bound": C * epsilon0})
