"""Lemmas of the convex paper's upper bounds: stability, empirical risk, variance, smoothing, acceleration."""

from math import exp, sqrt

from silodp.theory.convex.upper import silo_variance
from silodp.theory.registry import Reading, Result, at_least, positive, require, theorem


@theorem("convex-lemma-D.1", "Lemma D.1", "Excess population risk is at most the empirical one plus the stability.",
         "lemma", symbols={"stability": at_least(0, "uniform stability α", "loss", 0.01),
                           "empirical": at_least(0, "excess empirical risk", "loss", 0.02)})  # fmt: skip
def stability_to_risk(*, stability: float, empirical: float) -> Result:
    """α + E[F̂(ŵ) − min F̂] (convex paper, Lemma D.1), for data drawn i.i.d. over all silos."""
    return Result(stability + empirical, {"stability": stability, "empirical": empirical})


@theorem("convex-lemma-D.2", "Lemma D.2, convex", "Algorithm 1 is 2L²Rη/(nM)-uniformly stable for η ≤ 1/β.", "lemma")
def stability(*, n: int, M: float, R: int, L: float, beta: float, eta: float) -> Result:
    """2L²Rη/(nM) (convex paper, Lemma D.2), for η ≤ 1/β; a step in the proof prints the distance without η.

    Term `from_proof`: L²η(R+1)/(nM), what the proof gives for the mean of the iterates.
    """
    require(eta <= 1 / beta, "non-expansive steps", "eta", eta, f"at most 1/β = {1 / beta:g}")
    return Result(2 * L**2 * R * eta / (n * M), {"from_proof": L**2 * eta * (R + 1) / (n * M)})


@theorem("convex-lemma-D.2-strong", "Lemma D.2, strongly convex",
         "Algorithm 1 is 4L²/(μ(Mn−1))-uniformly stable for η ≤ 1/β.", "lemma")  # fmt: skip
def stability_strong(*, n: int, M: float, L: float, beta: float, mu: float, eta: float) -> Result:
    """4L²/(μ(Mn−1)) (convex paper, Lemma D.2), for η ≤ 1/β, μ ≤ β and min{M, n} > 1."""
    require(min(n, M) > 1, "more than one record and silo", "M" if M <= 1 else "n", min(n, M), "above 1")
    require(mu <= beta, "strong convexity below smoothness", "mu", mu, f"at most β = {beta:g}")
    require(eta <= 1 / beta, "non-expansive steps", "eta", eta, f"at most 1/β = {1 / beta:g}")
    return Result(4 * L**2 / (mu * (M * n - 1)))


GRADIENT = {"gradient": at_least(0, "norm of ∇F̂ at the minimiser on W", "loss / parameter", 0.0)}


@theorem("convex-lemma-D.4", "Lemma D.4, convex, eq. (23)",
         "Empirical risk of Algorithm 1: D²/(ηR) + 2η(φ²/(MK) + Υ²/M + dσ²/(2M)).", "lemma",
         symbols=GRADIENT, example={"N": 100, "M": 50, "eta": 0.2})  # fmt: skip
def empirical_risk(*, d: int, N: int, M: float, R: int, K: int, D: float, beta: float, eta: float, sigma: float,
                   phi: float, upsilon: float, gradient: float = 0.0,
                   reading: Reading = "right") -> Result:  # fmt: skip
    """D²/(ηR) + 2η[φ²/(MK) + Υ²/M + ‖∇F̂(w*)‖² + dσ²/(2M)] (convex paper, Lemma D.4), for the mean of w_0 … w_{R−1}.

    η ≤ 1/(4β); φ, υ at the minimiser. Printed without ‖∇F̂(w*)‖², because Lemma D.5 takes the message at w* to have
    mean 0: that holds for a minimiser inside W only. On a linear loss with η ≥ D/L, R = 1, φ = υ = σ = 0 the printed
    bound is below the risk LD of w_0 = 0. The mean of w_1 … w_R needs no such term: see `convex-lemma-D.4-shifted`.
    """
    require(eta <= 1 / (4 * beta), "step size", "eta", eta, f"at most 1/(4β) = {1 / (4 * beta):g}")
    extra = gradient**2 if reading == "right" else 0.0
    terms = {"start": D**2 / (eta * R), "sampling": 2 * eta * phi**2 / (M * K),
             "silos": 2 * eta * silo_variance(M, N, upsilon) / M, "noise": eta * d * sigma**2 / M,
             "constraint": 2 * eta * extra}  # fmt: skip
    return Result(sum(terms.values()), terms)


