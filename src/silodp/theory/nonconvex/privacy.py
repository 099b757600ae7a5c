"""Privacy statements of the non-convex paper: zCDP, composition, the noise of its algorithms, shuffled sums."""

from functools import partial
from math import ceil, exp, log, sqrt

from silodp.theory.theorem import Result, Symbol, at_least, expm1, fraction, positive, require_at_most, theorem

RHO = {"rho": positive("zCDP parameter ρ", "nat", 0.01)}
SLACK = {"delta_slack": fraction("slack δ'", "probability", 1e-6)}
SPIDER = {"q": at_least(1, "rounds between two fresh gradients", "rounds", 4, integer=True)}
SVRG = {
    "S": at_least(1, "restarts", "restarts", 3, integer=True),
    "E": at_least(1, "epochs", "epochs", 5, integer=True),
    "Q": at_least(1, "steps of an epoch", "steps", 2, integer=True),
}
VECTOR = {
    "epsilon": Symbol("privacy loss ε", "nat", 1.0, 0.0, 15.0, low_open=True),
    "delta": Symbol("failure probability δ", "probability", 1e-6, 0.0, 0.5, True, True),
}
SCALAR = {
    "g": at_least(1, "levels of the rounding", "messages", 20, integer=True),
    "b": at_least(0, "noise bits of a participant", "messages", 10, integer=True),
    "p": Symbol("probability of a noise bit", "probability", 0.25, 0.0, 0.5, True, True),
    "width": positive("range of the inputs, 2L in Algorithm 5", "as the input", 2.0),
}
USER = {"epsilon": Symbol("privacy loss ε of a user", "nat", 1.0, 0.0, 1.0, low_open=True)}

privacy = partial(theorem, kind="privacy")


def check_zcdp(epsilon, delta) -> None:
    """Assumption ε ≤ 2 ln(1/δ) of the conversion from ε²/(8 ln(1/δ))-zCDP."""
    require_at_most("conversion from zCDP", 2 * log(1 / delta), "2ln(1/δ)", epsilon=epsilon)


def check_svrg(epsilon, delta) -> None:
    """Assumption ε ≤ min{2 ln(2/δ), 15} of Theorem E.2."""
    require_at_most("advanced composition", min(2 * log(2 / delta), 15.0), "min(2ln(2/δ), 15)", epsilon=epsilon)


def check_prox_sgd(epsilon, delta) -> None:
    """Assumption ε ≤ min{8 ln(1/δ), 15} of Theorem E.1, as printed."""
    require_at_most("privacy of Theorem 2.1", min(8 * log(1 / delta), 15.0), "min(8ln(1/δ), 15)", epsilon=epsilon)


def check_spider(epsilon, delta) -> None:
    """Assumption ε ≤ ln(1/δ) of Theorem F.2."""
    require_at_most("advanced composition", log(1 / delta), "ln(1/δ)", epsilon=epsilon)


@privacy("nonconvex-D.1", "Proposition D.1", symbols=RHO)
def zcdp_to_dp(*, rho, delta):
    """A ρ-zCDP algorithm is (ρ + 2√(ρ ln(1/δ)), δ)-DP."""
    return Result(rho + 2 * sqrt(rho * log(1 / delta)))


@privacy("nonconvex-D.1-short", "Proposition D.1, in particular")
def dp_to_zcdp(*, epsilon, delta):
    """ε²/(8 ln(1/δ))-zCDP implies (ε, δ)-DP for ε ≤ 2 ln(1/δ).

    Term `converted`: the ε that ρ gives back; it stays below ε up to (8−4√2) ln(1/δ) = 2.34 ln(1/δ).
    """
    check_zcdp(epsilon, delta)
    rho = epsilon**2 / (8 * log(1 / delta))
    return Result(rho, {"converted": rho + 2 * sqrt(rho * log(1 / delta))})


@privacy("nonconvex-D.2", "Proposition D.2")
def gaussian_variance(*, sensitivity, epsilon, delta):
    """Gaussian noise of variance 4Δ² ln(1/δ)/ε² is (ε, δ)-DP for ε ≤ 2 ln(1/δ)."""
    check_zcdp(epsilon, delta)
    variance = 4 * sensitivity**2 * log(1 / delta) / epsilon**2
    return Result(variance, {"sigma": sqrt(variance), "rho": sensitivity**2 / (2 * variance)})


