"""Privacy statements of the convex paper: mechanisms, amplification, and the noise of its algorithms.

Throughout, a message is the mean of K gradients of norm at most L, so replacing one record of the batch moves it by
2L/K.
"""

from math import ceil, log, log1p, sqrt

from silodp.theory.registry import Reading, Result, exp, expm1, fraction, positive, require, theorem

LOCAL = {
    "K": positive("records drawn out of n", "records", 50.0),
    "epsilon_local": positive("ε of one use", "nat", 0.1),
}


def log_factor(R: float, delta: float) -> float:
    """ln(2.5R/δ) ln(2/δ), the logarithms of the advanced-composition noise."""
    return log(2.5 * R / delta) * log(2 / delta)


def smallest_batch(n: int, R: float, epsilon: float, delta: float) -> int:
    """Smallest K that the noise of Algorithms 1 and 2 allows: ⌈εn/(4√(2R ln(2/δ)))⌉."""
    return max(1, ceil(epsilon * n / (4 * sqrt(2 * R * log(2 / delta)))))


def check_epsilon(epsilon: float, delta: float) -> None:
    """Assumption ε ≤ ln(2/δ) of the advanced composition."""
    limit = log(2 / delta)
    require(epsilon <= limit, "advanced composition", "epsilon", epsilon, f"at most ln(2/δ) = {limit:.6g}")


@theorem("convex-gaussian", "Appendix D.2 (its reference [DR14, Theorem A.1])",
         "Gaussian noise of √(2 ln(1.25/δ)) sensitivities over ε gives (ε, δ)-DP for ε ≤ 1.", "privacy")  # fmt: skip
def gaussian_noise(*, sensitivity: float, epsilon: float, delta: float) -> Result:
    """Standard deviation of the classical Gaussian mechanism, Δ√(2ln(1.25/δ))/ε (convex paper, Appendix D.2). ε ≤ 1."""
    require(epsilon <= 1, "classical Gaussian mechanism", "epsilon", epsilon, "at most 1")
    return Result(sensitivity * sqrt(2 * log(1.25 / delta)) / epsilon)


@theorem("convex-subsampling", "Appendix D.2 (its reference [Ull17])",
         "A mechanism of ε̃ ≤ 1 on K of n records drawn at random is 2ε̃K/n-private in ε.", "amplification",
         symbols=LOCAL)  # fmt: skip
def subsampling(*, n: int, K: float, epsilon_local: float) -> Result:
    """2ε̃K/n (convex paper, Appendix D.2), for ε̃ ≤ 1; δ̃ stays.

    Term `exact`: ln(1 + K(e^ε̃−1)/n), without replacement. The short form lies above it up to ε̃ = 1.2564. Under
    drawing with replacement a record may occur several times in the batch; then ε̃ has to hold for the multiplicity as
    well.
    """
    require(n >= K, "a sample of the silo", "K", K, f"at most n = {n}")
    require(epsilon_local <= 1, "amplification by subsampling", "epsilon_local", epsilon_local, "at most 1")
    return Result(2 * epsilon_local * K / n, {"exact": log1p(K * expm1(epsilon_local) / n)})


@theorem("convex-2.1-noise", "Theorem 2.1, privacy",
         "Algorithm 1 with σ² = 256L²R ln(2.5R/δ)ln(2/δ)/(n²ε²) is (ε, δ)-ISRL-DP if K is large enough.", "privacy",
         example={"R": 25, "n": 1000, "K": 500})  # fmt: skip
def minibatch_noise(*, n: int, R: int, L: float, epsilon: float, delta: float, K: int | None = None) -> Result:
    """σ² of Algorithms 1 and 2 (convex paper, Theorems 2.1, 2.2, 2.4, D.1), and the smallest K it allows.

    σ² = 256 L² R ln(2.5R/δ) ln(2/δ)/(n²ε²), with ε ≤ ln(2/δ) and εn/(4√(2R ln(2/δ))) ≤ K ≤ n.
    """
    check_epsilon(epsilon, delta)
    least = smallest_batch(n, R, epsilon, delta)
    if K is not None:
        require(least <= K <= n, "batch size for amplification", "K", K, f"between {least} and n = {n}")
    variance = 256 * L**2 * R * log_factor(R, delta) / (n * epsilon) ** 2
    return Result(variance, {"sigma": sqrt(variance), "smallest_batch": float(least)})


