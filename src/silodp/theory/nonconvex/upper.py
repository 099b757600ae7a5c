"""Lemmas and utility bounds of the non-convex paper (Theorems 2.1, 2.2, 3.1–3.3, complete versions, App. G, Figure 3).

Upper and lower bounds are rates with constant 1 unless a docstring says otherwise; κ = β/μ with the proximal-PL
constant μ.
"""

from dataclasses import dataclass
from functools import partial
from math import ceil, log, log2, sqrt

from silodp.theory.nonconvex.privacy import VECTOR, check_prox_sgd, check_spider, check_svrg, check_zcdp, svrg_noise
from silodp.theory.theorem import Result, Symbol, at_least, positive, require, require_at_most, theorem, total

SYMBOLS = {
    "distance": at_least(0, "squared distance of the iterate from its reference", "parameter²", 0.1),
    "size": at_least(0, "Σ‖a_l‖² over all vectors", "as the vectors, squared", 10.0),
    "population": at_least(1, "vectors in all", "", 100, integer=True),
    "sample": at_least(1, "vectors drawn", "", 20, integer=True),
    "noise": at_least(0, "norm of the perturbation's gradient", "loss / parameter", 0.1),
    "tau1": at_least(0, "root mean square error of a fresh gradient", "loss / parameter", 0.1),
    "tau2": at_least(0, "error of a difference over the distance moved", "loss / parameter²", 0.1),
    "gap": positive("largest distance of a silo gradient", "loss / parameter", 1.0),
    "value_z": Symbol("F̂(z)", "loss", 1.0),
    "inner": Symbol("⟨y − z, ∇F̂⁰(w) − d'⟩", "loss", 0.1),
    "yw": Symbol("‖y−w‖²", "parameter²", 0.1),
    "zw": Symbol("‖z−w‖²", "parameter²", 0.2),
    "yz": Symbol("‖y−z‖²", "parameter²", 0.1),
}

lemma = partial(theorem, kind="lemma", symbols=SYMBOLS)


@lemma("nonconvex-lemma-E.1", "Lemma E.1")
def moved_minimiser(*, beta, noise):
    """Adding an L_h-Lipschitz function moves a 2β-strongly convex minimiser ≤ L_h/(2β).

    Term `value_gap`: ‖ū‖²/(2β), eq. (14), where (15) prints twice that.
    """
    return Result(noise / (2 * beta), {"value_gap": noise**2 / (2 * beta)})


@lemma("nonconvex-lemma-E.2", "Lemma E.2")
def proximal_descent(*, value_z, inner, yw, zw, yz, beta, eta):
    """Proximal descent: bound on F̂(y) for a proximal step y from w."""
    half, step = beta / 2, 1 / (2 * eta)
    return Result(value_z + inner + (half - step) * yw + (half + step) * zw - step * yz)


@lemma("nonconvex-lemma-E.3", "Lemma E.3", N=100, M=50)
def svrg_variance(*, n, d, N, M, K, beta, upsilon, sigma, distance, reading="right"):
    """Error of SVRG's gradient estimate: 8β²‖w−w̄‖²/(MK) + silos + noise.

    σ² = σ1²+σ2². The printed first term has the indicator of MK < Nn, from Lemma F.2, which draws without replacement;
    Algorithm 1 draws with replacement, where a batch of n has variance too.
    """
    require_at_most("a sample of the silo", n, "n", K=K)
    full = reading == "printed" and N * n <= M * K
    return total(
        sampling=0.0 if full else 8 * beta**2 * distance / (M * K),
        silos=2 * (N - M) * upsilon**2 / (M * max(N - 1, 1)),
        noise=d * sigma**2 / M,
    )


@lemma("nonconvex-lemma-F.1", "Lemma F.1")
def spider_error(*, tau1, tau2, distance):
    """SPIDER's error r rounds into a phase: τ2² Σ‖w_t − w_{t−1}‖² + τ1².

    `distance` is the sum of squared moves in the phase.
    """
    return total(moves=tau2**2 * distance, fresh=tau1**2)


@lemma("nonconvex-lemma-F.2", "Lemma F.2")
def sampled_mean(*, population, sample, size):
    """Mean of Ñ centred vectors sampled without replacement: exact second moment.

    For a uniform subset of single vectors. Records of M whole silos are no such subset: silos are the vectors then.
    Term `bound`: the lemma's bound, 0 for the whole population.
    """
    require_at_most("a sample without replacement", population, sample=sample)
    exact = (population - sample) / (max(population - 1, 1) * sample) * size / population
    return Result(exact, {"bound": size / (sample * population) if sample < population else 0.0})


