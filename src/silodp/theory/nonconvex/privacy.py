"""Privacy statements of the non-convex paper: zCDP, composition, the noise of its algorithms, shuffled sums."""

from math import ceil, exp, log, sqrt

from silodp.theory.registry import Reading, Result, Symbol, at_least, expm1, fraction, positive, require, theorem

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


def check_zcdp(epsilon: float, delta: float) -> None:
    """Assumption ε ≤ 2 ln(1/δ) of the conversion from ε²/(8 ln(1/δ))-zCDP."""
    limit = 2 * log(1 / delta)
    require(epsilon <= limit, "conversion from zCDP", "epsilon", epsilon, f"at most 2ln(1/δ) = {limit:.6g}")


def _check_svrg(epsilon: float, delta: float) -> None:
    limit = min(2 * log(2 / delta), 15.0)
    require(epsilon <= limit, "advanced composition", "epsilon", epsilon, f"at most min(2ln(2/δ), 15) = {limit:.6g}")


@theorem("nonconvex-D.1", "Proposition D.1", "A ρ-zCDP algorithm is (ρ + 2√(ρ ln(1/δ)), δ)-DP.", "privacy",
         symbols={"rho": positive("zCDP parameter ρ", "nat", 0.01)})  # fmt: skip
def zcdp_to_dp(*, rho: float, delta: float) -> Result:
    """ρ + 2√(ρ ln(1/δ)) (non-convex paper, Proposition D.1)."""
    return Result(rho + 2 * sqrt(rho * log(1 / delta)))


@theorem("nonconvex-D.1-short", "Proposition D.1, in particular",
         "ε²/(8 ln(1/δ))-zCDP implies (ε, δ)-DP for ε ≤ 2 ln(1/δ).", "privacy")  # fmt: skip
def dp_to_zcdp(*, epsilon: float, delta: float) -> Result:
    """ρ = ε²/(8 ln(1/δ)) that suffices for (ε, δ)-DP (non-convex paper, Proposition D.1).

    Term `converted`: the ε that ρ gives back, ε²/(8 ln(1/δ)) + ε/√2; it stays below ε up to (8−4√2) ln(1/δ) = 2.34
    ln(1/δ).
    """
    check_zcdp(epsilon, delta)
    rho = epsilon**2 / (8 * log(1 / delta))
    return Result(rho, {"converted": rho + 2 * sqrt(rho * log(1 / delta))})


@theorem("nonconvex-D.2", "Proposition D.2",
         "Gaussian noise of variance 4Δ² ln(1/δ)/ε² is (ε, δ)-DP for ε ≤ 2 ln(1/δ).",
         "privacy")  # fmt: skip
def gaussian_variance(*, sensitivity: float, epsilon: float, delta: float) -> Result:
    """σ² = 4Δ² ln(1/δ)/ε² (non-convex paper, Proposition D.2); term `rho`: Δ²/(2σ²)."""
    check_zcdp(epsilon, delta)
    variance = 4 * sensitivity**2 * log(1 / delta) / epsilon**2
    return Result(variance, {"sigma": sqrt(variance), "rho": sensitivity**2 / (2 * variance)})


@theorem("nonconvex-composition", "Theorem D.1",
         "R adaptive (ε, δ)-DP steps are (√(2R ln(1/δ'))ε + Rε(e^ε−1), Rδ+δ')-DP.",
         "privacy", symbols={"delta_slack": fraction("slack δ'", "probability", 1e-6)},
         example={"epsilon": 0.1, "delta": 1e-9})  # fmt: skip
def advanced_composition(*, R: int, epsilon: float, delta: float, delta_slack: float) -> Result:
    """√(2R ln(1/δ'))ε + Rε(e^ε−1) (non-convex paper, Theorem D.1); term `delta`: Rδ + δ'. Term `basic`: Rε."""
    value = sqrt(2 * R * log(1 / delta_slack)) * epsilon + R * epsilon * expm1(epsilon)
    return Result(value, {"delta": R * delta + delta_slack, "basic": R * epsilon})


