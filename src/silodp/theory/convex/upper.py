"""Upper bounds of the convex paper on the excess risk of its algorithms (Theorems 2.1–2.4, D.1, 4.1).

Balanced case: every silo holds n records and has the same ε, δ, L. F is the population risk, F̂ the empirical one, both
averaged over silos. `M` is 1/E[1/M_r], which is the number of silos a round when it is fixed.
`participation` and `unbalanced` give what the complete versions need when that is not so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, log, sqrt

from silodp.theory.convex.privacy import check_epsilon, log_factor
from silodp.theory.registry import AssumptionError, Reading, Result, positive, require, theorem

PRIVACY = {"privacy_term": positive("Ξ̃ = ln(2.5R/δ)ln(2/δ)/(n²ε²) or its average over silos", "1 / records²", 1e-4)}


def privacy_term(n: float, R: float, epsilon: float, delta: float) -> float:
    """Ξ = ln(2.5R/δ) ln(2/δ)/(n²ε²) of the balanced case; σ² = 256 L² R Ξ."""
    return log_factor(R, delta) / (n * epsilon) ** 2


def participation(
    sizes: Sequence[int], probabilities: Sequence[float], reading: Reading = "right"
) -> tuple[float, float]:
    """(M, M') of a random number of silos a round (convex paper, Assumption 2).

    1/M = E[1/M_r] and 1/M' = √E[1/M_r²]; the text prints E[1/M_r²], which would make M' ≥ M, against its own Remark
    D.1.

    Args:
        sizes: possible values of M_r, positive integers.
        probabilities: their probabilities, which sum to 1.
    """
    if (
        len(sizes) != len(probabilities)
        or min(sizes) < 1
        or abs(sum(probabilities) - 1) > 1e-9
        or min(probabilities) < 0
    ):
        raise AssumptionError("random participation: sizes have to be ≥ 1 and their probabilities ≥ 0 with sum 1")
    first = sum(p / m for m, p in zip(sizes, probabilities, strict=True))
    second = sum(p / m**2 for m, p in zip(sizes, probabilities, strict=True))
    return 1 / first, 1 / (sqrt(second) if reading == "right" else second)


@dataclass(frozen=True)
class Unbalanced:
    """What the complete versions of Theorems 2.1 and 2.2 take from unbalanced silos: smallest n, M̃ and Ξ̃."""

    n_min: int
    M_tilde: float
    privacy_term: float


def unbalanced(
    n: Sequence[int],
    epsilon: Sequence[float],
    delta: Sequence[float],
    R: int,
    sizes: Sequence[int],
    probabilities: Sequence[float],
) -> Unbalanced:
    """n_min, M̃ and Ξ̃ for silos of unequal size and privacy (convex paper, Appendix D.1).

    ξ_i = ln(2.5R/δ_i)ln(2/δ_i)/(n_iε_i)²; Ξ = √E[(mean of the M_r largest ξ)²]. (M', Ξ) where Ξ/M' ≤ ξ_max/M, else (M,
    ξ_max).

    Args:
        n, epsilon, delta: one value a silo.
        sizes, probabilities: distribution of the number of silos in a round.
    """
    xi = sorted((privacy_term(a, R, e, f) for a, e, f in zip(n, epsilon, delta, strict=True)), reverse=True)
    if max(sizes) > len(xi):
        raise AssumptionError(f"random participation: sizes have to be at most the number of silos, {len(xi)}")
    M, M_prime = participation(sizes, probabilities)
    square = sum(p * (sum(xi[:m]) / m) ** 2 for m, p in zip(sizes, probabilities, strict=True))
    averaged = sqrt(square)
    if averaged / M_prime <= xi[0] / M:
        return Unbalanced(min(n), M_prime, averaged)
    return Unbalanced(min(n), M, xi[0])


def _iid_risk(factor: float, L: float, D: float, M: float, n: float, noise: float) -> Result:
    scale = factor * L * D / sqrt(M)
    terms = {"statistical": scale / sqrt(n), "private": scale * sqrt(noise)}
    return Result(max(terms.values()), terms)


@theorem("convex-2.1", "Theorem 2.1 (complete version, part 1)",
         "Noisy minibatch SGD on convex smooth losses and i.i.d. silos: F(ŵ) − F* ≤ 272 LD/√M max(1/√n, √(dΞ)).",
         "upper")  # fmt: skip
def minibatch_risk(*, n: int, d: int, M: float, R: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """272 LD/√M · max{1/√n, √(d ln(2.5R/δ) ln(2/δ))/(nε)} (convex paper, Theorem 2.1, complete version, part 1).

    Holds with the schedule `theorem-2.1` when the output averages w_1 … w_R. The paper averages w_0 … w_{R−1}, and its
    Lemma D.4 leaves out the gradient at a constrained minimiser: for small β it prescribes R = 1 and returns w_0 = 0,
    whose risk is LD on a linear loss, above this bound as soon as Mn > 272² and the private term is small.
    """
    check_epsilon(epsilon, delta)
    return _iid_risk(272, L, D, M, n, d * privacy_term(n, R, epsilon, delta))


@theorem("convex-2.1-complete", "Theorem 2.1 (complete version, part 1)",
         "Theorem 2.1 for unbalanced silos: F(ŵ) − F* ≤ 272 LD/√M̃ max(1/√n_min, √(dΞ̃)).", "upper",
         symbols=PRIVACY)  # fmt: skip
def minibatch_risk_complete(*, n: int, d: int, M_tilde: float, privacy_term: float, L: float, D: float) -> Result:
    """272 LD/√M̃ · max{1/√n_min, √(dΞ̃)} (convex paper, Theorem 2.1); `unbalanced` gives n_min (here n), M̃ and Ξ̃.

    M̃ is M' or M; the text prints their roots, which its own step size and the step from (31) to the bound rule out.
    """
    return _iid_risk(272, L, D, M_tilde, n, d * privacy_term)


@theorem("convex-2.1-strong", "Theorem 2.1 (part 2), eqs (5), (16)",
         "Noisy minibatch SGD on strongly convex smooth losses: F(ŵ) − F* of order (L²/μM)(1/n + dΞ).", "upper",
         constant="hidden", example={"R": 100})  # fmt: skip
def minibatch_risk_strong(*, n: int, d: int, M: float, R: int, L: float, mu: float, epsilon: float,
                          delta: float) -> Result:  # fmt: skip
    """Rate (L²/μM)(1/n + d ln(2.5R/δ)ln(2/δ)/(n²ε²)) (convex paper, Theorem 2.1, part 2)."""
    check_epsilon(epsilon, delta)
    scale = L**2 / (mu * M)
    terms = {"statistical": scale / n, "private": scale * d * privacy_term(n, R, epsilon, delta)}
    return Result(sum(terms.values()), terms)


@theorem("convex-2.2", "Theorem 2.2 (complete version, part 1)",
         "Algorithm 1 on the Moreau envelope of a non-smooth convex loss: F(ŵ) − F* ≤ 545 LD/√M max(1/√n, √(dΞ)).",
         "upper")  # fmt: skip
def moreau_risk(*, n: int, d: int, M: float, R: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """545 LD/√M · max{1/√n, √(dΞ)} (convex paper, Theorem 2.2, complete version, part 1).

    545 is 2·272 + 1, from taking the envelope to be 2L-Lipschitz (Lemma D.9). It is L-Lipschitz, so the noise, which is
    calibrated to L, is private, and 272.5 suffices (term `with_lipschitz_L`).
    """
    check_epsilon(epsilon, delta)
    result = _iid_risk(545, L, D, M, n, d * privacy_term(n, R, epsilon, delta))
    return Result(result.value, {**result.terms, "with_lipschitz_L": result.value * 272.5 / 545})


@theorem("convex-2.2-strong", "Theorem 2.2 (part 2), eq. (7)",
         "Algorithm 1 on the envelope of a strongly convex loss: the rate of Theorem 2.1 without smoothness.", "upper",
         constant="hidden")  # fmt: skip
def moreau_risk_strong(*, n: int, d: int, M: float, R: int, L: float, mu: float, epsilon: float,
                       delta: float) -> Result:  # fmt: skip
    """Rate (L²/μM)(1/n + dΞ) (convex paper, Theorem 2.2, part 2)."""
    return minibatch_risk_strong(n=n, d=d, M=M, R=R, L=L, mu=mu, epsilon=epsilon, delta=delta)


@theorem("convex-2.3", "Theorem 2.3, eq. (8)",
         "One-pass accelerated SGD, heterogeneous silos, convex: F(w) − F* of order βD²/n² + LD√(d ln(1/δ))/(ε√(Mn)).",
         "upper", constant="hidden")  # fmt: skip
def one_pass_risk(*, n: int, d: int, M: float, L: float, D: float, beta: float, epsilon: float, delta: float) -> Result:
    """Rate βD²/n² + LD√(d ln(1/δ))/(ε√(Mn)) (convex paper, Theorem 2.3, part 1). ε ≤ 1.

    Term `sampling`: LD√(5/(Mn)), the noise-free part of V/√n, which (8) absorbs when d ln(1/δ) ≥ ε². Term `matching_n`:
    the n from which the second term leads (Section 5: then (8) is the classical local rate at M = N).
    """
    require(epsilon <= 1, "classical Gaussian mechanism", "epsilon", epsilon, "at most 1")
    noise = L * D * sqrt(d * log(1 / delta) / (M * n)) / epsilon
    matching = (M * (beta * D * epsilon / L) ** 2 / (d * log(1 / delta))) ** (1 / 3)
    terms = {"acceleration": beta * D**2 / n**2, "private": noise}
    return Result(sum(terms.values()), terms | {"sampling": L * D * sqrt(5 / (M * n)), "matching_n": matching})


@theorem("convex-2.3-strong", "Theorem 2.3, eq. (9)",
         "One-pass accelerated SGD, heterogeneous silos, strongly convex: LD e^(−n√(μ/β)) + L²d ln(1/δ)/(μ ε²Mn).",
         "upper", constant="hidden")  # fmt: skip
def one_pass_risk_strong(*, n: int, d: int, M: float, L: float, D: float, beta: float, mu: float, epsilon: float,
                         delta: float) -> Result:  # fmt: skip
    """Rate LD exp(−n√(μ/β)) + (L²/μ) d ln(1/δ)/(ε²Mn) (convex paper, Theorem 2.3, part 2). ε ≤ 1, μ ≤ β."""
    require(epsilon <= 1, "classical Gaussian mechanism", "epsilon", epsilon, "at most 1")
    require(mu <= beta, "strong convexity below smoothness", "mu", mu, f"at most β = {beta:g}")
    terms = {"acceleration": L * D * exp(-n * sqrt(mu / beta)),
             "private": L**2 * d * log(1 / delta) / (mu * epsilon**2 * M * n)}  # fmt: skip
    return Result(sum(terms.values()), terms)


@theorem("convex-2.4", "Theorem 2.4 (part 1), eqs (10), (38)",
         "Accelerated noisy SGD for convex ERM: F̂(w) − F̂* of order LD√(d ln(2.5R/δ)ln(2/δ))/(nε√M).", "upper",
         constant="hidden")  # fmt: skip
def accelerated_risk(*, n: int, d: int, M: float, R: int, L: float, D: float, epsilon: float, delta: float) -> Result:
    """Rate LD√(dΞ/M) (convex paper, Theorem 2.4, part 1; the smooth case is Theorem D.1, eqs (32), (35))."""
    check_epsilon(epsilon, delta)
    return Result(L * D * sqrt(d * privacy_term(n, R, epsilon, delta) / M))


@theorem("convex-2.4-strong", "Theorem 2.4 (part 2), eqs (11), (40)",
         "Accelerated noisy SGD for strongly convex ERM: F̂(w) − F̂* of order L²dΞ/(μM).", "upper",
         constant="hidden")  # fmt: skip
def accelerated_risk_strong(*, n: int, d: int, M: float, R: int, L: float, mu: float, epsilon: float,
                            delta: float) -> Result:  # fmt: skip
    """Rate (L²/μ) dΞ/M (convex paper, Theorem 2.4, part 2; the smooth case is Theorem D.1, eqs (33), (37))."""
    check_epsilon(epsilon, delta)
    return Result(L**2 * d * privacy_term(n, R, epsilon, delta) / (mu * M))


@theorem("convex-D.1", "Theorem D.1 (complete version, part 1), eq. (34)",
         "Accelerated noisy SGD, smooth convex ERM, R rounds: βD²/R² + D(√((φ²/(KR) + dL²Ξ)/M) + υ-part).", "upper",
         constant="hidden", example={"N": 100, "M": 50})  # fmt: skip
def accelerated_rounds(*, n: int, d: int, M: float, N: int, R: int, K: int, L: float, D: float, beta: float, phi: float,
                       upsilon: float, epsilon: float, delta: float) -> Result:  # fmt: skip
    """Risk after R rounds of Algorithm 2 (convex paper, Theorem D.1, complete version, eq. (34)), constants set to 1.

    βD²/R² + D(√((φ²/(KR) + dL²Ξ)/M) + √(Υ²/(MR))), with Υ² = (1 − (M−1)/(N−1))υ², 0 for one silo.
    """
    check_epsilon(epsilon, delta)
    silo = silo_variance(M, N, upsilon)
    terms = {"acceleration": beta * D**2 / R**2,
             "noise": D * sqrt((phi**2 / (K * R) + d * L**2 * privacy_term(n, R, epsilon, delta)) / M),
             "heterogeneity": D * sqrt(silo / (M * R))}  # fmt: skip
    return Result(sum(terms.values()), terms)


@theorem("convex-D.1-strong", "Theorem D.1 (complete version, part 2), eq. (36)",
         "Multi-stage accelerated noisy SGD, strongly convex ERM, R rounds: Δe^(−R√(μ/β)) + V²/(μR)-parts.", "upper",
         constant="hidden", example={"N": 100, "M": 50})  # fmt: skip
def accelerated_rounds_strong(*, n: int, d: int, M: float, N: int, R: int, K: int, L: float, Delta: float, beta: float,
                              mu: float, phi: float, upsilon: float, epsilon: float,
                              delta: float) -> Result:  # fmt: skip
    """Risk after R rounds of multi-stage Algorithm 2 (convex paper, Theorem D.1, eq. (36)), constants set to 1."""
    check_epsilon(epsilon, delta)
    require(mu <= beta, "strong convexity below smoothness", "mu", mu, f"at most β = {beta:g}")
    noise = (phi**2 / (K * R) + d * L**2 * privacy_term(n, R, epsilon, delta)) / M
    terms = {"acceleration": Delta * exp(-sqrt(mu / beta) * R), "noise": noise / mu,
             "heterogeneity": silo_variance(M, N, upsilon) / (mu * M * R)}  # fmt: skip
    return Result(sum(terms.values()), terms)


@theorem("convex-4.1", "Theorem 4.1 (part 1), eqs (14), (48)",
         "Algorithm 1 behind a shuffler, convex, i.i.d.: LD(1/√(nM) + √(d logs)/(εnN)).", "upper", constant="hidden",
         example={"M": 450, "N": 500})  # fmt: skip
def shuffled_risk(*, n: int, d: int, N: int, M: float, R: int, L: float, D: float, epsilon: float,
                  delta: float) -> Result:  # fmt: skip
    """Rate LD(1/√(nM) + √(d ln(RM²/(Nδ))ln(R/δ)ln(1/δ))/(εnN)) (convex paper, Theorem 4.1, part 1, eq. (48))."""
    statistical, private = _shuffled_parts(n, d, N, M, R, epsilon, delta)
    terms = {"statistical": L * D * sqrt(statistical), "private": L * D * sqrt(private)}
    return Result(sum(terms.values()), terms)


@theorem("convex-4.1-strong", "Theorem 4.1 (part 2), eqs (15), (49)",
         "Algorithm 1 behind a shuffler, strongly convex, i.i.d.: (L²/μ)(1/(nM) + d logs/(εnN)²).", "upper",
         constant="hidden", example={"M": 450, "N": 500})  # fmt: skip
def shuffled_risk_strong(*, n: int, d: int, N: int, M: float, R: int, L: float, mu: float, epsilon: float,
                         delta: float) -> Result:  # fmt: skip
    """Rate (L²/μ)(1/(nM) + d logs/(ε²n²N²)) (convex paper, Theorem 4.1, part 2, eq. (49))."""
    statistical, private = _shuffled_parts(n, d, N, M, R, epsilon, delta)
    terms = {"statistical": L**2 / mu * statistical, "private": L**2 / mu * private}
    return Result(sum(terms.values()), terms)


def _shuffled_parts(n: int, d: int, N: int, M: float, R: int, epsilon: float, delta: float) -> tuple[float, float]:
    check_epsilon(epsilon, delta)
    least = 16 * log(18 * R * M**2 / (N * delta))
    require(least <= M <= N, "enough shuffled messages", "M", M, f"between {least:.6g} and N = {N}")
    logs = log(R * M**2 / (N * delta)) * log(R / delta) * log(1 / delta)
    return 1 / (n * M), d * logs / (epsilon * n * N) ** 2


@theorem("convex-free", "Section 1, privacy for free",
         "Privacy costs nothing beyond a constant while the private term stays below the statistical one.", "rate",
         constant="hidden")  # fmt: skip
def privacy_for_free(*, n: int, d: int, R: int, epsilon: float, delta: float) -> Result:
    """The n from which 1/√n leads in Theorem 2.1's maximum: d ln(2.5R/δ) ln(2/δ)/ε² (convex paper, Sections 1 and 2).

    The term `short` is d/ε², as the text has it without logarithms; `private_over_statistical` is their ratio at n.
    """
    check_epsilon(epsilon, delta)
    needed = d * log_factor(R, delta) / epsilon**2
    return Result(needed, {"short": d / epsilon**2, "private_over_statistical": sqrt(needed / n)})


def silo_variance(M: float, N: int, upsilon: float) -> float:
    """Υ² = (1 − (M−1)/(N−1))υ² of drawing M of N silos, 0 for one silo (convex paper, Appendix D.1)."""
    require(M <= N, "silos in a round", "M", M, f"at most N = {N}")
    return ceil(N > 1) * (1 - (M - 1) / max(N - 1, 1)) * upsilon**2
