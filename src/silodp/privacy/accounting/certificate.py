"""A second upper bound on ε for records drawn without replacement, or one at a time, which composes tightly.

The whole composition is compared with the explicit pair P = (1−q)N(0,1) + qN(s,1) against Q = N(0,1), which is worst
for every quadratic hinge E_Q (P/Q − t)₊² (docs/accounting.md). With L its total loss this gives, for every ε',

    ε ≤ ε' + ln(1 + E[sinh²((L − ε')₊/2)]/δ).

It is tight to a few percent where ε at δ is decided by moments of order above one, and void otherwise.
"""

import math

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from silodp.privacy.accounting.losses import Composition, LossPmf, TiltedLaw, chernoff_order, pair_losses, tilted_law
from silodp.privacy.message_counts import Occurrences

_LEAST_ORDER = 1.02
# The hinge is a second difference over orders: its rounding is 1e-16·λ² of it, which beyond this is no longer nothing.
_MOST_ORDER = 1e5


def certified_epsilon(kinds: list[tuple[Occurrences, int]], delta: float, step: float) -> float:
    """Upper bound on ε at δ, on a lattice of `step`, of releases that draw a record at most once; infinite where void.

    `kinds` are (law of occurrences with J ≤ 1, how many releases).
    """
    total = sum(count for _, count in kinds)
    # What the law leaves out of more than one occurrence is charged as if it gave everything away: given that it never
    # happens, the record is drawn once with probability p_1/(p_0 + p_1).
    delta -= sum(count * occurrences.tail for occurrences, count in kinds)
    if delta <= 0:
        return math.inf
    parts = []
    for occurrences, count in kinds:
        if occurrences.tail > 0:
            weights = occurrences.weights / math.fsum(occurrences.weights)
            occurrences = Occurrences(weights, 0.0, occurrences.shift)
        parts.append((_finite_losses(occurrences, step, 1e-9 * delta / total), count))
    composition = Composition(parts)
    delta -= composition.infinite
    if delta <= 0:
        return math.inf
    order, _ = chernoff_order(composition.log_moment, delta)
    if not _LEAST_ORDER <= order <= _MOST_ORDER:
        return math.inf
    law = tilted_law(composition, order)
    if law is None:
        return math.inf
    return max(float(np.min(law.losses + np.logaddexp(0.0, _log_hinge(law) - math.log(delta)))), 0.0)


def _finite_losses(occurrences: Occurrences, step: float, level: float) -> LossPmf:
    """Losses that stand above the explicit pair's for every quadratic hinge, all finite.

    Any neighbours' losses may be cut at ln T if the mass above, at most the profile at ln T, is charged to δ
    (`infinite`). With r = P/Q, the explicit pair's outcomes r > T may then be merged into one at
    T + √E_Q[(r − T)² | r > T] of the same mass under Q, which is worth more to every hinge (r − t)₊² with t ≤ T.
    """
    q, s = float(occurrences.weights[1]), occurrences.shift
    log_rest = math.log1p(-q) if q < 1 else -math.inf
    x = 2 * s - float(ndtri_exp(math.log(level)))  # where the tail is small even under weights r²
    pmf = pair_losses(occurrences, step, float(np.logaddexp(log_rest, math.log(q) + s * x - s * s / 2)), upper=True)
    cut = float(pmf.losses[-1])
    # r = 1 − q + qX with X = e^(sx − s²/2), so X > k at the cut, where ln k = ln((T − 1 + q)/q).
    x = (cut + math.log(-math.expm1(log_rest - cut)) - math.log(q)) / s + s / 2
    # (X − k)² ≤ X²s²(x − x_k)² and E(g − u)₊² ≤ 2φ(u)/u³ for a normal g, at u = x_k − 2s after weighting by X².
    u = x - 2 * s
    log_square = 2 * math.log(q * s) + s * s + math.log(2) - 3 * math.log(u) - (u * u + math.log(2 * math.pi)) / 2
    log_tail = float(log_ndtr(-x))
    merged = float(np.logaddexp(cut, (log_square - log_tail) / 2))
    place = math.ceil((merged - cut) / step)
    masses = np.append(pmf.masses, np.zeros(place))
    masses[-1] += math.exp(log_tail + cut + place * step)
    return LossPmf(step, pmf.first, masses, pmf.infinite)


def _log_hinge(law: TiltedLaw) -> np.ndarray:
    """(N,) ln E[sinh²((L − ε')₊/2)] at ε' = the lattice losses, erring upwards."""
    order, step = law.order, float(law.losses[1] - law.losses[0])
    weights = (-1.0, 0.25), (0.0, -0.5), (1.0, 0.25)
    hinge = sum(share * law.discounted(order + shift) for shift, share in weights)
    # sinh²(y/2)·e^−λy is largest where e^−y = (λ−1)/(λ+1).
    worst = ((order - 1) / (order + 1)) ** (order - 1) / (order + 1) ** 2
    error = law.outside * worst + law.rounding * sum(
        share / -math.expm1(-(order + shift) * step) for shift, share in weights
    )
    return law.log_scale - order * law.losses + np.log(np.maximum(hinge, 0.0) + error)