@theorem("nonconvex-lemma-D.1", "Lemma D.1", "The composition of R ρ-zCDP mechanisms is Rρ-zCDP.", "privacy",
         symbols={"rho": positive("zCDP parameter ρ", "nat", 0.01)})  # fmt: skip
def zcdp_composition(*, R: int, rho: float) -> Result:
    """Rρ (non-convex paper, Lemma D.1)."""
    return Result(R * rho)


@theorem("nonconvex-2.1-noise", "Theorem 2.1 / E.1, privacy of part 1 (Algorithm 6)",
         "One-pass Prox-SGD with σ² = 16L² ln(1/δ)/(ε²K²) is (ε, δ)-ISRL-DP.", "privacy",
         example={"K": 50})  # fmt: skip
def prox_sgd_noise(*, K: int, L: float, epsilon: float, delta: float, reading: Reading = "right") -> Result:
    """σ² of Algorithm 6 (non-convex paper, Appendix E.2): Proposition D.2 at sensitivity 2L/K, 16L² ln(1/δ)/(ε²K²).

    Printed: 8 for 16, and ε ≤ min{8 ln(1/δ), 15} where D.2 allows 2 ln(1/δ). The exact Gaussian mechanism grants the
    printed noise up to ε = 6.25, 6.98, 7.97, 8.34, 9.43 for δ = 1e-2, 1e-3, 1e-5, 1e-6, 1e-10, and not beyond.
    """
    if reading == "right":
        check_zcdp(epsilon, delta)
    else:
        limit = min(8 * log(1 / delta), 15.0)
        require(epsilon <= limit, "as printed", "epsilon", epsilon, f"at most min(8ln(1/δ), 15) = {limit:.6g}")
    variance = (16 if reading == "right" else 8) * L**2 * log(1 / delta) / (epsilon * K) ** 2
    return Result(variance, {"sigma": sqrt(variance)})


@theorem("nonconvex-2.2-noise", "Theorem 2.2 / E.2, privacy of part 1 (Algorithms 1, 2)",
         "Prox-PL-SVRG with its σ1², σ2² and K ≥ εn/(4√(2SR ln(2/δ))) is (ε, δ)-ISRL-DP.", "privacy",
         symbols=SVRG)  # fmt: skip
def svrg_noise(*, n: int, S: int, E: int, Q: int, L: float, epsilon: float, delta: float,
               reading: Reading = "right") -> Result:  # fmt: skip
    """σ2² of Algorithm 2, with σ1² and the smallest K as terms (non-convex paper, Theorem E.2, part 1). R = EQ.

    σ1² = 256L²SE ln(2/δ) ln(5SE/δ)/(εn)², σ2² = 1024L²SR ln(2/δ) ln(5SR/δ)/(εn)². Printed: ln(5E/δ), and ln(2.5R/δ),
    which its proof has as ln(5R/δ); S restarts share δ as well as ε. ε ≤ min{2 ln(2/δ), 15}.
    """
    _check_svrg(epsilon, delta)
    R = E * Q
    first, second = (5 * S * E, 5 * S * R) if reading == "right" else (5 * E, 2.5 * R)
    base = L**2 * S * log(2 / delta) / (epsilon * n) ** 2
    sigma1, sigma2 = 256 * base * E * log(first / delta), 1024 * base * R * log(second / delta)
    least = max(1, ceil(epsilon * n / (4 * sqrt(2 * S * R * log(2 / delta)))))
    return Result(sigma2, {"sigma1_squared": sigma1, "sigma2_squared": sigma2, "smallest_batch": float(least)})


@theorem("nonconvex-2.2-shuffled-noise", "Algorithms 8 and 9",
         "What Algorithm 8 hands to P_vec: ε̃ of its difference messages and of its full-batch messages.", "privacy",
         symbols=SVRG | VECTOR, example={"M": 50, "N": 100})  # fmt: skip