@privacy("nonconvex-composition", "Theorem D.1", symbols=SLACK, epsilon=0.1, delta=1e-9)
def advanced_composition(*, R, epsilon, delta, delta_slack):
    """R adaptive (ε, δ)-DP steps are (√(2R ln(1/δ'))ε + Rε(e^ε−1), Rδ+δ')-DP."""
    value = sqrt(2 * R * log(1 / delta_slack)) * epsilon + R * epsilon * expm1(epsilon)
    return Result(value, {"delta": R * delta + delta_slack, "basic": R * epsilon})


@privacy("nonconvex-lemma-D.1", "Lemma D.1", symbols=RHO)
def zcdp_composition(*, R, rho):
    """The composition of R ρ-zCDP mechanisms is Rρ-zCDP."""
    return Result(R * rho)


@privacy("nonconvex-2.1-noise", "Theorem 2.1 / E.1, privacy of part 1 (Algorithm 6)", K=50)
def prox_sgd_noise(*, K, L, epsilon, delta, reading="right"):
    """One-pass Prox-SGD with σ² = 16L² ln(1/δ)/(ε²K²) is (ε, δ)-ISRL-DP.

    Proposition D.2 at sensitivity 2L/K. Printed: 8 for 16, and another range of ε. The exact Gaussian mechanism grants
    the printed noise up to ε = 6.25, 6.98, 7.97, 8.34, 9.43 for δ = 1e-2, 1e-3, 1e-5, 1e-6, 1e-10, and not beyond.
    """
    (check_zcdp if reading == "right" else check_prox_sgd)(epsilon, delta)
    variance = (16 if reading == "right" else 8) * L**2 * log(1 / delta) / (epsilon * K) ** 2
    return Result(variance, {"sigma": sqrt(variance)})


@privacy("nonconvex-2.2-noise", "Theorem 2.2 / E.2, privacy of part 1 (Algorithms 1, 2)", symbols=SVRG)
def svrg_noise(*, n, S, E, Q, L, epsilon, delta, reading="right"):
    """Prox-PL-SVRG with its σ1², σ2² and K ≥ εn/(4√(2SR ln(2/δ))) is (ε, δ)-ISRL-DP.

    The value is σ2²; R = EQ. Printed: ln(5E/δ), and ln(2.5R/δ), which its proof has as ln(5R/δ); S restarts share δ as
    well as ε.
    """
    check_svrg(epsilon, delta)
    R = E * Q
    first, second = (5 * S * E, 5 * S * R) if reading == "right" else (5 * E, 2.5 * R)
    base = L**2 * S * log(2 / delta) / (epsilon * n) ** 2
    sigma1, sigma2 = 256 * base * E * log(first / delta), 1024 * base * R * log(second / delta)
    least = max(1, ceil(epsilon * n / (4 * sqrt(2 * S * R * log(2 / delta)))))
    return Result(sigma2, {"sigma1_squared": sigma1, "sigma2_squared": sigma2, "smallest_batch": float(least)})


@privacy("nonconvex-2.2-shuffled-noise", "Algorithms 8 and 9", symbols=SVRG | VECTOR, M=50, N=100)
def shuffled_svrg_budget(*, n, N, M, K, E, Q, S, epsilon, delta, reading="right"):
    """What Algorithm 8 hands to P_vec: ε̃ of its difference messages and of its full-batch messages.

    The value is ε̃ of line 10. Line 7 uses all n records, so K → n there; as printed it takes the ε̃ of line 10, which
    fits its share of the budget, ε/(4√(2E ln(2/δ))), only for Q ≤ 8 steps an epoch. A restart gets ε/(2√(2S ln(2/δ))),
    which advanced composition needs; Algorithm 9 prints ε/(2√(2S)), without the logarithm. For S = 1 the budget is
    undivided.
    """
    require_at_most("a sample of the silo", n, "n", K=K)
    logs = log(2 / delta) if reading == "right" else 1.0
    restart = (epsilon, delta) if S == 1 else (epsilon / (2 * sqrt(2 * S * logs)), delta / (2 * S))
    root = 8 * M * sqrt(4 * E * Q * log(2 / restart[1]))
    difference = restart[0] * N * n / (root * K)
    terms = {
        "full_batch": restart[0] * N / root if reading == "right" else difference,
        "delta": restart[1] / (2 * E * Q),
        "epsilon_restart": restart[0],
        "delta_restart": restart[1],
    }
    return Result(difference, terms)


