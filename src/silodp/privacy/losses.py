"""Privacy losses of one release on a lattice: from above by connecting the dots of a profile, from below by merging.

A `LossPmf` stands for a pair of distributions by the law of its privacy loss ln(dP/dQ) under P. Rounding errors of
single operations aside, the upper ones dominate and the lower ones are dominated by what they stand for.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr

from silodp.privacy.profiles import Occurrences, replace_one_profile


@dataclass(frozen=True)
class LossPmf:
    """Masses at the losses offset + (first + i)·step, and the mass at an infinite loss.

    Attributes:
        step: distance of neighbouring losses.
        first: lattice index of masses[0].
        masses: (N,) not negative; together with `infinite` they may miss 1 from below (lower) or rounding (upper).
        infinite: mass at an infinite loss.
        offset: shift of the lattice against the multiples of `step`.
    """

    step: float
    first: int
    masses: np.ndarray
    infinite: float = 0.0
    offset: float = 0.0

    @property
    def losses(self) -> np.ndarray:
        """(N,) the finite losses."""
        return self.offset + (self.first + np.arange(len(self.masses))) * self.step


def replace_one_losses(occurrences: Occurrences, step: float, top: float) -> LossPmf:
    """Pessimistic losses of one release under replace-one: a pair that dominates both orders of any neighbours.

    The profile is taken at the multiples of `step` in [−top, top] and interpolated linearly in e^ε ("Connect the
    Dots", Doroshenko et al. 2022, Algorithm 1). The true profile is convex in e^ε and lies below the bound at every
    dot, so it lies below the interpolation; where the bound is not convex the algorithm would put negative mass, and
    dropping that only raises the profile. The bound is symmetric, so a loss of −ℓ weighs e^−ℓ times a loss of ℓ.
    """
    count = int(np.ceil(top / step)) + 1
    profile = np.minimum.accumulate(replace_one_profile(occurrences, np.arange(count + 1) * step))
    gaps = np.diff(profile)
    # Second differences in e^ε, in units that do not overflow.
    inner = (gaps[1:] - np.exp(step) * gaps[:-1]) / np.expm1(step)
    positive = np.maximum(np.append(inner, gaps[-1] / np.expm1(-step)), 0.0)
    losses = np.arange(1, count + 1) * step
    at_zero = (2 * profile[1] - (1 + np.exp(step)) * profile[0]) / np.expm1(step) + 1
    masses = np.concatenate([(positive * np.exp(-losses))[::-1], [max(at_zero, 0.0)], positive])
    return LossPmf(step, -count, masses, float(profile[-1]))


def pair_losses(
    occurrences: Occurrences,
    step: float,
    top: float,
    *,
    upper: bool,
    reverse: bool = False,
    order: float = 0.0,
    part: float | None = None,
) -> LossPmf:
    """Losses of the pair P = Σ_j p_j N(js, 1) against Q = N(0, 1), or of Q against P.

    The pair is what a silo shows whose other records all pull the mean one way and whose own record pulls the other
    way, against the silo where it pulls with them. `upper`: every piece of the real line between two lattice losses
    goes to its two ends, keeping its mass under both P and Q (connect the dots). Otherwise the line is cut half-way
    between lattice losses, each piece merged into one outcome, and all losses rounded down to a common offset: that is
    post-processing, hence dominated, and errs by O(step²) a release only. The offset is ±ln p_0 plus `part` steps;
    without `part` the part that wastes least is taken, losses ℓ mattering by e^(order·ℓ).
    """
    with np.errstate(divide="ignore"):
        floor = float(np.log(occurrences.weights[0]))  # the loss cannot fall below ln p_0, and gathers there
    anchor = 0.0 if upper or not np.isfinite(floor) else floor
    bottom = max(floor, -top)
    first = int(np.floor((bottom - anchor) / step))
    indices = np.arange(first, int(np.ceil((top - anchor) / step)) + 1)
    cuts = anchor + (indices if upper else indices - 0.5) * step
    x = np.concatenate([[-np.inf], _outcome_at(occurrences, cuts), [np.inf]])
    mass_p, mass_q = _piece_masses(occurrences, x)
    if reverse:  # what is cut from P must not make it smaller where P is the one compared against
        mass_p = mass_p + occurrences.tail * ndtr(x[1:] - len(occurrences.weights) * occurrences.shift)
    if reverse:
        mass_p, mass_q, cuts, anchor = mass_q[::-1], mass_p[::-1], -cuts[::-1], -anchor
        indices = -indices[::-1]
    if upper:
        return _connect(mass_p, mass_q, cuts, step, int(indices[0]))
    return _merge(mass_p, mass_q, step, anchor, order, part)


def _outcome_at(occurrences: Occurrences, losses: np.ndarray) -> np.ndarray:
    """Where ln(P/Q)(x) = Σ-of-exponentials takes the given increasing values; −∞ below its infimum ln p_0."""
    p, s = occurrences.weights, occurrences.shift
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
    j = np.arange(len(p))
    x = np.full(len(losses), -np.inf)
    reached = np.flatnonzero(losses > log_p[0])
    goal = losses[reached]
    # ln(e^goal − p_0) is what the terms j ≥ 1 have to make; Newton from the right, where their sum is convex.
    rest = goal + np.log(-np.expm1(log_p[0] - goal)) if p[0] > 0 else goal
    t = np.min((rest[:, None] - log_p[1:]) / (j[1:] * s) + j[1:] * s / 2, axis=1)
    for _ in range(50 if len(p) > 2 else 0):
        terms = log_p[1:] + j[1:] * s * t[:, None] - (j[1:] * s) ** 2 / 2
        total = logsumexp(terms, axis=1)
        move = (total - rest) / (np.exp(terms - total[:, None]) @ (j[1:] * s))
        t -= move
        if np.max(np.abs(move), initial=0.0) < 1e-12 * (1 + np.max(np.abs(t), initial=0.0)):
            break
    x[reached] = t
    return np.maximum.accumulate(x)


def _piece_masses(occurrences: Occurrences, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masses under P and Q of the pieces between consecutive x, each with small relative error in both tails."""
    under_p = np.zeros(len(x) - 1)
    under_q = np.zeros(len(x) - 1)
    for j, weight in enumerate(occurrences.weights):
        y = x - j * occurrences.shift
        left, right = ndtr(y), ndtr(-y)
        piece = np.where(y[:-1] > 0, right[:-1] - right[1:], left[1:] - left[:-1])
        under_p += weight * piece
        if j == 0:
            under_q = piece
    return under_p, under_q


def _connect(mass_p: np.ndarray, mass_q: np.ndarray, cuts: np.ndarray, step: float, first: int) -> LossPmf:
    """Splits each inner piece over its two ends; what lies below the cuts moves up, what lies above them to infinity."""
    inner_p, inner_q = mass_p[1:-1], mass_q[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -np.expm1(np.log(inner_q) - np.log(inner_p) + cuts[:-1]) / -np.expm1(-step)
    up = inner_p * np.clip(np.nan_to_num(share, nan=1.0, neginf=0.0), 0.0, 1.0)
    masses = np.zeros(len(cuts))
    masses[1:] += up
    masses[:-1] += inner_p - up
    masses[0] += mass_p[0]
    return LossPmf(step, first, masses, float(mass_p[-1]))


def _merge(
    mass_p: np.ndarray, mass_q: np.ndarray, step: float, anchor: float, order: float, part: float | None
) -> LossPmf:
    """One outcome a piece, its loss rounded down to the lattice anchor + (i + part)·step."""
    some = (mass_p > 0) & (mass_q > 0)
    mass_p, mass_q = mass_p[some], mass_q[some]
    position = (np.log(mass_p / mass_q) - anchor) / step
    part = _best_part(position, np.log(mass_p) + order * step * position) if part is None else part
    lattice = np.floor(position - part).astype(int)
    masses = np.bincount(lattice - lattice.min(), weights=mass_p)
    return LossPmf(step, int(lattice.min()), masses, 0.0, anchor + part * step)


def _best_part(position: np.ndarray, log_weight: np.ndarray) -> float:
    """The common fractional part to which rounding down costs least: a higher one gains everywhere, but costs a whole
    step where a position's own part is smaller."""
    parts = position - np.round(position)
    ranks = np.argsort(parts)
    weight = np.exp(log_weight - log_weight.max())[ranks]
    gain = parts[ranks] * weight.sum() - (np.cumsum(weight) - weight)
    return float(parts[ranks][np.argmax(gain)]) - 1e-9
