"""Privacy statements of the convex paper: mechanisms, amplification, and the noise of its algorithms.

Throughout, a message is the mean of K gradients of norm at most L, so replacing one record moves it by 2L/K.
"""

from math import ceil, log, log1p, sqrt

from silodp.theory.theorem import Result, exp, expm1, fraction, positive, require, require_at_most, theorem

LOCAL = {
    "K": positive("records drawn out of n", "records", 50.0),
    "epsilon_local": positive("ε of one use", "nat", 0.1),
}
MESSAGE = {
    "epsilon0": positive("ε of a silo's message", "nat", 0.001),
    "delta0": fraction("δ of a silo's message", "probability", 1e-14),
}
ROUND = {
    "epsilon0": positive("ε of a silo's message in a round", "nat", 0.001),
    "delta0": fraction("δ of a silo's message in a round", "probability", 1e-14),
}
HIDDEN_C = {"C": positive("the constant that the paper does not give", "", 1.0)}


def log_factor(R, delta) -> float:
    """ln(2.5R/δ) ln(2/δ), the logarithms of the advanced-composition noise."""
    return log(2.5 * R / delta) * log(2 / delta)


def smallest_batch(n, R, epsilon, delta) -> int:
    """Smallest K that the noise of Algorithms 1 and 2 allows: ⌈εn/(4√(2R ln(2/δ)))⌉."""
    return max(1, ceil(epsilon * n / (4 * sqrt(2 * R * log(2 / delta)))))


def check_epsilon(epsilon, delta) -> None:
    """Assumption ε ≤ ln(2/δ) of the advanced composition."""
    require_at_most("advanced composition", log(2 / delta), "ln(2/δ)", epsilon=epsilon)


def shuffled_logs(N, M, R, epsilon, delta) -> float:
    """ln(RM²/(Nδ)) ln(R/δ) ln(1/δ) of Theorem 4.1, whose assumptions on ε and M are checked."""
    check_epsilon(epsilon, delta)
    least = 16 * log(18 * R * M**2 / (N * delta))
    require(least <= M, "enough shuffled messages", "M", M, f"between {least:.6g} and N = {N}")
    return log(R * M**2 / (N * delta)) * log(R / delta) * log(1 / delta)


@theorem("convex-gaussian", "Appendix D.2 (its reference [DR14, Theorem A.1])", "privacy")
def gaussian_noise(*, sensitivity, epsilon, delta):
    """Gaussian noise of √(2 ln(1.25/δ)) sensitivities over ε gives (ε, δ)-DP for ε ≤ 1."""
    require_at_most("classical Gaussian mechanism", 1, epsilon=epsilon)
    return Result(sensitivity * sqrt(2 * log(1.25 / delta)) / epsilon)


@theorem("convex-subsampling", "Appendix D.2 (its reference [Ull17])", "amplification", symbols=LOCAL)
def subsampling(*, n, K, epsilon_local):
    """A mechanism of ε̃ ≤ 1 on K of n records drawn at random is 2ε̃K/n-private in ε.

    δ̃ stays. Term `exact`: without replacement; the short form lies above it up to ε̃ = 1.2564. Under drawing with
    replacement a record may occur several times in the batch; then ε̃ has to hold for the multiplicity as well.
    """
    require_at_most("a sample of the silo", n, "n", K=K)
    require_at_most("amplification by subsampling", 1, epsilon_local=epsilon_local)
    return Result(2 * epsilon_local * K / n, {"exact": log1p(K * expm1(epsilon_local) / n)})


@theorem("convex-2.1-noise", "Theorem 2.1, privacy", "privacy", R=25, n=1000, K=500)
def minibatch_noise(*, n, R, L, epsilon, delta, K=None):
    """Algorithm 1 with σ² = 256L²R ln(2.5R/δ)ln(2/δ)/(n²ε²) is (ε, δ)-ISRL-DP if K is large enough.

    Also the noise of Theorems 2.2, 2.4 and D.1.
    """
    check_epsilon(epsilon, delta)
    least = smallest_batch(n, R, epsilon, delta)
    if K is not None:
        require(least <= K <= n, "batch size for amplification", "K", K, f"between {least} and n = {n}")
    variance = 256 * L**2 * R * log_factor(R, delta) / (n * epsilon) ** 2
    return Result(variance, {"sigma": sqrt(variance), "smallest_batch": float(least)})


@theorem("convex-2.1-moments", "remark after Theorem 2.1", "privacy")
def moments_noise(*, n, R, L, epsilon, delta):
    """The moments form of the noise, σ² = 8L²R ln(1/δ)/(n²ε²), with ε ≤ 2 ln(1/δ) and a range for K.

    The range is as printed; the non-convex paper (H.2) takes its upper end as the smallest K. The result behind the
    form hides its constants, so the form is no guarantee at a given ε.
    """
    require_at_most("moments form", 2 * log(1 / delta), "2ln(1/δ)", epsilon=epsilon)
    variance = 8 * L**2 * R * log(1 / delta) / (n * epsilon) ** 2
    low, high = n * sqrt(epsilon / (8 * R * log(1 / delta))), n * sqrt(epsilon / (4 * R))
    terms = {"sigma": sqrt(variance), "K_above": low, "K_at_most": high}
    return Result(variance, terms, ("no proof at a given point: account for it numerically",))


