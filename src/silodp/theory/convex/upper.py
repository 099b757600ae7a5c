"""Upper bounds of the convex paper on the excess risk (Theorems 2.1–2.4, D.1, 4.1), and the lemmas behind them.

Balanced case: every silo holds n records and has the same ε, δ, L. F is the population risk, F̂ the empirical one, both
averaged over silos. `M` is 1/E[1/M_r], which is the number of silos a round when it is fixed. Ξ is `privacy_term`.
`participation` and `unbalanced` give what the complete versions need when that is not so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, exp, log, sqrt

from silodp.theory.convex.privacy import check_epsilon, log_factor, shuffled_logs
from silodp.theory.theorem import (
    AssumptionError,
    Reading,
    Result,
    at_least,
    positive,
    require,
    require_at_most,
    theorem,
    total,
)

RISKS = {
    "stability": at_least(0, "uniform stability α", "loss", 0.01),
    "empirical": at_least(0, "excess empirical risk", "loss", 0.02),
}
GRADIENT = {"gradient": at_least(0, "norm of ∇F̂ at the minimiser on W", "loss / parameter", 0.0)}
DEVIATION = {"V": positive("standard deviation of the gradient", "loss / parameter", 1.0)}

lemma = partial(theorem, kind="lemma")


@lemma("convex-lemma-D.1", "Lemma D.1", symbols=RISKS)
def stability_to_risk(*, stability, empirical):
    """Excess population risk is at most the empirical one plus the stability.

    For data drawn i.i.d. over all silos.
    """
    return total(stability=stability, empirical=empirical)


@lemma("convex-lemma-D.2", "Lemma D.2, convex")
def stability(*, n, M, R, L, beta, eta):
    """Algorithm 1 is 2L²Rη/(nM)-uniformly stable for η ≤ 1/β.

    A step in the proof prints the distance without η. Term `from_proof`: what the proof gives for the mean of the
    iterates.
    """
    require_at_most("non-expansive steps", 1 / beta, "1/β", eta=eta)
    return Result(2 * L**2 * R * eta / (n * M), {"from_proof": L**2 * eta * (R + 1) / (n * M)})


@lemma("convex-lemma-D.2-strong", "Lemma D.2, strongly convex")
def stability_strong(*, n, M, L, beta, mu, eta):
    """Algorithm 1 is 4L²/(μ(Mn−1))-uniformly stable for η ≤ 1/β."""
    require(min(n, M) > 1, "more than one record and silo", "M" if M <= 1 else "n", min(n, M), "above 1")
    require_at_most("non-expansive steps", 1 / beta, "1/β", eta=eta)
    return Result(4 * L**2 / (mu * (M * n - 1)))


@lemma("convex-lemma-D.4", "Lemma D.4, convex, eq. (23)", symbols=GRADIENT, N=100, M=50, eta=0.2)
def empirical_risk(*, d, N, M, R, K, D, beta, eta, sigma, phi, upsilon, gradient=0.0, reading="right"):
    """Empirical risk of Algorithm 1: D²/(ηR) + 2η(φ²/(MK) + Υ²/M + dσ²/(2M)).

    For the mean of w_0 … w_{R−1}; φ, υ at the minimiser. Printed without the term `constraint`, because Lemma D.5 takes
    the message at w* to have mean 0: that holds for a minimiser inside W only. On a linear loss with η ≥ D/L, R = 1,
    φ = υ = σ = 0 the printed bound is below the risk LD of w_0 = 0. The mean of w_1 … w_R needs no such term: see
    `convex-lemma-D.4-shifted`.
    """
    require_at_most("step size", 1 / (4 * beta), "1/(4β)", eta=eta)
    return total(
        start=D**2 / (eta * R),
        sampling=2 * eta * phi**2 / (M * K),
        silos=2 * eta * silo_variance(M, N, upsilon) / M,
        noise=eta * d * sigma**2 / M,
        constraint=2 * eta * (gradient**2 if reading == "right" else 0.0),
    )


@lemma("convex-lemma-D.4-shifted", "Lemma D.4, convex, for the mean of w_1 … w_R", N=100, M=50, eta=0.2)
def empirical_risk_shifted(*, d, N, M, R, K, D, beta, eta, sigma, phi, upsilon):
    """The mean of w_1 … w_R has empirical risk at most D²/(2ηR) + (2/3)η(φ²/(MK) + Υ²/M + dσ²/M).

    No condition on where the minimiser lies. Projected step + smoothness + convexity give
    E F̂(w_{r+1}) − F̂* ≤ (‖w_r−w*‖² − ‖w_{r+1}−w*‖²)/(2η) + V²/(2(1/η−β)), and 1/η−β ≥ 3/(4η). Here φ and υ bound the
    variances at every iterate.
    """
    require_at_most("step size", 1 / (4 * beta), "1/(4β)", eta=eta)
    variance = phi**2 / (M * K) + silo_variance(M, N, upsilon) / M + d * sigma**2 / M
    return total(start=D**2 / (2 * eta * R), variance=variance / (2 * (1 / eta - beta)))


@lemma("convex-lemma-D.5", "Lemma D.5", N=100, M=50)
def message_variance(*, d, N, M, K, phi, upsilon, sigma):
    """Variance of a round's mean message: minibatch + draw of silos + noise.

    Of equal silos. An equality when φ² and υ² are the variances themselves: records are drawn with replacement, silos
    without. With random M_r it holds for 1/M = E[1/M_r]. The last line of the paper's bound on the draw of silos lacks
    υ².
    """
    return total(sampling=phi**2 / (M * K), silos=silo_variance(M, N, upsilon) / M, noise=d * sigma**2 / M)


@lemma("convex-lemma-D.9", "Lemma D.9")
def envelope_gap(*, L, beta, reading="right"):
    """The β-Moreau envelope lies at most L²/(2β) below the loss.

    Term `lipschitz`: the Lipschitz constant of f_β on W. Printed 2L. It is L: f + (β/2)‖·−w‖² is β-strongly convex with
    minimiser v, so f(w) − f(v) ≥ β‖w−v‖², hence ‖∇f_β(w)‖ = β‖w−v‖ ≤ L. Theorem 2.2 calibrates its noise to L, which is
    private for this reason only.
    """
    return Result(L**2 / (2 * beta), {"lipschitz": L if reading == "right" else 2 * L})


@lemma("convex-lemma-D.10", "Lemma D.10", constant="hidden", symbols=DEVIATION)
def accelerated_convex(*, R, D, beta, V):
    """Accelerated SGD on a regularised convex objective: βD²/T² + VD/√T.

    T = R. Term `regularisation`: λ of Theorem D.1, for (λ/2)‖w‖². The lemma itself prints the factor V²D/√R of
    ‖w−w0‖², which has not the unit of a loss over a squared parameter; Theorem D.1's λ has.
    """
    return total(acceleration=beta * D**2 / R**2, noise=V * D / sqrt(R)).with_terms(
        regularisation=V / (2 * D * sqrt(R))
    )


@lemma("convex-lemma-D.11", "Lemma D.11", constant="hidden", symbols=DEVIATION)
def accelerated_strong(*, R, Delta, beta, mu, V):
    """Multi-stage accelerated SGD, strongly convex: Δe^(−T√(μ/β)) + V²/(μT)."""
    return total(acceleration=Delta * exp(-sqrt(mu / beta) * R), noise=V**2 / (mu * R))


PRIVACY = {"privacy_term": positive("Ξ̃ = ln(2.5R/δ)ln(2/δ)/(n²ε²) or its average over silos", "1 / records²", 1e-4)}

upper_rate = partial(theorem, kind="upper", constant="hidden")


def privacy_term(n, R, epsilon, delta) -> float:
    """Ξ = ln(2.5R/δ) ln(2/δ)/(n²ε²) of the balanced case; σ² = 256 L² R Ξ."""
    return log_factor(R, delta) / (n * epsilon) ** 2


def _checked_term(n, R, epsilon, delta) -> float:
    check_epsilon(epsilon, delta)
    return privacy_term(n, R, epsilon, delta)


def silo_variance(M, N, upsilon) -> float:
    """Υ² = (1 − (M−1)/(N−1))υ² of drawing M of N silos, 0 for one silo (convex paper, Appendix D.1)."""
    return ceil(N > 1) * (1 - (M - 1) / max(N - 1, 1)) * upsilon**2


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
    if len(sizes) != len(probabilities) or min(sizes) < 1 or abs(sum(probabilities) - 1) > 1e-9:
        raise AssumptionError("random participation: sizes have to be ≥ 1 and their probabilities have to sum to 1")
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

    Ξ = √E[(mean of the M_r largest ξ)²] with ξ_i a silo's own Ξ. (M', Ξ) where Ξ/M' ≤ ξ_max/M, else (M, ξ_max).

    Args:
        n, epsilon, delta: a value for each silo.
        sizes, probabilities: distribution of the number of silos in a round.
    """
    xi = sorted((privacy_term(a, R, e, f) for a, e, f in zip(n, epsilon, delta, strict=True)), reverse=True)
    if max(sizes) > len(xi):
        raise AssumptionError(f"random participation: sizes have to be at most the number of silos, {len(xi)}")
    M, M_prime = participation(sizes, probabilities)
    averaged = sqrt(sum(p * (sum(xi[:m]) / m) ** 2 for m, p in zip(sizes, probabilities, strict=True)))
    if averaged / M_prime <= xi[0] / M:
        return Unbalanced(min(n), M_prime, averaged)
    return Unbalanced(min(n), M, xi[0])