@privacy("nonconvex-3.1-noise", "Theorem 3.1 / F.1, privacy (Algorithm 3)", symbols=SPIDER)
def spider_noise(*, n, R, q, L, beta, epsilon, delta, reading="right"):
    """SPIDER's σ1², σ2², σ̂2² with full batches; both kinds of message together have to fit the budget.

    The value is σ1²; `rho` is the zCDP of the transcript. Fresh gradients and differences each spend about
    ε²/(8 ln(1/δ)) with the printed variances; the right reading multiplies all three by the same factor so that the
    ⌈R/q⌉ fresh messages and R − ⌈R/q⌉ differences of rounds 0 … R−1 together spend just that.
    """
    check_zcdp(epsilon, delta)
    unit = log(1 / delta) / (epsilon * n) ** 2
    budget = epsilon**2 / (8 * log(1 / delta))
    # The printed loop runs r = 0 … R, one round more than R.
    rounds = R if reading == "right" else R + 1
    fresh = ceil(rounds / q)
    share = fresh / max(R / q, 1.0) + (rounds - fresh) / R
    factor = share if reading == "right" else 1.0
    terms = {
        "sigma2_squared": 16 * beta**2 * R * unit * factor,
        "sigma2_hat_squared": 64 * L**2 * R * unit * factor,
        "rho": budget * share / factor,
        "rho_budget": budget,
        "messages": float(rounds),
    }
    return Result(16 * L**2 * max(R / q, 1.0) * unit * factor, terms)


@privacy("nonconvex-3.2-budget", "Theorem 3.2 / F.2, privacy (Algorithm 10)", symbols=SPIDER | VECTOR, M=50, N=100)
def shuffled_spider_budget(*, N, M, R, q, epsilon, delta, reading="right"):
    """What Algorithm 10 hands to P_vec for fresh gradients and for differences.

    The value is ε of a difference, with K = n. A fresh gradient gets √q of that when q ≤ R, and √R of it, the whole
    budget of one release, when q > R. Printed: divided by max{1, √q/√R}, which is √R of it for every q ≤ R. δ'' = qδ'
    (printed √q δ').
    """
    check_spider(epsilon, delta)
    whole = epsilon * N / (4 * M * sqrt(2 * log(1 / delta)))
    fresh = whole * min(sqrt(q / R), 1.0) if reading == "right" else whole / max(1.0, sqrt(q / R))
    small = delta / (2 * R)
    terms = {"fresh": fresh, "delta": small, "delta_fresh": small * (q if reading == "right" else sqrt(q))}
    return Result(whole / sqrt(R), terms)


@privacy("nonconvex-vector-sum", "Theorem D.2", constant="hidden", symbols=VECTOR)
def vector_sum_variance(*, d, L, epsilon, delta):
    """P_vec is (ε, δ)-SDP, unbiased, of variance O(dL² ln²(d/δ)/ε²)."""
    return Result(d * L**2 * log(d / delta) ** 2 / epsilon**2)


@theorem("nonconvex-scalar-sum", "Algorithms 4 and 5", "lemma", symbols=SCALAR)
def scalar_sum_variance(*, N, g, b, p, width):
    """Variance of P_1D's estimate of a sum: rounding plus binomial noise.

    The largest over N inputs in [0, width]. Rounding of x adds (width/g)²·f(1−f), f the fraction of xg/width. Unbiased
    exactly because pbN is subtracted. Algorithm 5 shifts by L into [0, 2L], so its width is 2L and the shift to undo is
    N·L.
    """
    scale = (width / g) ** 2 * N
    return Result(scale * (0.25 + b * p * (1 - p)), {"rounding": scale / 4, "noise": scale * b * p * (1 - p)})


@privacy("nonconvex-G", "Appendix G", symbols=USER)
def hybrid_budget(*, n, epsilon, delta):
    """Budget of an ISRL-DP algorithm that is to be (ε, δ)-user-level DP.

    Term `delta_user`: what the user is left with, at most δ e/4.
    """
    epsilon0, delta0 = epsilon / n, delta / (4 * n)
    return Result(epsilon0, {"delta0": delta0, "delta_user": n * exp((n - 1) * epsilon0) * delta0})