def shuffled_svrg_budget(*, n: int, N: int, M: float, K: int, E: int, Q: int, S: int, epsilon: float, delta: float,
                         reading: Reading = "right") -> Result:  # fmt: skip
    """ε̃ = εNn/(8MK√(4EQ ln(2/δ))) for line 10 (non-convex paper, Algorithm 8), the rest as terms.

    Line 7 uses all n records, so K → n there; as printed it takes the ε̃ of line 10, which fits its share of the budget,
    ε/(4√(2E ln(2/δ))), only for Q ≤ 8 steps an epoch. A restart gets ε/(2√(2S ln(2/δ))), which advanced composition
    needs; Algorithm 9 prints ε/(2√(2S)), without the logarithm. For S = 1 the budget is undivided.
    """
    require(M <= N, "silos in a round", "M", M, f"at most N = {N}")
    require(n >= K, "a sample of the silo", "K", K, f"at most n = {n}")
    logs = log(2 / delta) if reading == "right" else 1.0
    restart = (epsilon, delta) if S == 1 else (epsilon / (2 * sqrt(2 * S * logs)), delta / (2 * S))
    root = 8 * M * sqrt(4 * E * Q * log(2 / restart[1]))
    difference = restart[0] * N * n / (root * K)
    full = restart[0] * N / root if reading == "right" else difference
    return Result(difference, {"full_batch": full, "delta": restart[1] / (2 * E * Q), "epsilon_restart": restart[0],
                               "delta_restart": restart[1]})  # fmt: skip


@theorem("nonconvex-3.1-noise", "Theorem 3.1 / F.1, privacy (Algorithm 3)",
         "SPIDER's σ1², σ2², σ̂2² with full batches; both kinds of message together have to fit the budget.", "privacy",
         symbols=SPIDER)  # fmt: skip
def spider_noise(*, n: int, R: int, q: int, L: float, beta: float, epsilon: float, delta: float,
                 reading: Reading = "right") -> Result:  # fmt: skip
    """σ1² of Algorithm 3 with σ2², σ̂2² and the zCDP of the transcript as terms (non-convex paper, Theorem F.1).

    Printed: σ1² = 16L² ln(1/δ) max(R/q, 1)/(εn)², σ2² = 16β²R ln(1/δ)/(εn)², σ̂2² = 64L²R ln(1/δ)/(εn)². Fresh
    gradients and differences each spend about ε²/(8 ln(1/δ)) with these; the right reading multiplies all three by the
    same factor so that the ⌈R/q⌉ fresh messages and R − ⌈R/q⌉ differences of rounds 0 … R−1 together spend just that.
    """
    check_zcdp(epsilon, delta)
    unit = log(1 / delta) / (epsilon * n) ** 2
    budget = epsilon**2 / (8 * log(1 / delta))
    # The printed loop runs r = 0 … R, one round more than R.
    rounds = R if reading == "right" else R + 1
    fresh = ceil(rounds / q)
    share = fresh / max(R / q, 1.0) + (rounds - fresh) / R
    factor = share if reading == "right" else 1.0
    variances = (16 * L**2 * max(R / q, 1.0) * unit * factor, 16 * beta**2 * R * unit * factor,
                 64 * L**2 * R * unit * factor)  # fmt: skip
    terms = {"sigma2_squared": variances[1], "sigma2_hat_squared": variances[2], "rho": budget * share / factor}
    return Result(variances[0], terms | {"rho_budget": budget, "messages": float(rounds)})


@theorem("nonconvex-3.2-budget", "Theorem 3.2 / F.2, privacy (Algorithm 10)",
         "What Algorithm 10 hands to P_vec for fresh gradients and for differences.", "privacy",
         symbols=SPIDER | VECTOR, example={"M": 50, "N": 100})  # fmt: skip