@lemma("nonconvex-clusters", "Theorem F.1, τ1² for M < N", N=100, M=50)
def silo_draw(*, n, N, M, L, upsilon, reading="right"):
    """Full-batch gradients of M of N silos: variance (N−M)/((N−1)M)·υ², not 2L²/(Mn).

    By Lemma F.2 on silos. The printed form comes from pooling records: for N = 2, M = 1 and silo gradients ±L the
    variance is L², the printed bound 2L²/n.
    """
    if reading == "printed":
        return Result(2 * L**2 / (M * n) if M < N else 0.0)
    return Result((N - M) / (max(N - 1, 1) * M) * upsilon**2)


LOGS = "logarithms dropped"

upper_rate = partial(theorem, kind="upper", constant="hidden")


@upper_rate("nonconvex-2.1", "Theorem 2.1 / E.1 (part 1), eqs (4), (6)", N=100, M=50)
def prox_sgd_risk(*, n, d, N, M, L, beta, mu, epsilon, delta, upsilon=0.0):
    """ISRL-DP Prox-SGD, proximal-PL: F(w_R) − F* of order (L²/μ)(κ²d ln(1/δ)/(ε²n²M) + κ/(Mn)).

    Eq. (12) takes the records of a round to be independent draws around ∇F. Records of one silo share its mean, so for
    M < N heterogeneous silos add the term `silos`, which no n removes; it is 0 for M = N, and left out by upsilon = 0.
    """
    check_prox_sgd(epsilon, delta)
    kappa = beta / mu
    return total(
        LOGS,
        private=L**2 / mu * kappa**2 * d * log(1 / delta) / ((epsilon * n) ** 2 * M),
        statistical=L**2 / mu * kappa / (M * n),
        silos=(N - M) / (max(N - 1, 1) * M) * upsilon**2 / mu,
    )


@upper_rate("nonconvex-2.1-shuffled", "Theorem 2.1 / E.1 (part 2), eqs (5), (7)", symbols=VECTOR, N=100, M=50)
def shuffled_prox_sgd_risk(*, n, d, N, M, L, beta, mu, epsilon, delta):
    """SDP Prox-SGD, proximal-PL: (L²/μ)(κ²d ln²(d/δ)/(ε²n²N²) + κ/(Mn)).

    The proof's last display has M for N² in the private term.
    """
    kappa = beta / mu
    least = N * min(epsilon / 2, 1.0)
    require(least <= M, "enough shuffled silos", "M", M, f"between N min(ε/2, 1) = {least:.6g} and N = {N}")
    return total(
        LOGS,
        private=L**2 / mu * kappa**2 * d * log(d / delta) ** 2 / (epsilon * n * N) ** 2,
        statistical=L**2 / mu * kappa / (M * n),
    )


@theorem("nonconvex-2.1-recursion", "Theorem E.1, eqs (18)–(20)", "upper", M=50)
def prox_sgd_recursion(*, d, M, R, K, L, Delta, beta, mu, sigma, reading="right"):
    """Prox-SGD after R rounds: Δ(1−μ/(2β))^R + dσ²/(μM) + 2L²/(μMK).

    From (9), (13), (14), for M = N or like silos. (14) gives dσ²/(2βM) a round, (13) gives L²/(βMK) with its own factor
    2, and the rounds sum to 2β/μ of them. Printed (20): 2dσ²/(μM) at its σ², and half of what (13) sums to.
    """
    noise, batch = d * sigma**2 / (mu * M), 2 * L**2 / (mu * M * K)
    if reading == "printed":
        noise, batch = 2 * noise, batch / 2
    return total(start=Delta * (1 - mu / (2 * beta)) ** R, noise=noise, batch=batch)