@theorem("convex-2.1-moments", "remark after Theorem 2.1",
         "The moments form of the noise, σ² = 8L²R ln(1/δ)/(n²ε²), with ε ≤ 2 ln(1/δ) and a range for K.",
         "privacy")  # fmt: skip
def moments_noise(*, n: int, R: int, L: float, epsilon: float, delta: float) -> Result:
    """σ² of the moments form (convex paper, remark after Theorem 2.1), and the range of K as printed.

    K lies in (n√(ε/(8R ln(1/δ))), n√(ε/(4R))]; the non-convex paper (H.2) takes the upper end as the smallest K. The
    result behind it hides its constants, so the form is no guarantee at a given ε: account for it numerically.
    """
    limit = 2 * log(1 / delta)
    require(epsilon <= limit, "moments form", "epsilon", epsilon, f"at most 2ln(1/δ) = {limit:.6g}")
    variance = 8 * L**2 * R * log(1 / delta) / (n * epsilon) ** 2
    low, high = n * sqrt(epsilon / (8 * R * log(1 / delta))), n * sqrt(epsilon / (4 * R))
    return Result(variance, {"sigma": sqrt(variance), "K_above": low, "K_at_most": high},
                  ("no proof at a given point: account for it numerically",))  # fmt: skip


@theorem("convex-2.3-noise", "Theorem 2.3, privacy",
         "One pass over disjoint records with σ² = 8L² ln(1.25/δ)/ε² is (ε, δ)-ISRL-DP for ε ≤ 1.",
         "privacy")  # fmt: skip
def one_pass_noise(*, L: float, epsilon: float, delta: float) -> Result:
    """σ² of the one-pass algorithm (convex paper, Theorem 2.3): the classical Gaussian mechanism at sensitivity 2L."""
    require(epsilon <= 1, "classical Gaussian mechanism", "epsilon", epsilon, "at most 1")
    variance = 8 * L**2 * log(1.25 / delta) / epsilon**2
    return Result(variance, {"sigma": sqrt(variance)})


@theorem("convex-4.1-noise", "Theorem 4.1, privacy",
         "Behind a shuffler σ² = C L²RM ln(RM²/(Nδ)) ln(R/δ) ln(1/δ)/(n²N²ε²) is (ε, δ)-SDP for some C.", "privacy",
         constant="hidden", symbols={"C": positive("the constant that the paper does not give", "", 1.0)},
         example={"M": 450, "N": 500})  # fmt: skip
def shuffled_noise(*, n: int, N: int, M: float, R: int, L: float, epsilon: float, delta: float,
                   C: float = 1.0) -> Result:  # fmt: skip
    """σ² of Algorithm 1 behind a shuffler (convex paper, Theorem 4.1), for a constant C of the caller's.

    Assumes ε ≤ ln(2/δ) and 16 ln(18RM²/(Nδ)) ≤ M ≤ N. The term `unit` is σ² at C = 1: a calibrated σ² over it is the C
    that the calibration amounts to.
    """
    check_epsilon(epsilon, delta)
    least = 16 * log(18 * R * M**2 / (N * delta))
    require(least <= M <= N, "enough shuffled messages", "M", M, f"between {least:.6g} and N = {N}")
    logs = log(R * M**2 / (N * delta)) * log(R / delta) * log(1 / delta)
    unit = L**2 * R * M * logs / (n * N * epsilon) ** 2
    return Result(C * unit, {"sigma": sqrt(C * unit), "unit": unit})


@theorem("convex-C.1", "Appendix C.1", "(ε, δ)-ISRL-DP implies (ε, δ)-central DP.", "privacy")
def central_from_local(*, epsilon: float, delta: float) -> Result:
    """ε of the central guarantee of an (ε, δ)-ISRL-DP algorithm (convex paper, Appendix C.1): the same ε and δ."""
    return Result(epsilon, {"delta": delta})


@theorem("convex-C.2", "Appendix C.2", "(ε, δ)-ISRL-DP implies (nε, n e^((n−1)ε) δ)-user-level DP.", "privacy",
         example={"n": 10, "epsilon": 0.1})  # fmt: skip
def user_level(*, n: int, epsilon: float, delta: float) -> Result:
    """nε with n e^((n−1)ε) δ (convex paper, Appendix C.2; non-convex paper, Appendix B), by group privacy.

    Term `delta_exact`: the geometric sum δ(e^(nε)−1)/(e^ε−1) of group privacy, which the printed form bounds.
    """
    user_delta = n * exp((n - 1) * epsilon) * delta
    notes = () if user_delta < 1 else ("δ of a user exceeds 1: the guarantee is vacuous",)
    terms = {"delta": user_delta, "delta_exact": delta * expm1(n * epsilon) / expm1(epsilon)}
    return Result(n * epsilon, terms, notes)