def _iid_risk(factor, L, D, M, n, noise) -> Result:
    scale = factor * L * D / sqrt(M)
    terms = {"statistical": scale / sqrt(n), "private": scale * sqrt(noise)}
    return Result(max(terms.values()), terms)


@theorem("convex-2.1", "Theorem 2.1 (complete version, part 1)", "upper")
def minibatch_risk(*, n, d, M, R, L, D, epsilon, delta):
    """Noisy minibatch SGD on convex smooth losses and i.i.d. silos: F(ŵ) − F* ≤ 272 LD/√M max(1/√n, √(dΞ)).

    Holds with the schedule `theorem-2.1` when the output averages w_1 … w_R. The paper averages w_0 … w_{R−1}, and its
    Lemma D.4 leaves out the gradient at a constrained minimiser: for small β it prescribes R = 1 and returns w_0 = 0,
    whose risk is LD on a linear loss, above this bound as soon as Mn > 272² and the private term is small.
    """
    return _iid_risk(272, L, D, M, n, d * _checked_term(n, R, epsilon, delta))


@theorem("convex-2.1-complete", "Theorem 2.1 (complete version, part 1)", "upper", symbols=PRIVACY)
def minibatch_risk_complete(*, n, d, M_tilde, privacy_term, L, D):
    """Theorem 2.1 for unbalanced silos: F(ŵ) − F* ≤ 272 LD/√M̃ max(1/√n_min, √(dΞ̃)).

    `unbalanced` gives n_min (here n), M̃ and Ξ̃. M̃ is M' or M; the text prints their roots, which its own step size and
    the step from (31) to the bound rule out.
    """
    return _iid_risk(272, L, D, M_tilde, n, d * privacy_term)