@upper_rate("nonconvex-2.2", "Theorem 2.2 / E.2 (part 1)", N=100, M=50)
def svrg_risk(*, n, d, N, M, L, beta, mu, upsilon, epsilon, delta, reading="right"):
    """ISRL-DP Prox-PL-SVRG, ERM: F̂ − F̂* of order κL²d ln(1/δ)/(με²n²M) + (N−M)υ²/(μM(N−1)).

    Part 1 prints the second term without 1/μ, part 2 and eq. (38) with it. `svrg_schedule` checks what the theorem asks
    of K, R and S.
    """
    return _svrg(n, d, N, M, L, beta, mu, upsilon, epsilon, delta, M, mu if reading == "right" else 1.0)


@upper_rate("nonconvex-2.2-shuffled", "Theorem 2.2 / E.2 (part 2)", symbols=VECTOR, N=100, M=50)
def shuffled_svrg_risk(*, n, d, N, M, L, beta, mu, upsilon, epsilon, delta):
    """SDP Prox-PL-SVRG, ERM: κL²d ln(1/δ)/(με²n²N²) + (N−M)υ²/(μM(N−1))."""
    return _svrg(n, d, N, M, L, beta, mu, upsilon, epsilon, delta, float(N) ** 2, mu)


def _svrg(n, d, N, M, L, beta, mu, upsilon, epsilon, delta, divisor, silo_divisor) -> Result:
    check_svrg(epsilon, delta)
    return total(
        LOGS,
        private=beta / mu * L**2 * d * log(1 / delta) / (mu * (epsilon * n) ** 2 * divisor),
        silos=(N - M) * upsilon**2 / (M * max(N - 1, 1)) / silo_divisor,
    )


@theorem("nonconvex-2.2-restart", "Theorem E.2, eqs (38)–(40)", "upper", N=100, M=50, R=1000)
def svrg_restart(*, n, d, N, M, R, K, Delta, beta, mu, upsilon, sigma, reading="right"):
    """One restart of Prox-PL-SVRG: 24κΔ/R max{1, n/(K^1.5√M)} + 3υ-part + 3d(σ1²+σ2²)/(2μM).

    3Δ/(ημR) at the prescribed η = min{1, K^1.5√M/n}/(8β) is the first term; the printed form is short of the 8. With
    K^1.5√M ≥ n the printed R = 12κ then gives 2Δ, no contraction at all; R = 48κ gives Δ/2 (term `rounds_to_halve`).
    """
    require_at_most("a sample of the silo", n, "n", K=K)
    kappa, ratio = beta / mu, n / (K**1.5 * sqrt(M))
    start = 24 * kappa * Delta / R * max(1.0, ratio) if reading == "right" else 3 * kappa * Delta / R * (1 + ratio)
    silos = 3 * upsilon**2 * (N - M) / (mu * M * max(N - 1, 1))
    result = total(start=start, silos=silos, noise=3 * d * sigma**2 / (2 * mu * M))
    return result.with_terms(rounds_to_halve=2 * R * start / Delta)


@upper_rate("nonconvex-3.1", "Theorem 3.1 / F.1, eq. (44)", N=100, M=100)
def spider_gradient(*, n, d, N, M, L, Delta, beta, epsilon, delta, upsilon=0.0, reading="right"):
    """ISRL-DP FedProx-SPIDER: E‖Ĝ‖² of order (√(LβΔd ln(1/δ))/(εn√M))^(4/3) + L²d ln(1/δ)/(ε²n²M).

    Ĝ is the proximal gradient mapping. For M < N the printed form adds terms from pooling all records of the round
    (Lemma F.2). Full batches at M of N silos have no variance within silos and (N−M)/((N−1)M)υ² between them, free of
    n, which also limits a phase to q ≲ M. The right reading adds that and a private term.
    """
    check_zcdp(epsilon, delta)
    part = beta * Delta * d * log(1 / delta)
    terms = {
        "variance_reduced": (sqrt(L * part) / (epsilon * n * sqrt(M))) ** (4 / 3),
        "private": L**2 * d * log(1 / delta) / ((epsilon * n) ** 2 * M),
    }
    if M < N and reading == "printed":
        terms |= {"mixed": L * sqrt(part) / (epsilon * n**1.5 * M), "silos": L**2 / (M * n)}
    elif M < N:
        terms |= {"mixed": L * sqrt(part) / (epsilon * n * M), "silos": (N - M) / ((N - 1) * M) * upsilon**2}
    return total(**terms)