@theorem("convex-2.3-noise", "Theorem 2.3, privacy", "privacy")
def one_pass_noise(*, L, epsilon, delta):
    """One pass over disjoint records with σ² = 8L² ln(1.25/δ)/ε² is (ε, δ)-ISRL-DP for ε ≤ 1."""
    require_at_most("classical Gaussian mechanism", 1, epsilon=epsilon)
    variance = 8 * L**2 * log(1.25 / delta) / epsilon**2
    return Result(variance, {"sigma": sqrt(variance)})


@theorem("convex-4.1-noise", "Theorem 4.1, privacy", "privacy", constant="hidden", symbols=HIDDEN_C, M=450, N=500)
def shuffled_noise(*, n, N, M, R, L, epsilon, delta, C=1.0):
    """Behind a shuffler σ² = C L²RM ln(RM²/(Nδ)) ln(R/δ) ln(1/δ)/(n²N²ε²) is (ε, δ)-SDP for some C.

    The term `unit` is σ² at C = 1: a calibrated σ² over it is the C that the calibration amounts to.
    """
    unit = L**2 * R * M * shuffled_logs(N, M, R, epsilon, delta) / (n * N * epsilon) ** 2
    return Result(C * unit, {"sigma": sqrt(C * unit), "unit": unit})


@theorem("convex-C.1", "Appendix C.1", "privacy")
def central_from_local(*, epsilon, delta):
    """(ε, δ)-ISRL-DP implies (ε, δ)-central DP."""
    return Result(epsilon, {"delta": delta})


@theorem("convex-C.2", "Appendix C.2", "privacy", n=10, epsilon=0.1)
def user_level(*, n, epsilon, delta):
    """(ε, δ)-ISRL-DP implies (nε, n e^((n−1)ε) δ)-user-level DP.

    Term `delta_exact`: the geometric sum of group privacy, which the printed form bounds. Also in Appendix B of the
    non-convex paper.
    """
    user_delta = n * exp((n - 1) * epsilon) * delta
    notes = () if user_delta < 1 else ("δ of a user exceeds 1: the guarantee is vacuous",)
    return Result(n * epsilon, {"delta": user_delta, "delta_exact": delta * expm1(n * epsilon) / expm1(epsilon)}, notes)


@theorem("convex-E.2", "Theorem E.2, eq. (41)", "amplification", symbols=MESSAGE, N=10000, n=100)
def shuffled_round(*, N, n, epsilon0, delta0, delta, reading="right"):
    """Shuffling N silos amplifies one round's (ε0, δ0)-randomisers.

    The printed failure probability, δ + 2Nn e^((n−1)ε0) δ0, lacks the factor e^ε + 1 that its own Lemma E.6 brings.
    """
    room = N / (16 * log(2 / delta))
    require(room > 1, "enough silos", "N", N, f"above 16 ln(2/δ) = {16 * log(2 / delta):.6g}")
    require_at_most("limit on a silo's message", log(room) / n, epsilon0=epsilon0)
    group = exp(n * epsilon0)
    clones = 8 * sqrt(group * log(4 / delta) / N) + 8 * group / N
    epsilon = log(1 + expm1(epsilon0) / (exp(epsilon0) + 1) * clones)
    excess = 2 * N * n * exp((n - 1) * epsilon0) * delta0
    factor = exp(epsilon) + 1 if reading == "right" else 1.0
    return Result(epsilon, {"delta_tilde": delta + factor * excess, "clones": clones})


@theorem(
    "convex-E.1-corollary", "Corollary E.1 (and Theorem E.1)", "amplification", symbols=ROUND, N=10000, n=100, R=10
)
def shuffled_rounds(*, N, n, R, epsilon0, delta0, reading="right"):
    """R shuffled rounds of a compositional algorithm are (O(ε0 ln(1/(nNδ0))/√N), δ)-central DP.

    With explicit constants: δ_r = Nnδ0 a round and the slack RNnδ0 of the paper's proof, which needs ε_r ≤ 1.2564.
    Printed: δ ≤ 14NnRδ0, from 7Nnδ0 a round; with the factor e^ε+1 of Theorem E.2's right form it is
    (1 + 2e^((n−1)ε0)(e^ε_r+1))Nnδ0 a round, at least 5 and up to 1+4e and more.
    """
    require_at_most("private rounds", 1 / n, "1/n", epsilon0=epsilon0)
    share = N * n * delta0
    require(R * share < 1, "small failure probability", "delta0", delta0, f"below 1/(nNR) = {1 / (n * N * R):.6g}")
    single = shuffled_round(N=N, n=n, epsilon0=epsilon0, delta0=delta0, delta=share, reading=reading)
    small = single.value <= 1.2564
    require(small, "advanced composition", "epsilon0", epsilon0, "small enough for ε of a round ≤ 1.2564")
    epsilon = 2 * R * single.value**2 + single.value * sqrt(2 * R * log(1 / (R * share)))
    delta = 14 * R * share if reading == "printed" else R * (share + single.terms["delta_tilde"])
    rate = sqrt(R) * epsilon0 * log(1 / share) / sqrt(N)
    return Result(epsilon, {"delta": delta, "epsilon_round": single.value, "rate": rate})