@upper_rate("convex-2.1-strong", "Theorem 2.1 (part 2), eqs (5), (16)", R=100)
def minibatch_risk_strong(*, n, d, M, R, L, mu, epsilon, delta):
    """Noisy minibatch SGD on strongly convex smooth losses: F(ŵ) − F* of order (L²/μM)(1/n + dΞ)."""
    scale = L**2 / (mu * M)
    return total(statistical=scale / n, private=scale * d * _checked_term(n, R, epsilon, delta))


@theorem("convex-2.2", "Theorem 2.2 (complete version, part 1)", "upper")
def moreau_risk(*, n, d, M, R, L, D, epsilon, delta):
    """Algorithm 1 on the Moreau envelope of a non-smooth convex loss: F(ŵ) − F* ≤ 545 LD/√M max(1/√n, √(dΞ)).

    545 is 2·272 + 1, from taking the envelope to be 2L-Lipschitz (Lemma D.9). It is L-Lipschitz, so the noise, which is
    calibrated to L, is private, and 272.5 suffices (term `with_lipschitz_L`).
    """
    result = _iid_risk(545, L, D, M, n, d * _checked_term(n, R, epsilon, delta))
    return result.with_terms(with_lipschitz_L=result.value * 272.5 / 545)


@upper_rate("convex-2.2-strong", "Theorem 2.2 (part 2), eq. (7)")
def moreau_risk_strong(*, n, d, M, R, L, mu, epsilon, delta):
    """Algorithm 1 on the envelope of a strongly convex loss: the rate of Theorem 2.1 without smoothness."""
    return minibatch_risk_strong(n=n, d=d, M=M, R=R, L=L, mu=mu, epsilon=epsilon, delta=delta)


@upper_rate("convex-2.3", "Theorem 2.3, eq. (8)")
def one_pass_risk(*, n, d, M, L, D, beta, epsilon, delta):
    """One-pass accelerated SGD, heterogeneous silos, convex: F(w) − F* of order βD²/n² + LD√(d ln(1/δ))/(ε√(Mn)).

    Term `sampling`: the noise-free part of V/√n, which (8) absorbs when d ln(1/δ) ≥ ε². Term `matching_n`: the n from
    which the second term leads (Section 5: then (8) is the classical local rate at M = N).
    """
    require_at_most("classical Gaussian mechanism", 1, epsilon=epsilon)
    noise = L * D * sqrt(d * log(1 / delta) / (M * n)) / epsilon
    matching = (M * (beta * D * epsilon / L) ** 2 / (d * log(1 / delta))) ** (1 / 3)
    result = total(acceleration=beta * D**2 / n**2, private=noise)
    return result.with_terms(sampling=L * D * sqrt(5 / (M * n)), matching_n=matching)