@theorem("nonconvex-3.1-claim", "Theorem F.1, eq. (45)", "upper")
def spider_claim(*, d, M, R, Delta, beta, sigma, reading="right"):
    """SPIDER with η = 1/(2β) and a small enough q: E‖Ĝ‖² ≤ 20Δ/(ηR) + 12τ1².

    τ1² = dσ1²/M, M = N. Printed 16(Δ/(ηR) + τ1²) for q ≤ 1/(η²τ2²); there the proof's A = η/4 − (η/2)·qη²τ2² is
    −η/4 < 0. With q ≤ 1/(4η²τ2²) it is at least η/8, and the proof's steps give 20 and 12.
    """
    start, noise = 2 * beta * Delta / R, d * sigma**2 / M
    factors = (20, 12) if reading == "right" else (16, 16)
    return total(start=factors[0] * start, noise=factors[1] * noise)


@theorem("nonconvex-3.1-phase", "Theorem F.1, choice of q", "upper", M=50)
def spider_phase(*, n, d, M, R, epsilon, delta, reading="right"):
    """Longest phase of SPIDER for its bound: q ≤ 1/(4η²τ2²), M = N.

    τ2² = 8dσ2²/M and η = 1/(2β); β cancels against σ2² = 16β²R ln(1/δ)/(εn)². Printed: 1/(η²τ2²), four times longer,
    where its A is negative.
    """
    check_zcdp(epsilon, delta)
    value = (epsilon * n) ** 2 * M / (128 * d * R * log(1 / delta))
    return Result(value * (4 if reading == "printed" else 1))


@upper_rate("nonconvex-3.2", "Theorem 3.2 / F.2", symbols=VECTOR, N=100, M=100)
def shuffled_spider_gradient(*, n, d, N, M, L, Delta, beta, epsilon, delta, upsilon=0.0):
    """SDP FedProx-SPIDER: E‖Ĝ‖² of order (√(LβΔd ln³(dnN/δ))/(εnN))^(4/3) + dL² ln³(Rd/(qδ))/(ε²n²N²).

    With ln(dnN/δ) for both logarithms; terms: R, q, least M. `rounds` and `phase` balance the bound and keep
    q ≤ 1/(η²τ2²); the text at hand has X for both powers, which keeps it for X ≤ 1 only. For M < N the between-silo
    variance replaces the paper's pooled terms, as in Theorem F.1.
    """
    check_spider(epsilon, delta)
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
    return total(**terms).with_terms(rounds=rounds, phase=X ** (2 / 3) / 2, least_M=least)


def _check_lower(n, N, assumption, epsilon, delta) -> None:
    require_at_most(assumption, sqrt(N), "√N", epsilon=epsilon)
    require(delta < 1 / (n * N), "δ ≤ 1/(nN)^(1+Ω(1))", "delta", delta, f"below 1/(nN) = {1 / (n * N):.6g}")


@theorem("nonconvex-3.3", "Theorem 3.3 / F.3 (ISRL-DP)", "lower", delta=1e-7)
def gradient_lower(*, n, d, N, L, epsilon, delta, reading="right"):
    """No symmetric compositional ISRL-DP algorithm beats L² min{1, d ln(1/δ)/(ε²n²N)} in E‖∇F̂‖².

    M = N, rounds of ε_r ≤ 1/n. Theorem F.4, from which it comes, makes the shuffled algorithm O(ε0 ln(1/(nNδ0))/√N)-DP,
    so the lower bound loses that logarithm squared, which the printed form keeps.
    """
    _check_lower(n, N, "privacy of the local model", epsilon, delta)
    lost = max(log(1 / (n * N * delta)), 1.0) ** 2 if reading == "right" else 1.0
    return Result(L**2 * min(1.0, d * log(1 / delta) / ((epsilon * n) ** 2 * N * lost)), {"lost_logarithm": lost})


@theorem("nonconvex-3.3-shuffled", "Theorem 3.3 / F.5 (SDP and central DP)", "lower", delta=1e-7)
def gradient_lower_central(*, n, d, N, L, epsilon, delta):
    """No (ε, δ)-SDP algorithm beats L² min{1, d ln(1/δ)/(ε²n²N²)} in E‖∇F̂‖²."""
    _check_lower(n, N, "privacy of the lower bound", epsilon, delta)
    return Result(L**2 * min(1.0, d * log(1 / delta) / (epsilon * n * N) ** 2))


