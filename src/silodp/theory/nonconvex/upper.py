"""Utility bounds of the non-convex paper (Theorems 2.1, 2.2, 3.1–3.3, their complete versions, Appendix G, Figure 3).

Upper and lower bounds are rates with constant 1 unless a docstring says otherwise; κ = β/μ with the proximal-PL
constant μ.
"""

from math import log, sqrt

from silodp.theory.nonconvex.privacy import VECTOR, check_zcdp
from silodp.theory.registry import Reading, Result, require, theorem

LOGS = ("logarithms dropped",)


def _check_pl(mu: float, beta: float) -> float:
    require(mu <= beta, "PL constant below smoothness", "mu", mu, f"at most β = {beta:g}")
    return beta / mu


def _check_silos(M: float, N: int) -> None:
    require(M <= N, "silos in a round", "M", M, f"at most N = {N}")


@theorem("nonconvex-2.1", "Theorem 2.1 / E.1 (part 1), eqs (4), (6)",
         "ISRL-DP Prox-SGD, proximal-PL: F(w_R) − F* of order (L²/μ)(κ²d ln(1/δ)/(ε²n²M) + κ/(Mn)).", "upper",
         constant="hidden", example={"N": 100, "M": 50})  # fmt: skip
def prox_sgd_risk(*, n: int, d: int, N: int, M: float, L: float, beta: float, mu: float, epsilon: float, delta: float,
                  upsilon: float = 0.0) -> Result:  # fmt: skip
    """Rate (L²/μ)(κ²d ln(1/δ)/(ε²n²M) + κ/(Mn)) (non-convex paper, Theorem E.1, part 1); the paper's ε ≤ 8 ln(1/δ), 15.

    Eq. (12) takes the records of a round to be independent draws around ∇F. Records of one silo share its mean, so for
    M < N heterogeneous silos add the term `silos`, (N−M)/((N−1)M) υ²/μ, which no n removes; it is 0 for M = N,
    and left out by upsilon = 0.
    """
    kappa = _check_pl(mu, beta)
    _check_silos(M, N)
    limit = min(8 * log(1 / delta), 15.0)
    require(epsilon <= limit, "privacy of Theorem 2.1", "epsilon", epsilon, f"at most min(8ln(1/δ), 15) = {limit:.6g}")
    terms = {"private": L**2 / mu * kappa**2 * d * log(1 / delta) / ((epsilon * n) ** 2 * M),
             "statistical": L**2 / mu * kappa / (M * n),
             "silos": (N - M) / (max(N - 1, 1) * M) * upsilon**2 / mu}  # fmt: skip
    return Result(sum(terms.values()), terms, LOGS)


@theorem("nonconvex-2.1-shuffled", "Theorem 2.1 / E.1 (part 2), eqs (5), (7)",
         "SDP Prox-SGD, proximal-PL: (L²/μ)(κ²d ln²(d/δ)/(ε²n²N²) + κ/(Mn)).", "upper", constant="hidden",
         symbols=VECTOR, example={"N": 100, "M": 50})  # fmt: skip
def shuffled_prox_sgd_risk(*, n: int, d: int, N: int, M: float, L: float, beta: float, mu: float, epsilon: float,
                           delta: float) -> Result:  # fmt: skip
    """Rate (L²/μ)(κ²d ln²(d/δ)/(ε²n²N²) + κ/(Mn)) (non-convex paper, Theorem E.1, part 2).

    Needs M ≥ N min(ε/2, 1). The proof's last display has M for N² in the private term.
    """
    kappa = _check_pl(mu, beta)
    least = N * min(epsilon / 2, 1.0)
    require(least <= M <= N, "enough shuffled silos", "M", M, f"between N min(ε/2, 1) = {least:.6g} and N = {N}")
    terms = {"private": L**2 / mu * kappa**2 * d * log(d / delta) ** 2 / (epsilon * n * N) ** 2,
             "statistical": L**2 / mu * kappa / (M * n)}  # fmt: skip
    return Result(sum(terms.values()), terms, LOGS)


@theorem("nonconvex-2.1-recursion", "Theorem E.1, eqs (18)–(20)",
         "Prox-SGD after R rounds: Δ(1−μ/(2β))^R + dσ²/(μM) + 2L²/(μMK).", "upper", example={"M": 50})  # fmt: skip