@theorem("convex-lemma-D.4-shifted", "Lemma D.4, convex, for the mean of w_1 … w_R",
         "The mean of w_1 … w_R has empirical risk at most D²/(2ηR) + (2/3)η(φ²/(MK) + Υ²/M + dσ²/M).", "lemma",
         example={"N": 100, "M": 50, "eta": 0.2})  # fmt: skip
def empirical_risk_shifted(*, d: int, N: int, M: float, R: int, K: int, D: float, beta: float, eta: float, sigma: float,
                           phi: float, upsilon: float) -> Result:  # fmt: skip
    """What Lemma D.4 (convex paper) becomes for the mean of w_1 … w_R: no condition on where the minimiser lies.

    Projected step + smoothness + convexity give E F̂(w_{r+1}) − F̂* ≤ (‖w_r−w*‖² − ‖w_{r+1}−w*‖²)/(2η) + V²/(2(1/η−β)),
    and 1/η−β ≥ 3/(4η). Here φ and υ bound the variances at every iterate.
    """
    require(eta <= 1 / (4 * beta), "step size", "eta", eta, f"at most 1/(4β) = {1 / (4 * beta):g}")
    variance = phi**2 / (M * K) + silo_variance(M, N, upsilon) / M + d * sigma**2 / M
    terms = {"start": D**2 / (2 * eta * R), "variance": variance / (2 * (1 / eta - beta))}
    return Result(sum(terms.values()), terms)


@theorem("convex-lemma-D.5", "Lemma D.5", "Variance of a round's mean message: minibatch + draw of silos + noise.",
         "lemma", example={"N": 100, "M": 50})  # fmt: skip
def message_variance(*, d: int, N: int, M: float, K: int, phi: float, upsilon: float, sigma: float) -> Result:
    """φ²/(MK) + (1 − (M−1)/(N−1))υ²/M + dσ²/M (convex paper, Lemma D.5), for equal silos.

    An equality when φ² and υ² are the variances themselves: records are drawn with replacement, silos without. With
    random M_r it holds for 1/M = E[1/M_r]. The last line of the paper's bound on the draw of silos lacks υ².
    """
    terms = {"sampling": phi**2 / (M * K), "silos": silo_variance(M, N, upsilon) / M, "noise": d * sigma**2 / M}
    return Result(sum(terms.values()), terms)


@theorem("convex-lemma-D.9", "Lemma D.9", "The β-Moreau envelope lies at most L²/(2β) below the loss.", "lemma")
def envelope_gap(*, L: float, beta: float, reading: Reading = "right") -> Result:
    """L²/(2β), the largest f − f_β (convex paper, Lemma D.9); term `lipschitz`: the Lipschitz constant of f_β on W.

    Printed 2L. It is L: f + (β/2)‖·−w‖² is β-strongly convex with minimiser v, so f(w) − f(v) ≥ β‖w−v‖², hence
    ‖∇f_β(w)‖ = β‖w−v‖ ≤ L. Theorem 2.2 calibrates its noise to L, which is private for this reason only.
    """
    return Result(L**2 / (2 * beta), {"lipschitz": L if reading == "right" else 2 * L})


@theorem("convex-lemma-D.10", "Lemma D.10", "Accelerated SGD on a regularised convex objective: βD²/T² + VD/√T.",
         "lemma", constant="hidden",
         symbols={"V": positive("standard deviation of the gradient", "loss / parameter", 1.0)})  # fmt: skip
def accelerated_convex(*, R: int, D: float, beta: float, V: float) -> Result:
    """βD²/R² + VD/√R (convex paper, Lemma D.10); term `regularisation`: λ = V/(2D√R) of Theorem D.1, for (λ/2)‖w‖².

    The lemma itself prints the factor V²D/√R of ‖w−w0‖², which has not the unit of a loss over a squared parameter;
    Theorem D.1's λ has.
    """
    terms = {"acceleration": beta * D**2 / R**2, "noise": V * D / sqrt(R)}
    return Result(sum(terms.values()), terms | {"regularisation": V / (2 * D * sqrt(R))})


@theorem("convex-lemma-D.11", "Lemma D.11", "Multi-stage accelerated SGD, strongly convex: Δe^(−T√(μ/β)) + V²/(μT).",
         "lemma", constant="hidden",
         symbols={"V": positive("standard deviation of the gradient", "loss / parameter", 1.0)})  # fmt: skip
def accelerated_strong(*, R: int, Delta: float, beta: float, mu: float, V: float) -> Result:
    """Δ exp(−R√(μ/β)) + V²/(μR) (convex paper, Lemma D.11). μ ≤ β."""
    require(mu <= beta, "strong convexity below smoothness", "mu", mu, f"at most β = {beta:g}")
    terms = {"acceleration": Delta * exp(-sqrt(mu / beta) * R), "noise": V**2 / (mu * R)}
    return Result(sum(terms.values()), terms)