@upper_rate("nonconvex-G-risk", "Appendix G, eq. (49)")
def hybrid_risk(*, n, d, N, L, beta, mu, epsilon, delta, reading="right"):
    """Prox-SGD that is ISRL-DP and user-level DP: (L²/μ)(κ²d ln(4n/δ)/(ε²N) + κ/(nN)).

    Theorem 2.1 at ε0 = ε/n, δ0 = δ/(4n), M = N. Printed with the roots of what Theorem 2.1 has.
    """
    require_at_most("hybrid privacy", 1, epsilon=epsilon)
    kappa, logs = beta / mu, log(4 * n / delta)
    private, statistical = kappa**2 * d * logs / (epsilon**2 * N), kappa / (n * N)
    if reading == "printed":
        private, statistical = kappa**2 * sqrt(d * logs / N) / epsilon**2, kappa / sqrt(n * N)
    return total(LOGS, private=L**2 / mu * private, statistical=L**2 / mu * statistical)


@theorem("nonconvex-figure-3", "Figure 3", "rate")
def figure_3(*, n, d, N, beta, mu, epsilon):
    """Upper and lower bounds of the paper side by side, M = N, L = 1.

    A term an entry, L²/μ and logarithms dropped; value: the ISRL-DP ERM bound.
    """
    kappa = beta / mu
    local, central = d / ((epsilon * n) ** 2 * N), d / (epsilon * n * N) ** 2
    terms = {
        "isrl_so_upper": kappa**2 * local + kappa / (n * N),
        "isrl_so_lower": local / kappa**2 + 1 / (n * N),
        "sdp_so_upper": kappa**2 * central + kappa / (n * N),
        "sdp_so_lower": central + 1 / (n * N),
        "isrl_erm_upper": kappa * local,
        "isrl_erm_lower": local,
        "sdp_erm_upper": kappa * central,
        "sdp_erm_lower": central,
        "isrl_nonconvex_upper": local ** (2 / 3),
        "isrl_nonconvex_lower": local,
        "sdp_nonconvex_upper": central ** (2 / 3),
        "sdp_nonconvex_lower": central,
        "isrl_nonconvex_earlier": sqrt(local),
        "sdp_nonconvex_earlier": sqrt(central),
    }
    return Result(terms["isrl_erm_upper"], terms, (LOGS,))


@dataclass(frozen=True)
class SVRGSchedule:
    """One run of Prox-PL-SVRG.

    Attributes:
        restarts: S.
        rounds: R of each of them, in E epochs of Q steps.
        step: η, in units of 1/β's.
        anchor, difference: σ1 and σ2 of a full gradient's and of a difference's message, in the unit of L.
    """

    restarts: int
    rounds: int
    step: float
    anchor: float
    difference: float


def theorem_e_2(*, n, d, M, L, beta, mu, Delta, epsilon, delta, K, Q, S=None) -> SVRGSchedule:
    """Rounds, restarts, step and noise of Algorithm 2 (non-convex paper, Theorem E.2, part 1).

    R = 12κ, in whole epochs of Q steps, and the noise of `nonconvex-2.2-noise`.

    Args:
        Delta: excess risk of the first iterate.
        K: records of a difference.
        Q: steps of an epoch.
        S: restarts, the least by default.

    Raises:
        AssumptionError: a smaller batch or fewer restarts than the theorem asks for, or ε beyond its range.
    """
    kappa = beta / mu
    # Roots in floating point could miss a batch that is exact.
    require(n**2 <= K**3 * M, "batch of Theorem E.2", "K", K, f"at least (n²/M)^(1/3) = {(n**2 / M) ** (1 / 3):.6g}")
    least = max(1, ceil(log2(max(Delta * mu * M * (epsilon * n) ** 2 / (kappa * d * L**2), 1.0))))
    restarts = least if S is None else S
    require(restarts >= least, "restarts of Theorem E.2", "S", restarts, f"at least {least}")
    epochs = ceil(12 * kappa / Q)
    noise = svrg_noise(n=n, S=restarts, E=epochs, Q=Q, L=L, epsilon=epsilon, delta=delta).terms
    private = noise["smallest_batch"]
    require(private <= K, "batch for privacy", "K", K, f"at least {private:g}")
    step = min(1.0, K**1.5 * sqrt(M) / n) / (8 * beta)
    return SVRGSchedule(restarts, epochs * Q, step, sqrt(noise["sigma1_squared"]), sqrt(noise["sigma2_squared"]))