def prox_sgd_recursion(*, d: int, M: float, R: int, K: int, L: float, Delta: float, beta: float, mu: float,
                       sigma: float, reading: Reading = "right") -> Result:  # fmt: skip
    """Δ(1−μ/2β)^R + dσ²/(μM) + 2L²/(μMK) (non-convex paper, eq. (20) from (9), (13), (14)), M = N or like silos.

    (14) gives dσ²/(2βM) a round, (13) gives L²/(βMK) with its own factor 2, and the rounds sum to 2β/μ of them. Printed
    (20): 16d ln(1/δ)L²/(με²K²M) = 2dσ²/(μM) at its σ², and L²/(μMK), half of what (13) sums to.
    """
    _check_pl(mu, beta)
    noise, batch = d * sigma**2 / (mu * M), 2 * L**2 / (mu * M * K)
    if reading == "printed":
        noise, batch = 2 * noise, batch / 2
    terms = {"start": Delta * (1 - mu / (2 * beta)) ** R, "noise": noise, "batch": batch}
    return Result(sum(terms.values()), terms)


@theorem("nonconvex-2.2", "Theorem 2.2 / E.2 (part 1)",
         "ISRL-DP Prox-PL-SVRG, ERM: F̂ − F̂* of order κL²d ln(1/δ)/(με²n²M) + (N−M)υ²/(μM(N−1)).", "upper",
         constant="hidden", example={"N": 100, "M": 50})  # fmt: skip
def svrg_risk(*, n: int, d: int, N: int, M: float, L: float, beta: float, mu: float, upsilon: float, epsilon: float,
              delta: float, reading: Reading = "right") -> Result:  # fmt: skip
    """Rate κL²d ln(1/δ)/(με²n²M) + (N−M)υ²/(μM(N−1)) (non-convex paper, Theorem E.2, part 1).

    Part 1 prints the second term without 1/μ, part 2 and eq. (38) with it. ε ≤ min{2 ln(2/δ), 15}. What the theorem
    asks of K, R and S is checked where a run is planned (`svrg_schedule`).
    """
    return _svrg(n, d, N, M, L, beta, mu, upsilon, epsilon, delta, M, reading)


@theorem("nonconvex-2.2-shuffled", "Theorem 2.2 / E.2 (part 2)",
         "SDP Prox-PL-SVRG, ERM: κL²d ln(1/δ)/(με²n²N²) + (N−M)υ²/(μM(N−1)).", "upper", constant="hidden",
         symbols=VECTOR, example={"N": 100, "M": 50})  # fmt: skip
def shuffled_svrg_risk(*, n: int, d: int, N: int, M: float, L: float, beta: float, mu: float, upsilon: float,
                       epsilon: float, delta: float) -> Result:  # fmt: skip
    """Rate κL²d ln(1/δ)/(με²n²N²) + (N−M)υ²/(μM(N−1)) (non-convex paper, Theorem E.2, part 2)."""
    return _svrg(n, d, N, M, L, beta, mu, upsilon, epsilon, delta, float(N) ** 2, "right")


def _svrg(n: int, d: int, N: int, M: float, L: float, beta: float, mu: float, upsilon: float, epsilon: float,
          delta: float, divisor: float, reading: Reading) -> Result:  # fmt: skip
    kappa = _check_pl(mu, beta)
    _check_silos(M, N)
    limit = min(2 * log(2 / delta), 15.0)
    require(epsilon <= limit, "advanced composition", "epsilon", epsilon, f"at most min(2ln(2/δ), 15) = {limit:.6g}")
    silos = (N - M) * upsilon**2 / (M * max(N - 1, 1))
    terms = {"private": kappa * L**2 * d * log(1 / delta) / (mu * (epsilon * n) ** 2 * divisor),
             "silos": silos / mu if reading == "right" else silos}  # fmt: skip
    return Result(sum(terms.values()), terms, LOGS)


@theorem("nonconvex-2.2-restart", "Theorem E.2, eqs (38)–(40)",
         "One restart of Prox-PL-SVRG: 24κΔ/R max{1, n/(K^1.5√M)} + 3υ-part + 3d(σ1²+σ2²)/(2μM).", "upper",
         symbols={}, example={"N": 100, "M": 50, "R": 1000})  # fmt: skip
