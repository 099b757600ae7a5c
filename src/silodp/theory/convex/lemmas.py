"""Lemmas of the convex paper's upper bounds: stability, empirical risk, variance, smoothing, acceleration."""

from functools import partial
from math import exp, sqrt

from silodp.theory.convex.upper import silo_variance
from silodp.theory.registry import Result, at_least, at_most, positive, require, theorem, total

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
    at_most("non-expansive steps", 1 / beta, "1/β", eta=eta)
    return Result(2 * L**2 * R * eta / (n * M), {"from_proof": L**2 * eta * (R + 1) / (n * M)})


@lemma("convex-lemma-D.2-strong", "Lemma D.2, strongly convex")
def stability_strong(*, n, M, L, beta, mu, eta):
    """Algorithm 1 is 4L²/(μ(Mn−1))-uniformly stable for η ≤ 1/β."""
    require(min(n, M) > 1, "more than one record and silo", "M" if M <= 1 else "n", min(n, M), "above 1")
    at_most("non-expansive steps", 1 / beta, "1/β", eta=eta)
    return Result(4 * L**2 / (mu * (M * n - 1)))


@lemma("convex-lemma-D.4", "Lemma D.4, convex, eq. (23)", symbols=GRADIENT, N=100, M=50, eta=0.2)
def empirical_risk(*, d, N, M, R, K, D, beta, eta, sigma, phi, upsilon, gradient=0.0, reading="right"):
    """Empirical risk of Algorithm 1: D²/(ηR) + 2η(φ²/(MK) + Υ²/M + dσ²/(2M)).

    For the mean of w_0 … w_{R−1}; φ, υ at the minimiser. Printed without the term `constraint`, because Lemma D.5 takes
    the message at w* to have mean 0: that holds for a minimiser inside W only. On a linear loss with η ≥ D/L, R = 1,
    φ = υ = σ = 0 the printed bound is below the risk LD of w_0 = 0. The mean of w_1 … w_R needs no such term: see
    `convex-lemma-D.4-shifted`.
    """
    at_most("step size", 1 / (4 * beta), "1/(4β)", eta=eta)
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
    at_most("step size", 1 / (4 * beta), "1/(4β)", eta=eta)
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
    return total(acceleration=beta * D**2 / R**2, noise=V * D / sqrt(R)).beside(regularisation=V / (2 * D * sqrt(R)))


@lemma("convex-lemma-D.11", "Lemma D.11", constant="hidden", symbols=DEVIATION)
def accelerated_strong(*, R, Delta, beta, mu, V):
    """Multi-stage accelerated SGD, strongly convex: Δe^(−T√(μ/β)) + V²/(μT)."""
    return total(acceleration=Delta * exp(-sqrt(mu / beta) * R), noise=V**2 / (mu * R))