def shuffled_spider_budget(*, N: int, M: float, R: int, q: int, epsilon: float, delta: float,
                           reading: Reading = "right") -> Result:  # fmt: skip
    """ε of P_vec for a difference, εN/(4M√(2R ln(1/δ))), with K = n (non-convex paper, Algorithm 10).

    A fresh gradient gets √q of that when q ≤ R, and √R of it, the whole budget of one release, when q > R. Printed:
    divided by max{1, √q/√R}, which is √R of it for every q ≤ R. δ'' = qδ' (printed √q δ'). Assumes ε ≤ ln(1/δ).
    """
    require(M <= N, "silos in a round", "M", M, f"at most N = {N}")
    limit = log(1 / delta)
    require(epsilon <= limit, "advanced composition", "epsilon", epsilon, f"at most ln(1/δ) = {limit:.6g}")
    whole = epsilon * N / (4 * M * sqrt(2 * limit))
    fresh = whole * min(sqrt(q / R), 1.0) if reading == "right" else whole / max(1.0, sqrt(q / R))
    small = delta / (2 * R)
    terms = {"fresh": fresh, "delta": small, "delta_fresh": small * (q if reading == "right" else sqrt(q))}
    return Result(whole / sqrt(R), terms)


@theorem("nonconvex-vector-sum", "Theorem D.2", "P_vec is (ε, δ)-SDP, unbiased, of variance O(dL² ln²(d/δ)/ε²).",
         "privacy", constant="hidden", symbols=VECTOR)  # fmt: skip
def vector_sum_variance(*, d: int, L: float, epsilon: float, delta: float) -> Result:
    """Rate dL² ln²(d/δ)/ε² of E‖P_vec(X) − Σx_i‖² (non-convex paper, Theorem D.2). ε ≤ 15, δ < 1/2."""
    return Result(d * L**2 * log(d / delta) ** 2 / epsilon**2)


@theorem("nonconvex-scalar-sum", "Algorithms 4 and 5",
         "Variance of P_1D's estimate of a sum: rounding plus binomial noise.", "lemma",
         symbols={"g": at_least(1, "levels of the rounding", "messages", 20, integer=True),
                  "b": at_least(0, "noise bits of a participant", "messages", 10, integer=True),
                  "p": Symbol("probability of a noise bit", "probability", 0.25, 0.0, 0.5, True, True),
                  "width": positive("range of the inputs, 2L in Algorithm 5", "as the input", 2.0)})  # fmt: skip
def scalar_sum_variance(*, N: int, g: int, b: int, p: float, width: float) -> Result:
    """Largest variance (width/g)²·N(1/4 + bp(1−p)) of P_1D over N inputs in [0, width] (non-convex paper, Algorithm 4).

    Rounding of x adds (width/g)²·f(1−f), f the fraction of xg/width; the noise b p(1−p) a participant. Unbiased exactly
    because pbN is subtracted. Algorithm 5 shifts by L into [0, 2L], so its width is 2L and the shift to undo is N·L.
    """
    scale = (width / g) ** 2 * N
    return Result(scale * (0.25 + b * p * (1 - p)), {"rounding": scale / 4, "noise": scale * b * p * (1 - p)})


@theorem("nonconvex-G", "Appendix G", "Budget of an ISRL-DP algorithm that is to be (ε, δ)-user-level DP.", "privacy",
         symbols={"epsilon": Symbol("privacy loss ε of a user", "nat", 1.0, 0.0, 1.0, low_open=True)})  # fmt: skip
def hybrid_budget(*, n: int, epsilon: float, delta: float) -> Result:
    """ε0 = ε/n, with δ0 = δ/(4n) as a term (non-convex paper, Appendix G). ε ≤ 1.

    Term `delta_user`: n e^((n−1)ε0) δ0 ≤ δ e/4.
    """
    epsilon0, delta0 = epsilon / n, delta / (4 * n)
    return Result(epsilon0, {"delta0": delta0, "delta_user": n * exp((n - 1) * epsilon0) * delta0})