def svrg_restart(*, n: int, d: int, N: int, M: float, R: int, K: int, Delta: float, beta: float, mu: float,
                 upsilon: float, sigma: float, reading: Reading = "right") -> Result:  # fmt: skip
    """Excess empirical risk after one restart (non-convex paper, eq. (38)), with σ² = σ1² + σ2². K ≤ n.

    3Δ/(ημR) at the prescribed η = min{1, K^1.5√M/n}/(8β) is 24κΔ max{1, n/(K^1.5√M)}/R; printed 3κΔ(1 + n/(K^1.5√M))/R,
    short of the 8. With K^1.5√M ≥ n the printed R = 12κ then gives 2Δ, no contraction at all; R = 48κ gives Δ/2 (term
    `rounds_to_halve`).
    """
    kappa = _check_pl(mu, beta)
    _check_silos(M, N)
    require(n >= K, "a sample of the silo", "K", K, f"at most n = {n}")
    ratio = n / (K**1.5 * sqrt(M))
    start = 24 * kappa * Delta / R * max(1.0, ratio) if reading == "right" else 3 * kappa * Delta / R * (1 + ratio)
    terms = {"start": start, "silos": 3 * upsilon**2 * (N - M) / (mu * M * max(N - 1, 1)),
             "noise": 3 * d * sigma**2 / (2 * mu * M)}  # fmt: skip
    return Result(sum(terms.values()), terms | {"rounds_to_halve": 2 * R * start / Delta})


@theorem("nonconvex-3.1", "Theorem 3.1 / F.1, eq. (44)",
         "ISRL-DP FedProx-SPIDER: E‖Ĝ‖² of order (√(LβΔd ln(1/δ))/(εn√M))^(4/3) + L²d ln(1/δ)/(ε²n²M).", "upper",
         constant="hidden", example={"N": 100, "M": 100})  # fmt: skip
def spider_gradient(*, n: int, d: int, N: int, M: float, L: float, Delta: float, beta: float, epsilon: float,
                    delta: float, upsilon: float = 0.0, reading: Reading = "right") -> Result:  # fmt: skip
    """Rate of the squared norm of the proximal gradient mapping (non-convex paper, Theorem F.1, eq. (44)).

    For M < N the paper adds L√(βΔd ln(1/δ))/(εn^1.5M) + L²/(Mn), from pooling all records of the round (Lemma F.2).
    Full batches at M of N silos have no variance within silos and (N−M)/((N−1)M)υ² between them, free of n, which also
    limits a phase to q ≲ M. The right reading adds L√(βΔd ln(1/δ))/(εnM) and the term `silos` (0 with upsilon = 0).
    """
    check_zcdp(epsilon, delta)
    _check_silos(M, N)
    part = beta * Delta * d * log(1 / delta)
    terms = {"variance_reduced": (sqrt(L * part) / (epsilon * n * sqrt(M))) ** (4 / 3),
             "private": L**2 * d * log(1 / delta) / ((epsilon * n) ** 2 * M)}  # fmt: skip
    if M < N and reading == "printed":
        terms |= {"mixed": L * sqrt(part) / (epsilon * n**1.5 * M), "silos": L**2 / (M * n)}
    elif M < N:
        terms |= {"mixed": L * sqrt(part) / (epsilon * n * M), "silos": (N - M) / ((N - 1) * M) * upsilon**2}
    return Result(sum(terms.values()), terms)


@theorem("nonconvex-3.1-claim", "Theorem F.1, eq. (45)",
         "SPIDER with η = 1/(2β) and a small enough q: E‖Ĝ‖² ≤ 20Δ/(ηR) + 12τ1².", "upper",
         symbols={})  # fmt: skip
def spider_claim(*, d: int, M: float, R: int, Delta: float, beta: float, sigma: float,
                 reading: Reading = "right") -> Result:  # fmt: skip
    """40βΔ/R + 12τ1² with τ1² = dσ1²/M, M = N (non-convex paper, claim (45) with η = 1/(2β)).

    Printed 16(Δ/(ηR) + τ1²) for q ≤ 1/(η²τ2²); there the proof's A = η/4 − (η/2)·qη²τ2² is −η/4 < 0. With q ≤
    1/(4η²τ2²) it is at least η/8, and the proof's steps give 20 and 12.
    """
    start, noise = 2 * beta * Delta / R, d * sigma**2 / M
    factors = (20, 12) if reading == "right" else (16, 16)
    return Result(factors[0] * start + factors[1] * noise, {"start": factors[0] * start, "noise": factors[1] * noise})