@theorem("convex-E.2", "Theorem E.2, eq. (41)", "Shuffling N silos amplifies one round's (ε0, δ0)-randomisers.",
         "amplification",
         symbols={"epsilon0": positive("ε of a silo's message", "nat", 0.001),
                  "delta0": fraction("δ of a silo's message", "probability", 1e-14)},
         example={"N": 10000, "n": 100})  # fmt: skip
def shuffled_round(*, N: int, n: int, epsilon0: float, delta0: float, delta: float,
                   reading: Reading = "right") -> Result:  # fmt: skip
    """ε of one shuffled round (convex paper, Theorem E.2), at the failure probability in the term `delta_tilde`.

    ε = ln[1 + (e^ε0−1)/(e^ε0+1) · (8√(e^(nε0) ln(4/δ))/√N + 8e^(nε0)/N)], for ε0 ≤ ln(N/(16 ln(2/δ)))/n. The printed
    failure probability δ + 2Nn e^((n−1)ε0) δ0 lacks the factor e^ε + 1 that its own Lemma E.6 brings.
    """
    room = N / (16 * log(2 / delta))
    require(room > 1, "enough silos", "N", N, f"above 16 ln(2/δ) = {16 * log(2 / delta):.6g}")
    limit = log(room) / n
    require(epsilon0 <= limit, "limit on a silo's message", "epsilon0", epsilon0, f"at most {limit:.6g}")
    group = exp(n * epsilon0)
    clones = 8 * sqrt(group * log(4 / delta) / N) + 8 * group / N
    epsilon = log(1 + expm1(epsilon0) / (exp(epsilon0) + 1) * clones)
    excess = 2 * N * n * exp((n - 1) * epsilon0) * delta0
    factor = exp(epsilon) + 1 if reading == "right" else 1.0
    return Result(epsilon, {"delta_tilde": delta + factor * excess, "clones": clones})


@theorem("convex-E.1-corollary", "Corollary E.1 (and Theorem E.1)",
         "R shuffled rounds of a compositional algorithm are (O(ε0 ln(1/(nNδ0))/√N), δ)-central DP.", "amplification",
         symbols={"epsilon0": positive("ε of a silo's message in a round", "nat", 0.001),
                  "delta0": fraction("δ of a silo's message in a round", "probability", 1e-14)},
         example={"N": 10000, "n": 100, "R": 10})  # fmt: skip
def shuffled_rounds(*, N: int, n: int, R: int, epsilon0: float, delta0: float, reading: Reading = "right") -> Result:
    """Central ε of R shuffled rounds, each (ε0, δ0) a silo (convex paper, Corollary E.1), with explicit constants.

    δ_r = Nnδ0 a round and the same slack δ1 = RNnδ0 as in the paper's proof; ε = 2Rε_r² + ε_r√(2R ln(1/δ1)), which
    needs ε_r ≤ 1.2564. Printed: δ ≤ 14NnRδ0, from 7Nnδ0 a round; with the factor e^ε+1 of Theorem E.2's right form it
    is (1 + 2e^((n−1)ε0)(e^ε_r+1))Nnδ0 a round, at least 5 and up to 1+4e and more. Assumes ε0 ≤ 1/n.
    """
    require(epsilon0 <= 1 / n, "private rounds", "epsilon0", epsilon0, f"at most 1/n = {1 / n:.6g}")
    share = N * n * delta0
    require(R * share < 1, "small failure probability", "delta0", delta0, f"below 1/(nNR) = {1 / (n * N * R):.6g}")
    one = shuffled_round(N=N, n=n, epsilon0=epsilon0, delta0=delta0, delta=share, reading=reading)
    require(one.value <= 1.2564, "advanced composition", "epsilon0", epsilon0, "small enough for ε of a round ≤ 1.2564")
    epsilon = 2 * R * one.value**2 + one.value * sqrt(2 * R * log(1 / (R * share)))
    delta = 14 * R * share if reading == "printed" else R * (share + one.terms["delta_tilde"])
    rate = sqrt(R) * epsilon0 * log(1 / share) / sqrt(N)
    return Result(epsilon, {"delta": delta, "epsilon_round": one.value, "rate": rate})
