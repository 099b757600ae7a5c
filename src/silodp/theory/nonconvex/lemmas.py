"""Lemmas of the non-convex paper: perturbed minimisers, proximal descent, variances of gradient estimates."""

from silodp.theory.registry import Reading, Result, Symbol, at_least, positive, require, theorem

DISTANCE = {
    "distance": at_least(0, "squared distance of the iterate from its reference", "parameter²", 0.1),
    "size": at_least(0, "Σ‖a_l‖² over all vectors", "as the vectors, squared", 10.0),
    "population": at_least(1, "vectors in all", "", 100, integer=True),
    "sample": at_least(1, "vectors drawn", "", 20, integer=True),
    "noise": at_least(0, "norm of the perturbation's gradient", "loss / parameter", 0.1),
    "tau1": at_least(0, "root mean square error of a fresh gradient", "loss / parameter", 0.1),
    "tau2": at_least(0, "error of a difference over the distance moved", "loss / parameter²", 0.1),
}


@theorem("nonconvex-lemma-E.1", "Lemma E.1",
         "Adding an L_h-Lipschitz function moves a 2β-strongly convex minimiser ≤ L_h/(2β).",
         "lemma", symbols=DISTANCE)  # fmt: skip
def moved_minimiser(*, beta: float, noise: float) -> Result:
    """L_h/(2β) (non-convex paper, Lemma E.1); term `value_gap`: ‖ū‖²/(2β), eq. (14), where (15) prints twice that."""
    return Result(noise / (2 * beta), {"value_gap": noise**2 / (2 * beta)})


@theorem("nonconvex-lemma-E.2", "Lemma E.2", "Proximal descent: bound on F̂(y) for a proximal step y from w.", "lemma",
         symbols={name: Symbol(meaning, unit, typical) for name, meaning, unit, typical in (
             ("value_z", "F̂(z)", "loss", 1.0), ("inner", "⟨y − z, ∇F̂⁰(w) − d'⟩", "loss", 0.1),
             ("yw", "‖y−w‖²", "parameter²", 0.1), ("zw", "‖z−w‖²", "parameter²", 0.2),
             ("yz", "‖y−z‖²", "parameter²", 0.1))})  # fmt: skip
def proximal_descent(*, value_z: float, inner: float, yw: float, zw: float, yz: float, beta: float,
                     eta: float) -> Result:  # fmt: skip
    """F̂(z) + ⟨y−z, ∇F̂⁰(w)−d'⟩ + (β/2−1/2η)‖y−w‖² + (β/2+1/2η)‖z−w‖² − ‖y−z‖²/2η (non-convex paper, Lemma E.2)."""
    half, step = beta / 2, 1 / (2 * eta)
    return Result(value_z + inner + (half - step) * yw + (half + step) * zw - step * yz)


@theorem("nonconvex-lemma-E.3", "Lemma E.3", "Error of SVRG's gradient estimate: 8β²‖w−w̄‖²/(MK) + silos + noise.",
         "lemma", symbols=DISTANCE, example={"N": 100, "M": 50})  # fmt: skip
def svrg_variance(*, n: int, d: int, N: int, M: float, K: int, beta: float, upsilon: float, sigma: float,
                  distance: float, reading: Reading = "right") -> Result:  # fmt: skip
    """8β²‖w−w̄‖²/(MK) + 2(N−M)υ²/(M(N−1)) + dσ²/M with σ² = σ1²+σ2² (non-convex paper, Lemma E.3).

    The printed first term has the indicator of MK < Nn, from Lemma F.2, which draws without replacement; Algorithm 1
    draws with replacement, where a batch of n has variance too.
    """
    require(M <= N, "silos in a round", "M", M, f"at most N = {N}")
    require(n >= K, "a sample of the silo", "K", K, f"at most n = {n}")
    full = reading == "printed" and N * n <= M * K
    terms = {"sampling": 0.0 if full else 8 * beta**2 * distance / (M * K),
             "silos": 2 * (N - M) * upsilon**2 / (M * max(N - 1, 1)), "noise": d * sigma**2 / M}  # fmt: skip
    return Result(sum(terms.values()), terms)


@theorem("nonconvex-lemma-F.1", "Lemma F.1", "SPIDER's error r rounds into a phase: τ2² Σ‖w_t − w_{t−1}‖² + τ1².",
         "lemma", symbols=DISTANCE)  # fmt: skip
def spider_error(*, tau1: float, tau2: float, distance: float) -> Result:
    """τ2²·Σ‖w_t−w_{t−1}‖² + τ1² (non-convex paper, Lemma F.1); `distance` is the sum of squared moves in the phase."""
    return Result(tau2**2 * distance + tau1**2, {"moves": tau2**2 * distance, "fresh": tau1**2})


@theorem("nonconvex-lemma-F.2", "Lemma F.2",
         "Mean of Ñ centred vectors sampled without replacement: exact second moment.",
         "lemma", symbols=DISTANCE)  # fmt: skip
def sampled_mean(*, population: int, sample: int, size: float) -> Result:
    """(Ñ−M̃)/((Ñ−1)M̃)·Σ‖a_l‖²/Ñ, exact (non-convex paper, Lemma F.2); term `bound`: 1{M̃ < Ñ}Σ‖a_l‖²/(M̃Ñ).

    For a uniform subset of single vectors. Records of M whole silos are no such subset: silos are the vectors then.
    """
    require(sample <= population, "a sample without replacement", "sample", sample, f"at most {population}")
    exact = (population - sample) / (max(population - 1, 1) * sample) * size / population
    return Result(exact, {"bound": size / (sample * population) if sample < population else 0.0})


@theorem("nonconvex-clusters", "Theorem F.1, τ1² for M < N",
         "Full-batch gradients of M of N silos: variance (N−M)/((N−1)M)·υ², not 2L²/(Mn).", "lemma",
         symbols=DISTANCE | {"gap": positive("largest distance of a silo gradient", "loss / parameter", 1.0)},
         example={"N": 100, "M": 50})  # fmt: skip
def silo_draw(*, n: int, N: int, M: float, L: float, upsilon: float, reading: Reading = "right") -> Result:
    """Variance of the mean of M of N full-batch silo gradients (non-convex paper, τ1² in the proof of Theorem F.1).

    (N−M)/((N−1)M)·υ² by Lemma F.2 on silos. Printed 2L²/(Mn) for M < N, from pooling records: for N = 2, M = 1 and silo
    gradients ±L the variance is L², the printed bound 2L²/n.
    """
    require(M <= N, "silos in a round", "M", M, f"at most N = {N}")
    if reading == "printed":
        return Result(2 * L**2 / (M * n) if M < N else 0.0)
    return Result((N - M) / (max(N - 1, 1) * M) * upsilon**2)