@theorem("nonconvex-3.1-phase", "Theorem F.1, choice of q",
         "Longest phase of SPIDER for its bound: q ≤ 1/(4η²τ2²), M = N.", "upper", example={"M": 50})  # fmt: skip
def spider_phase(*, n: int, d: int, M: float, R: int, epsilon: float, delta: float,
                 reading: Reading = "right") -> Result:  # fmt: skip
    """1/(4η²τ2²) with τ2² = 8dσ2²/M and η = 1/(2β), M = N: ε²n²M/(128 dR ln(1/δ)) (non-convex paper, Theorem F.1).

    β cancels against σ2² = 16β²R ln(1/δ)/(εn)². Printed: 1/(η²τ2²), four times longer, where its A is negative.
    """
    check_zcdp(epsilon, delta)
    value = (epsilon * n) ** 2 * M / (128 * d * R * log(1 / delta))
    return Result(value * (4 if reading == "printed" else 1))


@theorem("nonconvex-3.2", "Theorem 3.2 / F.2",
         "SDP FedProx-SPIDER: E‖Ĝ‖² of order (√(LβΔd ln³(dnN/δ))/(εnN))^(4/3) + dL² ln³(Rd/(qδ))/(ε²n²N²).", "upper",
         constant="hidden", symbols=VECTOR, example={"N": 100, "M": 100})  # fmt: skip
def shuffled_spider_gradient(*, n: int, d: int, N: int, M: float, L: float, Delta: float, beta: float, epsilon: float,
                             delta: float, upsilon: float = 0.0) -> Result:  # fmt: skip
    """Rate of Theorem F.2 (non-convex paper), with ln(dnN/δ) for both logarithms; terms: R, q, least M.

    With X = εnNL/√(βΔd ln³): R = (εnN/L)√(βΔ/(d ln³)) X^(1/3) and q = X^(2/3)/2 balance the bound and keep q ≤
    1/(η²τ2²); the text at hand has X for both powers, which keeps it for X ≤ 1 only. For M < N the between-silo
    variance replaces the paper's pooled terms, as in Theorem F.1. Assumes ε ≤ ln(1/δ).
    """
    _check_silos(M, N)
    limit = log(1 / delta)
    require(epsilon <= limit, "advanced composition", "epsilon", epsilon, f"at most ln(1/δ) = {limit:.6g}")
    ratio = L / sqrt(beta * Delta)
    least = (epsilon * N * d**2 * ratio / n**2) ** (1 / 3) * (1 + ratio ** (1 / 3))
    require(least <= M, "enough silos a round", "M", M, f"at least {least:.6g}")
    logs = d * log(d * n * N / delta) ** 3
    scale = epsilon * n * N
    X = scale * L / sqrt(beta * Delta * logs)
    terms = {"variance_reduced": (sqrt(L * beta * Delta * logs) / scale) ** (4 / 3), "private": L**2 * logs / scale**2}
    if M < N:
        mixed = L * sqrt(beta * Delta * logs) / (scale * sqrt(M))
        terms |= {"mixed": mixed, "silos": (N - M) / ((N - 1) * M) * upsilon**2}
    rounds = scale / L * sqrt(beta * Delta / logs) * X ** (1 / 3)
    return Result(sum(terms.values()), terms | {"rounds": rounds, "phase": X ** (2 / 3) / 2, "least_M": least})


@theorem("nonconvex-3.3", "Theorem 3.3 / F.3 (ISRL-DP)",
         "No symmetric compositional ISRL-DP algorithm beats L² min{1, d ln(1/δ)/(ε²n²N)} in E‖∇F̂‖².", "lower",
         constant="hidden", example={"delta": 1e-7})  # fmt: skip
def gradient_lower(*, n: int, d: int, N: int, L: float, epsilon: float, delta: float,
                   reading: Reading = "right") -> Result:  # fmt: skip
    """L² min{1, d ln(1/δ)/(ε²n²N ln²(1/(nNδ)))} (non-convex paper, Theorem F.3), M = N, rounds of ε_r ≤ 1/n.

    Printed as Ω without the ln²: Theorem F.4, from which it comes, makes the shuffled algorithm O(ε0
    ln(1/(nNδ0))/√N)-DP, so the lower bound loses that logarithm squared. Assumes ε ≤ √N and δ < 1/(nN).
    """
    require(epsilon <= sqrt(N), "privacy of the local model", "epsilon", epsilon, f"at most √N = {sqrt(N):.6g}")
    require(delta < 1 / (n * N), "δ ≤ 1/(nN)^(1+Ω(1))", "delta", delta, f"below 1/(nN) = {1 / (n * N):.6g}")
    lost = max(log(1 / (n * N * delta)), 1.0) ** 2 if reading == "right" else 1.0
    return Result(L**2 * min(1.0, d * log(1 / delta) / ((epsilon * n) ** 2 * N * lost)), {"lost_logarithm": lost})


