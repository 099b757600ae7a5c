"""Lemmas of the non-convex paper: perturbed minimisers, proximal descent, variances of gradient estimates."""

from functools import partial

from silodp.theory.registry import Result, Symbol, at_least, at_most, positive, theorem, total

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
    at_most("a sample of the silo", n, "n", K=K)
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
    at_most("a sample without replacement", population, sample=sample)
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
