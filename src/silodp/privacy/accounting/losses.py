"""Privacy losses of one release on a lattice: from above by connecting the dots of a profile, from below by merging.

A `LossPmf` stands for a pair of distributions by the law of its privacy loss ln(dP/dQ) under P.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from silodp.privacy.accounting.mechanisms import replace_one_profile, where_sum_is
from silodp.privacy.message_counts import Occurrences


@dataclass(frozen=True)
class LossPmf:
    """`masses` (N,) at the losses offset + (first + i)·step, and the mass at an infinite loss.

    They may miss 1 from below (lower) or by rounding (upper).
    """

    step: float
    first: int
    masses: np.ndarray
    infinite: float = 0.0
    offset: float = 0.0

    @cached_property
    def losses(self) -> np.ndarray:
        return self.offset + (self.first + np.arange(len(self.masses))) * self.step

    @cached_property
    def log_masses(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.masses)

    def log_moment(self, order: float) -> float:
        """ln E e^(order·loss) over the finite losses."""
        exponent = self.log_masses + order * self.losses
        top = exponent.max()
        return float(top + np.log(np.sum(np.exp(exponent - top))))

    def tilted(self, order: float) -> np.ndarray:
        """(N,) the masses weighted by e^(order·loss), summing to 1."""
        return np.exp(self.log_masses + order * self.losses - self.log_moment(order))

    def tilted_variance(self, order: float) -> float:
        """Variance of the loss under the tilted law."""
        weight = self.tilted(order)
        return float(weight @ (self.losses - weight @ self.losses) ** 2)


def replace_one_losses(occurrences: Occurrences, step: float, top: float) -> LossPmf:
    """Pessimistic losses of one release under replace-one: a pair that dominates both orders of any neighbours.

    The profile at the multiples of `step` in [−top, top] is interpolated linearly in e^ε ("Connect the Dots",
    Doroshenko et al. 2022, Algorithm 1); dropping negative masses only raises it. A loss of −ℓ weighs e^−ℓ times a loss
    of ℓ.
    """
    count = int(np.ceil(top / step)) + 1
    return connected_losses(np.minimum.accumulate(replace_one_profile(occurrences, np.arange(count + 1) * step)), step)


def connected_losses(profile: np.ndarray, step: float) -> LossPmf:
    """Losses of a pair whose profile is at least the given one, not increasing, at 0, step, 2·step, … (see above)."""
    count = len(profile) - 1
    gaps = np.diff(profile)
    # Second differences in e^ε, in units that do not overflow.
    shrink = math.exp(-step)
    inner = (gaps[1:] * shrink - gaps[:-1]) / (-math.expm1(-step))
    positive = np.maximum(np.append(inner, -gaps[-1] / (-math.expm1(-step))), 0.0)
    losses = np.arange(1, count + 1) * step
    at_zero = (2 * shrink * profile[1] - (1 + shrink) * profile[0]) / (-math.expm1(-step)) + 1
    masses = np.concatenate([(positive * np.exp(-losses))[::-1], [max(at_zero, 0.0)], positive])
    return LossPmf(step, -count, masses, float(profile[-1]))


def pair_losses(
    occurrences: Occurrences, step: float, top: float, *, upper: bool, reverse: bool = False, aligned: bool = False
) -> LossPmf:
    """Losses of the pair P = Σ_j p_j N(js, 1) against Q = N(0, 1), or of Q against P (`reverse`).

    `upper`: pieces of the line go to their two ends, keeping their mass under P and Q (connect the dots), which
    dominates. Otherwise each piece is merged into one outcome and these are mixed into outcomes on the lattice:
    post-processing, hence dominated. Either errs by O(step²) a release. `aligned`: the lower lattice contains ln p_0.
    """
    floor = float(occurrences.log_weights[0])
    floor = floor if floor > -top else -math.inf
    if upper:
        cuts = np.arange(math.floor(max(floor, -top) / step), math.ceil(top / step) + 1) * step
    else:
        cuts, anchor = _lower_cuts(occurrences, step, top, floor, aligned)
    x = np.concatenate([[-np.inf], _outcome_at(occurrences, cuts), [np.inf]])
    log_p, log_q = _log_masses(occurrences, x)
    if reverse:
        log_p = _with_tail(occurrences, x, log_p)
        log_p, log_q, cuts = log_q[::-1], log_p[::-1], -cuts[::-1]
    if upper:
        return _connect(log_p, log_q, cuts, step, round(cuts[0] / step))
    return _mix(log_p, log_q, step, -anchor if reverse else anchor)


def _lower_cuts(
    occurrences: Occurrences, step: float, top: float, floor: float, aligned: bool
) -> tuple[np.ndarray, float]:
    """(cuts, one lattice loss): half-way between lattice losses, but the lowest piece, which may hold most of the mass
    just above the infimum ln p_0, ends where its loss is on the lattice.
    """
    if not math.isfinite(floor):
        return (np.arange(math.floor(-top / step), math.ceil(top / step) + 1) + 0.5) * step, 0.0
    reach = np.arange(1, 301) / 50
    x = np.concatenate([[-np.inf], _outcome_at(occurrences, floor + reach * step)])
    log_p, log_q = (np.logaddexp.accumulate(log_mass) for log_mass in _log_masses(occurrences, x))
    with np.errstate(invalid="ignore"):
        merged = np.nan_to_num((log_p - log_q - floor) / step, nan=0.0)  # the piece's loss, in steps
    if aligned:
        k = int(np.argmax(merged >= 1)) if merged[99] >= 1 else 24
        anchor, centre = floor, floor + (step if merged[99] >= 1 else 0.0)
    else:
        k = int(np.argmax(reach - 0.5 >= merged))
        anchor = centre = floor + float(merged[k]) * step
    rest = centre + (np.arange(math.ceil((top - centre) / step) + 1) + 0.5) * step
    end = floor + float(reach[k]) * step
    return np.concatenate([[end], rest[rest > end + 0.25 * step]]), anchor


def _outcome_at(occurrences: Occurrences, losses: np.ndarray) -> np.ndarray:
    """Where ln(P/Q) takes the given increasing values; −∞ where these lie below its infimum ln p_0."""
    log_p, s = occurrences.log_weights, occurrences.shift
    x = np.full(len(losses), -np.inf)
    reached = np.flatnonzero(losses > log_p[0])
    goal = losses[reached]
    # ln(e^goal − p_0) is what the terms j ≥ 1 have to make.
    rest = goal + np.log(-np.expm1(log_p[0] - goal)) if occurrences.weights[0] > 0 else goal
    x[reached] = where_sum_is(log_p[1:], np.arange(1, len(log_p)) * s, rest)
    return np.maximum.accumulate(x)


def _log_masses(occurrences: Occurrences, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln of the masses under P and Q of the pieces between consecutive x, to small relative error in both tails."""
    under_p = np.full(len(x) - 1, -np.inf)
    for j, log_weight in enumerate(occurrences.log_weights):
        under_p = np.logaddexp(under_p, log_weight + _log_normal_masses(x - j * occurrences.shift))
    return under_p, _log_normal_masses(x)