@upper_rate("convex-2.3-strong", "Theorem 2.3, eq. (9)")
def one_pass_risk_strong(*, n, d, M, L, D, beta, mu, epsilon, delta):
    """One-pass accelerated SGD, heterogeneous silos, strongly convex: LD e^(−n√(μ/β)) + L²d ln(1/δ)/(μ ε²Mn)."""
    require_at_most("classical Gaussian mechanism", 1, epsilon=epsilon)
    private = L**2 * d * log(1 / delta) / (mu * epsilon**2 * M * n)
    return total(acceleration=L * D * exp(-n * sqrt(mu / beta)), private=private)


@upper_rate("convex-2.4", "Theorem 2.4 (part 1), eqs (10), (38)")
def accelerated_risk(*, n, d, M, R, L, D, epsilon, delta):
    """Accelerated noisy SGD for convex ERM: F̂(w) − F̂* of order LD√(d ln(2.5R/δ)ln(2/δ))/(nε√M).

    The smooth case is Theorem D.1, eqs (32), (35).
    """
    return Result(L * D * sqrt(d * _checked_term(n, R, epsilon, delta) / M))


@upper_rate("convex-2.4-strong", "Theorem 2.4 (part 2), eqs (11), (40)")
def accelerated_risk_strong(*, n, d, M, R, L, mu, epsilon, delta):
    """Accelerated noisy SGD for strongly convex ERM: F̂(w) − F̂* of order L²dΞ/(μM).

    The smooth case is Theorem D.1, eqs (33), (37).
    """
    return Result(L**2 * d * _checked_term(n, R, epsilon, delta) / (mu * M))


@upper_rate("convex-D.1", "Theorem D.1 (complete version, part 1), eq. (34)", N=100, M=50)
def accelerated_rounds(*, n, d, M, N, R, K, L, D, beta, phi, upsilon, epsilon, delta):
    """Accelerated noisy SGD, smooth convex ERM, R rounds: βD²/R² + D(√((φ²/(KR) + dL²Ξ)/M) + υ-part)."""
    noise = (phi**2 / (K * R) + d * L**2 * _checked_term(n, R, epsilon, delta)) / M
    silos = silo_variance(M, N, upsilon) / (M * R)
    return total(acceleration=beta * D**2 / R**2, noise=D * sqrt(noise), heterogeneity=D * sqrt(silos))


@upper_rate("convex-D.1-strong", "Theorem D.1 (complete version, part 2), eq. (36)", N=100, M=50)
def accelerated_rounds_strong(*, n, d, M, N, R, K, L, Delta, beta, mu, phi, upsilon, epsilon, delta):
    """Multi-stage accelerated noisy SGD, strongly convex ERM, R rounds: Δe^(−R√(μ/β)) + V²/(μR)-parts."""
    noise = (phi**2 / (K * R) + d * L**2 * _checked_term(n, R, epsilon, delta)) / M
    silos = silo_variance(M, N, upsilon) / (mu * M * R)
    return total(acceleration=Delta * exp(-sqrt(mu / beta) * R), noise=noise / mu, heterogeneity=silos)


@upper_rate("convex-4.1", "Theorem 4.1 (part 1), eqs (14), (48)", M=450, N=500)
def shuffled_risk(*, n, d, N, M, R, L, D, epsilon, delta):
    """Algorithm 1 behind a shuffler, convex, i.i.d.: LD(1/√(nM) + √(d logs)/(εnN))."""
    private = d * shuffled_logs(N, M, R, epsilon, delta) / (epsilon * n * N) ** 2
    return total(statistical=L * D * sqrt(1 / (n * M)), private=L * D * sqrt(private))


@upper_rate("convex-4.1-strong", "Theorem 4.1 (part 2), eqs (15), (49)", M=450, N=500)
def shuffled_risk_strong(*, n, d, N, M, R, L, mu, epsilon, delta):
    """Algorithm 1 behind a shuffler, strongly convex, i.i.d.: (L²/μ)(1/(nM) + d logs/(εnN)²)."""
    private = d * shuffled_logs(N, M, R, epsilon, delta) / (epsilon * n * N) ** 2
    return total(statistical=L**2 / mu * (1 / (n * M)), private=L**2 / mu * private)


@theorem("convex-free", "Section 1, privacy for free", "rate")
def privacy_for_free(*, n, d, R, epsilon, delta):
    """Privacy costs nothing beyond a constant while the private term stays below the statistical one.

    The n from which 1/√n leads in Theorem 2.1's maximum. The term `short` is d/ε², as the text has it without
    logarithms; `private_over_statistical` is their ratio at n.
    """
    check_epsilon(epsilon, delta)
    needed = d * log_factor(R, delta) / epsilon**2
    return Result(needed, {"short": d / epsilon**2, "private_over_statistical": sqrt(needed / n)})