@theorem("nonconvex-3.3-shuffled", "Theorem 3.3 / F.5 (SDP and central DP)",
         "No (ε, δ)-SDP algorithm beats L² min{1, d ln(1/δ)/(ε²n²N²)} in E‖∇F̂‖².", "lower", constant="hidden",
         example={"delta": 1e-7})  # fmt: skip
def gradient_lower_central(*, n: int, d: int, N: int, L: float, epsilon: float, delta: float) -> Result:
    """L² min{1, d ln(1/δ)/(ε²n²N²)} (non-convex paper, Theorems 3.3, F.5)."""
    require(epsilon <= sqrt(N), "privacy of the lower bound", "epsilon", epsilon, f"at most √N = {sqrt(N):.6g}")
    require(delta < 1 / (n * N), "δ ≤ 1/(nN)^(1+Ω(1))", "delta", delta, f"below 1/(nN) = {1 / (n * N):.6g}")
    return Result(L**2 * min(1.0, d * log(1 / delta) / (epsilon * n * N) ** 2))


@theorem("nonconvex-G-risk", "Appendix G, eq. (49)",
         "Prox-SGD that is ISRL-DP and user-level DP: (L²/μ)(κ²d ln(4n/δ)/(ε²N) + κ/(nN)).", "upper",
         constant="hidden")  # fmt: skip
def hybrid_risk(*, n: int, d: int, N: int, L: float, beta: float, mu: float, epsilon: float, delta: float,
                reading: Reading = "right") -> Result:  # fmt: skip
    """Theorem 2.1 at ε0 = ε/n, δ0 = δ/(4n), M = N (non-convex paper, eq. (49)). ε ≤ 1.

    (L²/μ)(κ²d ln(1/δ0)/(ε²N) + κ/(nN)). Printed: √(d ln(1/δ0))/(ε²√N) and κ/√(Nn), the roots of what Theorem 2.1 has.
    """
    kappa = _check_pl(mu, beta)
    require(epsilon <= 1, "hybrid privacy", "epsilon", epsilon, "at most 1")
    logs = log(4 * n / delta)
    private, statistical = kappa**2 * d * logs / (epsilon**2 * N), kappa / (n * N)
    if reading == "printed":
        private, statistical = kappa**2 * sqrt(d * logs / N) / epsilon**2, kappa / sqrt(n * N)
    terms = {"private": L**2 / mu * private, "statistical": L**2 / mu * statistical}
    return Result(sum(terms.values()), terms, LOGS)


@theorem("nonconvex-figure-3", "Figure 3", "Upper and lower bounds of the paper side by side, M = N, L = 1.", "rate",
         constant="hidden")  # fmt: skip
def figure_3(*, n: int, d: int, N: int, beta: float, mu: float, epsilon: float) -> Result:
    """Figure 3 (non-convex paper): a term an entry, L²/μ and logarithms dropped; value: the ISRL-DP ERM bound."""
    kappa = _check_pl(mu, beta)
    local, central = d / ((epsilon * n) ** 2 * N), d / (epsilon * n * N) ** 2
    terms = {
        "isrl_so_upper": kappa**2 * local + kappa / (n * N), "isrl_so_lower": local / kappa**2 + 1 / (n * N),
        "sdp_so_upper": kappa**2 * central + kappa / (n * N), "sdp_so_lower": central + 1 / (n * N),
        "isrl_erm_upper": kappa * local, "isrl_erm_lower": local, "sdp_erm_upper": kappa * central,
        "sdp_erm_lower": central, "isrl_nonconvex_upper": local ** (2 / 3), "isrl_nonconvex_lower": local,
        "sdp_nonconvex_upper": central ** (2 / 3), "sdp_nonconvex_lower": central,
        "isrl_nonconvex_earlier": sqrt(local), "sdp_nonconvex_earlier": sqrt(central),
    }  # fmt: skip
    return Result(terms["isrl_erm_upper"], terms, LOGS)