def _log_normal_masses(x: np.ndarray) -> np.ndarray:
    """ln of a standard normal's masses between consecutive x."""
    near = np.where(x[:-1] > 0, -x[:-1], x[1:])  # the end of the piece on the side of the mean
    far = np.where(x[:-1] > 0, -x[1:], x[:-1])
    log_near = log_ndtr(near)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(near > far, log_near + np.log(-np.expm1(log_ndtr(far) - log_near)), -np.inf)


def _with_tail(occurrences: Occurrences, x: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """ln of the masses under P and an upper bound on what was cut from it, for comparisons against P.

    Left of the first component that was cut, none of those has more mass in a piece than the first. A piece where the
    bound outweighs the rest is given up: −∞.
    """
    if occurrences.tail == 0:
        return log_p
    mean = len(occurrences.weights) * occurrences.shift
    beyond = math.log(occurrences.tail) + np.where(x[1:] <= mean, _log_normal_masses(x - mean), 0.0)
    return np.where(beyond < log_p, np.logaddexp(log_p, beyond), -np.inf)


def _connect(log_p: np.ndarray, log_q: np.ndarray, cuts: np.ndarray, step: float, first: int) -> LossPmf:
    """Splits each inner piece over its two ends; what lies below the cuts moves up, what lies above to infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        share = -np.expm1(log_q[1:-1] - log_p[1:-1] + cuts[:-1]) / -math.expm1(-step)
    inner = np.exp(log_p[1:-1])
    up = inner * np.clip(np.nan_to_num(share, nan=1.0, neginf=0.0), 0.0, 1.0)
    masses = np.zeros(len(cuts))
    masses[1:] += up
    masses[:-1] += inner - up
    masses[0] += math.exp(log_p[0])
    return LossPmf(step, first, masses, math.exp(log_p[-1]))


def _mix(log_p: np.ndarray, log_q: np.ndarray, step: float, anchor: float) -> LossPmf:
    """Merges each piece and mixes neighbouring ones so that every outcome's loss is at least its lattice loss.

    A piece is near a lattice loss g_i, on which it has p − q·e^(g_i) to spare, or lacks it. Where it lacks, the next
    piece sends down the share that has as much to spare at g_i; where it spares, the piece below sends a share up.
    """
    some = np.isfinite(log_p) & np.isfinite(log_q)
    place = np.round((log_p[some] - log_q[some] - anchor) / step).astype(int)
    first = int(place.min()) - 1
    joint = np.full((2, int(place.max()) - first + 2), -np.inf)
    for row, log_mass in zip(joint, (log_p, log_q), strict=True):
        np.logaddexp.at(row, place - first, log_mass[some])
    lattice = anchor + (first + np.arange(joint.shape[1])) * step
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        p = np.exp(joint[0])
        rise = np.where(p > 0, joint[0] - joint[1] - lattice, 0.0)
        here = p * -np.expm1(-rise)  # to spare at the own lattice loss, negative where it lacks
        below = p * -np.expm1(-rise - step)  # to spare one lattice loss below, by the whole piece
        above = p * np.expm1(np.minimum(step - rise, 600.0))  # lacking one lattice loss above
        # Shares sent down solve down_{i+1} = (1 − down_i)·lack_i/below_{i+1}; the third iterate from 0 errs upwards.
        ratio = np.nan_to_num(np.maximum(-here[:-1], 0.0) / below[1:], nan=0.0, posinf=1e300)
        down = np.zeros(len(p))
        for _ in range(3):
            down[1:] = np.minimum((1 - down[:-1]) * ratio, 1.0)
        spare = (1 - down) * here + np.append((down * below)[1:], 0.0)
        # Shares sent up use what is spared above them, less what that piece may itself send up.
        most = np.nan_to_num(np.append(np.maximum(spare, 0.0)[1:], 0.0) / above, nan=0.0, posinf=0.0)
        left = np.maximum(spare - most * np.maximum(here, 0.0), 0.0)
        up = np.nan_to_num(np.append(left[1:], 0.0) / above, nan=0.0, posinf=0.0)
    up = np.minimum(up, (1 - down) / 2)
    # Where the next piece has too little to spare, what is left of a piece goes down a whole step.
    with np.errstate(invalid="ignore"):  # on a lattice so coarse that exponentials of a step overflow
        short = (1 - down - up) * here + np.append((down * below)[1:], 0.0) - np.append(0.0, (up * above)[:-1])
        fall = ~(short >= -1e-15 * p)  # a loss that is the lattice's but for rounding stays
    up[:-1][fall[1:]] = 0.0
    down = np.where(fall, 1.0, down)
    up = np.where(fall, 0.0, up)
    masses = p * (1 - down - up)
    masses[:-1] += (p * down)[1:]
    masses[1:] += (p * up)[:-1]
    return LossPmf(step, first, masses, 0.0, anchor)
